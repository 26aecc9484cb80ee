"""What a program cannot do is refused by name, at the user's line, with nothing changed: never wrong in silence."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import P, refusal

COUNT, RANDOM = (number for number in itertools.count()), random.SystemRandom()


@contextlib.contextmanager
def opened() -> Iterator[None]:
    yield from [None]


def seen_by_a_generator(x: Tensor) -> Any:
    with opened():
        if x.sum() > 0:
            raise ValueError("positive")
    return x


def asked_for_its_gradient(x: Tensor) -> int:
    y = x if x.sum() > 0 else x + torch.ones(3, requires_grad=True)
    return 1 if y.requires_grad else 2


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda x: x + next(COUNT), "SG305"),
        (lambda x: x * RANDOM.random(), "SG305"),
        (lambda x: torch.Generator().clone_state(), "SG305"),
        (lambda x: lambda: x, "SG306"),
        (lambda x: iter([x]), "SG306"),
        (lambda x: (v for v in x), "SG306"),
        (lambda x: x.apply_(lambda v: v), "SG304"),
        (lambda x: hash(x.sum().item()), "SG301"),
        (lambda x: x.nothing if x.sum() < 0 else x, "SG209"),
        (seen_by_a_generator, "SG208"),
        (asked_for_its_gradient, "SG301"),
    ],
)
def test_refused_by_name(function: Any, code: str) -> None:
    error = refusal(function, P)
    assert error.reason.code == code
    if code != "SG306":  # the value has left the function by then
        assert error.location is not None
        assert error.location.file == __file__
        assert "^" in str(error)


def test_nothing_of_the_outside_was_used_up() -> None:
    count, numbers = (number for number in range(3)), map(abs, [1, 2])
    for function in (lambda x: x + next(count), lambda x: x * next(numbers)):
        refusal(function, P)
    assert next(count) == 0
    assert next(numbers) == 1


class Registers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)


def left_hook(self: Any, x: Tensor) -> Tensor:
    self.linear.register_forward_hook(lambda module, args, result: result * 2)
    return self.linear(x)


def test_changes_of_a_module_that_no_program_can_make() -> None:
    module = type("Module", (Registers,), {"forward": left_hook})()
    with pytest.raises(sg.CaptureError):
        sg.to_static(module, backend="eager")(P)
    assert list(module.state_dict()) == ["linear.weight", "linear.bias"]
    assert not module.linear._forward_hooks
    assert module.linear.training


def test_a_mode_left_switched() -> None:
    def leaves_it(x: Tensor) -> Tensor:
        torch.set_grad_enabled(False)
        return x * 2

    assert "mode" in str(refusal(leaves_it, P))
    assert torch.is_grad_enabled()


# ---- a hint is about what the code does
def iterates_a_loader(x: Tensor) -> Any:
    for batch in LOADER:
        x = x + batch.sum()
    return x


def advances_on_a_path(x: Tensor) -> Any:
    return x * next(COUNT) if x.sum() > 0 else x


def changes_what_a_path_exchanged(x: Tensor) -> Any:
    held = TABLE if x.sum() > 0 else {"k": 1}
    held["k"] = [x]
    return x


LOADER = torch.utils.data.DataLoader(torch.arange(4.0), shuffle=True)  # type: ignore[arg-type]  # as people do
TABLE = {"k": 0}


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (iterates_a_loader, "call the static function with each batch"),
        (advances_on_a_path, "Advance it before the branch"),
        (changes_what_a_path_exchanged, "Change each by its own name, in a branch of its own"),
        (lambda x: x * RANDOM.random(), "outside"),
    ],
)
def test_a_hint_is_about_what_the_code_does(function: Any, hint: str) -> None:
    assert hint in str(refusal(function, P))
