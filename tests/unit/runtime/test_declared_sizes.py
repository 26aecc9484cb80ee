"""Calls of a static function whose `InputSpec`s name dimensions: each has to keep to what they say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode

FRONT_ENDS = [pytest.param(contextlib.nullcontext, id="source"), pytest.param(through_bytecode, id="bytecode")]
N, RANGED = sg.Dim("n"), sg.Dim("n", min=1, max=6)


def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def one_of_them(x: Tensor, y: Tensor) -> Tensor:
    return x * 2 if x.sum() > 3 else y * 3


def one_alone(x: Tensor, y: Tensor) -> Tensor:
    return x * 2


FUNCTIONS = [added, one_of_them, one_alone]


def static(function: Callable[..., Any], dim: sg.Dim = N, **options: Any) -> Any:
    return sg.to_static(function, backend="eager", input_spec=[sg.InputSpec([dim])] * 2, **options)


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", [0, 1, 5])
def test_calls_of_one_size(function: Callable[..., Any], first: int, front_end: Any) -> None:
    with front_end():
        target = static(function)
        for size in (first, 1, 5, 0, 2, 1):
            args = torch.ones(size), torch.ones(size) * 2
            torch.testing.assert_close(target(*args), function(*args))
        assert len(target.programs) <= 3  # for sizes 0 and 1 alone, and for others


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("sizes", [(1, 5), (5, 1), (4, 5), (0, 1)])
@pytest.mark.parametrize("seen", [(), (5,), (1, 5, 0)])
def test_calls_of_two_sizes(
    function: Callable[..., Any], sizes: tuple[int, int], seen: tuple[int, ...], front_end: Any
) -> None:
    with front_end():
        target = static(function)
        for size in seen:
            target(torch.ones(size), torch.ones(size))
        with pytest.raises(sg.CaptureError) as raised:
            target(*map(torch.ones, sizes))
    said = f"dimension 0 of 'x' is {sizes[0]} and dimension 0 of 'y' is {sizes[1]}, but input_spec declares 'n'"
    assert said in str(raised.value)
    assert raised.value.reason.code == "SG501"


@pytest.mark.parametrize("size", [0, 7])
@pytest.mark.parametrize("seen", [(), (5,), (1, 5)])
def test_calls_outside_of_a_range(size: int, seen: tuple[int, ...]) -> None:
    target = static(added, RANGED)
    for each in seen:
        torch.testing.assert_close(target(torch.ones(each), torch.ones(each)), torch.ones(each) * 2)
    with pytest.raises(sg.CaptureError, match=rf"dimension 0 of 'x' is {size}, but input_spec declares n: 1\.\.6"):
        target(torch.ones(size), torch.ones(size))


def test_two_dimensions_of_one_argument() -> None:
    target = sg.to_static(lambda x: x @ x.T, backend="eager", input_spec=[sg.InputSpec([N, N])])
    torch.testing.assert_close(target(torch.ones(3, 3)), torch.full((3, 3), 3.0))
    torch.testing.assert_close(target(torch.ones(1, 1)), torch.ones(1, 1))
    with pytest.raises(sg.CaptureError, match="dimension 0 of 'x' is 3 and dimension 1 of 'x' is 4"):
        target(torch.ones(3, 4))


def test_without_a_full_graph_it_is_a_warning() -> None:
    target = static(added, full_graph=False)
    target(torch.ones(5), torch.ones(5))
    with pytest.warns(RuntimeWarning, match="input_spec declares 'n' for both"):
        torch.testing.assert_close(target(torch.ones(1), torch.ones(5)), torch.ones(5) * 2)


def test_a_miss_tells_which_sizes_differ() -> None:
    target = static(one_of_them)
    target(torch.ones(5), torch.ones(5))
    assert "x.shape[0] == y.shape[0] should hold" in str(target.explain_miss(torch.ones(4), torch.ones(5)))


def test_an_example_of_two_sizes_is_not_saved(tmp_path: Any) -> None:
    spec = [sg.InputSpec([N])] * 2
    with pytest.raises(sg.CaptureError, match="declares 'n' for both"):
        sg.save(one_of_them, tmp_path / "file.pt2", args=(torch.ones(4), torch.ones(5)), input_spec=spec)
    assert not list(tmp_path.iterdir())
