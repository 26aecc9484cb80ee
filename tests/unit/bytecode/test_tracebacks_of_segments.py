"""Errors of a later segment: a traceback has the user's frames, lines and names that it has in eager PyTorch."""

from __future__ import annotations

import contextlib
import io
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import stillgraph as sg

SIZE = 4


def looked_up(x: Any, index: Any) -> Any:
    """Fails in the run alone: where the index is too large."""
    y = x + 1
    print(y.sum().item())
    return y[index] * 2


def multiplied(x: Any, index: Any) -> Any:
    """Fails in the capture already: so the segment is run in plain PyTorch."""
    y = x + 1
    print(y.sum().item())
    if index is None or index > SIZE - 1:
        y = y.reshape(-1, 1)
    return y @ torch.ones(SIZE)


def raised(x: Any, index: Any) -> Any:
    y = x + 1
    print(y.sum().item())
    y = y * 2
    if index > SIZE - 1:
        raise ValueError("too large")
    return y


def calls(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    a = x * 2
    b = inner(a, index)
    return b + 1


def calls_what_calls(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    c = x - 1
    return calls(c, index, inner) + 1


def in_a_loop(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    for number in range(3):
        x = x + number
        print(number)
        y = inner(x, index)
    return y


def in_a_block(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    with contextlib.nullcontext():
        print("a")
        x = x + 1
        y = inner(x, index)
    return y


def in_a_block_that_breaks(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    print("before")
    with torch.no_grad():
        x = x + 1
        y = calls(x, index, inner)
        print("behind")
    return y


class Owner:
    def method(self, x: Any, index: Any, inner: Callable[..., Any]) -> Any:
        print("m")
        y = x + 1
        return inner(y, index)

    def __call__(self, x: Any, index: Any, inner: Callable[..., Any]) -> Any:
        z = x * 2
        return self.method(z, index, inner)


OWNER = Owner()


def in_a_method(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    w = x + 1
    return OWNER(w, index, inner)


def generated(x: Any, index: Any, inner: Callable[..., Any]) -> Iterator[Any]:
    for number in range(2):
        print(number)
        yield x + number
        yield inner(x, index)


def in_a_generator(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    total = 0
    for each in generated(x, index, inner):
        total = total + each
    return total


def in_a_comprehension(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    print("c")
    y = x + 1
    return [inner(y, index) for _ in range(2)]


def wrapped(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    try:
        return calls(x, index, inner)
    except Exception as error:
        print(traceback.extract_tb(error.__traceback__)[-1].name)
        raise RuntimeError("wrapped") from error


def in_finally(x: Any, index: Any, inner: Callable[..., Any]) -> Any:
    try:
        return calls(x, index, inner)
    finally:
        print("finally")


OUTER = [
    *(calls, calls_what_calls, in_a_loop, in_a_block, in_a_block_that_breaks),
    *(in_a_method, in_a_generator, in_a_comprehension, wrapped, in_finally),
]


def _told(function: Callable[..., Any], *args: Any) -> tuple[Any, str]:
    """The user's frames of what a call raises, and of what led to it; and what it prints."""
    found: list[Any] = []
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            found.append(function(*args))
        except Exception as raised:
            error: BaseException | None = raised
            while error is not None:
                places = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == __file__]
                found.append((type(error), str(error), [(each.name, each.lineno, each.line) for each in places[1:]]))
                error = error.__cause__
    return found, printed.getvalue()


@pytest.mark.parametrize("inner", [looked_up, multiplied, raised])
@pytest.mark.parametrize("outer", OUTER)
def test_frames_are_those_of_eager(outer: Callable[..., Any], inner: Callable[..., Any]) -> None:
    static = sg.to_static(outer, full_graph=False, strict=True, backend="eager")
    for index in (1, 2, 9, 9, 1, 9):
        args = torch.ones(SIZE), torch.tensor(index) if inner is looked_up else index, inner
        expected, actual = _told(outer, *args), _told(static, *args)
        assert str(actual) == str(expected)


@pytest.mark.parametrize("inner", [looked_up, multiplied, raised])
@pytest.mark.parametrize("outer", OUTER)
def test_frames_of_a_first_call(outer: Callable[..., Any], inner: Callable[..., Any]) -> None:
    static = sg.to_static(outer, full_graph=False, strict=True, backend="eager")
    args = torch.ones(SIZE), torch.tensor(9) if inner is looked_up else 9, inner
    for _ in range(3):
        assert str(_told(static, *args)) == str(_told(outer, *args))
