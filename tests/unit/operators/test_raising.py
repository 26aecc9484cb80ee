"""What a call did before it raised stays done, as in eager PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.operators.careful import Careful
from tests.unit.trace.agreement import agree, refusal

UP, DOWN = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])


def observed(module: Careful) -> Any:
    return (
        module.calls, module.bad, module.seen, module.total.tolist(), module.last is None or module.last.tolist(),
        {name: torch.as_tensor(value).tolist() for name, value in module.named.items()},
    )  # fmt: skip


@pytest.mark.parametrize("asserts", [True, False])
@pytest.mark.parametrize("first", [UP, DOWN])
def test_effects_before_an_exception(asserts: bool, first: Tensor) -> None:
    eager, static = Careful(asserts), sg.to_static(Careful(asserts), backend="eager")
    for x in (first, DOWN, UP, DOWN * 4, UP, first):
        outcomes = []
        for module in (eager, static):
            try:
                outcomes.append(module(x).tolist())
            except (ValueError, AssertionError, KeyError) as error:
                outcomes.append((type(error), str(error).split("\n")[0]))  # pytest adds lines to assertions
        assert outcomes[0] == outcomes[1]
        assert observed(static) == observed(eager)


count = 0


def test_globals_and_closures() -> None:
    global count
    count = total = 0

    def step(x: Tensor) -> Tensor:
        global count
        nonlocal total
        count += 1
        total += 2
        if x.sum() < 0:
            raise ValueError
        total += 100
        return x

    static = sg.to_static(step, backend="eager")
    static(UP)
    with pytest.raises(ValueError):
        static(DOWN)
    assert (count, total) == (2, 104)


# ---- what exceptions say, hold and were caused by
class OutOfRange(ValueError):
    def __init__(self, value: Any, limit: float) -> None:
        self.limit = limit
        self.value = value
        super().__init__(f"{value:.2f} is not below {limit}", limit)


class Plain(Exception):
    pass


def own_constructor(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise OutOfRange(x.sum().item(), 1.5)
    return x


def holds_a_tensor(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise OutOfRange(x.sum(), 1.5)
    return x


def own_constructor_of_constants(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise OutOfRange(2, 1.5)
    return x


def with_an_attribute(x: Tensor) -> Tensor:
    if x.sum() < 0:
        error = Plain("low", x.sum().item())
        error.hint = x * 2  # type: ignore[attr-defined]  # as people write it
        error.add_note("seen")
        raise error
    return x


def caused_by_what_was_caught(x: Tensor) -> Tensor:
    try:
        if x.sum() < 0:
            raise KeyError("low")
    except KeyError as error:
        raise Plain(f"found {x[0].item()}") from error
    return x


def caused_by_a_constant(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise Plain("low") from KeyError("a cause")
    return x


def caused_by_nothing(x: Tensor) -> Tensor:
    try:
        if x.sum() < 0:
            raise KeyError("low")
    except KeyError:
        raise Plain("found") from None
    return x


def staged_and_caused(x: Tensor) -> Tensor:
    if x.sum() < -2.5:
        raise Plain(f"found {x[0].item()}") from KeyError("k")
    if x.sum() < 0:
        raise Plain(f"found {x[0].item()}") from None
    return x


def told_again(x: Tensor) -> Tensor:
    try:
        own_constructor(x)
    except OutOfRange as error:
        raise Plain("told: " + "again", str(error)) from error
    return x


def raised_twice(x: Tensor) -> Tensor:
    try:
        try:
            own_constructor(x)
        finally:
            x = x + 1
    except ValueError:
        x = x * 2
        raise
    return x


@pytest.mark.parametrize(
    "function",
    [
        *(own_constructor, holds_a_tensor, own_constructor_of_constants, with_an_attribute, caused_by_what_was_caught),
        *(caused_by_a_constant, caused_by_nothing, staged_and_caused, told_again, raised_twice),
    ],
)
def test_exceptions_are_those_of_eager(function: Any) -> None:
    agree(function, UP, DOWN, UP)
    agree(function, DOWN, UP, DOWN)


def caused_by_something_staged(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise Plain("found") from KeyError(f"{x[0].item()}")
    return x


def with_fields(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise OSError(2, f"{x[0].item()}", "file")
    return x


@pytest.mark.parametrize("function", [caused_by_something_staged, with_fields])
def test_what_an_exception_cannot_carry_is_refused(function: Any) -> None:
    assert refusal(function, UP).reason.code == "SG302"
