"""Files of code that writes in place to what PyTorch lets nobody write to: a leaf that requires a gradient."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

X = torch.tensor([1.0, 2.0])
WRITES: dict[str, Callable[[Tensor], Any]] = {
    "method": lambda x: x.add_(1),
    "function": lambda x: torch.relu_(x),
    "item": lambda x: x.__setitem__(0, 1.0),
    "view": lambda x: x.view(-1).mul_(2),
    "unsqueezed": lambda x: x.unsqueeze(0).copy_(x * 2),
    "part": lambda x: x.unbind()[0].zero_(),
    "out": lambda x: torch.add(x.detach(), 1, out=x),
}


def handled(write: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        try:
            write(x)
        except RuntimeError:
            return x * 2
        return x * 3

    return function


def written(write: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        write(x)
        return x * 3

    return function


def leaf(requires_grad: bool = True) -> Tensor:
    return X.clone().requires_grad_(requires_grad)


def saved(function: Any, folder: Path, *args: Any) -> Any:
    sg.save(function, folder / "program.pt2", args=args)
    return sg.load(folder / "program.pt2")


@pytest.mark.parametrize("example", [True, False])
@pytest.mark.parametrize("wrap", [handled, written])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_leaf_is_refused_at_the_call(
    write: Callable[[Tensor], Any], wrap: Any, example: bool, tmp_path: Path
) -> None:
    function = wrap(write)
    loaded = saved(function, tmp_path, leaf(example))
    given, expected = leaf(False), leaf(False)
    torch.testing.assert_close(loaded(given), function(expected))
    torch.testing.assert_close(given, expected)
    for each in (leaf(), leaf().view(-1)):
        with pytest.raises(ValueError, match=r"x being no leaf that requires a gradient.*torch\.no_grad"):
            loaded(each)
    with torch.no_grad():
        torch.testing.assert_close(loaded(leaf()), function(leaf()))


def test_what_is_no_leaf_is_taken(tmp_path: Path) -> None:
    function = handled(WRITES["method"])
    loaded = saved(function, tmp_path, leaf() * 1)
    torch.testing.assert_close(loaded(leaf() * 1), function(leaf() * 1).detach())


def without_gradients(x: Tensor) -> Tensor:
    with torch.no_grad():
        x.add_(1)
    x.detach()[0] = 4
    x.data.mul_(2)
    return x * 3


@torch.no_grad()
def decorated(x: Tensor) -> Tensor:
    return x.add_(1) * 1


@pytest.mark.parametrize("function", [without_gradients, decorated])
def test_writes_that_eager_takes_are_taken(function: Any, tmp_path: Path) -> None:
    loaded = saved(function, tmp_path, leaf())
    torch.testing.assert_close(loaded(leaf()), function(leaf()).detach())


def some_without(x: Tensor) -> Tensor:
    with torch.no_grad():
        x.add_(1)
    try:
        x.add_(1)
    except RuntimeError:
        return x * 2
    return x * 3


def on_a_path(x: Tensor, p: Tensor) -> Tensor:
    if p > 0:
        x.add_(1)
    return x * 3


def test_one_write_of_several_counts(tmp_path: Path) -> None:
    for function, more in ((some_without, ()), (on_a_path, (torch.tensor(0),))):
        loaded = saved(function, tmp_path, leaf(False), *more)
        with pytest.raises(ValueError, match="being no leaf"):
            loaded(leaf(), *more)


@dataclass
class Holder:
    x: Tensor


def held(holder: Holder, others: dict[str, Tensor]) -> Tensor:
    try:
        others["y"].add_(1)
    except RuntimeError:
        return holder.x * 2
    return holder.x * 3


def test_arguments_in_containers(tmp_path: Path) -> None:
    loaded = saved(held, tmp_path, Holder(leaf(False)), {"y": leaf(False)})
    torch.testing.assert_close(loaded(Holder(leaf()), {"y": leaf(False)}), X * 3)
    with pytest.raises(ValueError, match="being no leaf"):
        loaded(Holder(leaf()), {"y": leaf()})


def test_the_example_is_left_as_it_was(tmp_path: Path) -> None:
    example = leaf(False)
    saved(handled(WRITES["method"]), tmp_path, example)
    assert not example.requires_grad
    torch.testing.assert_close(example, X)


class Counting(nn.Module):
    def __init__(self, quietly: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.quietly = quietly

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad() if self.quietly else contextlib.nullcontext():
            try:
                self.weight.add_(1)
            except RuntimeError:
                return x * 2
        return x * self.weight


def test_parameters_are_refused_at_the_save(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match=r"weight requires a gradient and is written to in place") as info:
        saved(Counting(False), tmp_path, X)
    assert "SG402" in str(info.value)
    assert "self.weight.add_(1)" in str(info.value)


def test_parameters_written_without_gradients_are_saved(tmp_path: Path) -> None:
    loaded, module = saved(Counting(True), tmp_path, X), Counting(True)
    for _ in range(2):
        torch.testing.assert_close(loaded(X), module(X).detach())


@pytest.mark.parametrize("example", [True, False])
def test_programs_captured_with_gradients(example: bool, tmp_path: Path) -> None:
    function = handled(WRITES["method"])
    sg.save(sg.export(function, args=(leaf(example),)), tmp_path / "program.pt2", args=(leaf(example),))
    loaded = sg.load(tmp_path / "program.pt2")
    torch.testing.assert_close(loaded(leaf(example)), function(leaf(example)).detach())
    with pytest.raises(ValueError, match=r"\.requires_grad = True|being no leaf"):
        loaded(leaf(not example))
