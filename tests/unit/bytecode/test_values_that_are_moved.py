"""What a segment only moves is what it was: where ways meet again, and in a function that is being made."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.bytecode.segmented import Args, agrees

ONE = torch.tensor(1.0)
CALLS: tuple[Args, ...] = ((ONE, 3, 4), (-ONE, 3, 4), (-ONE, 3, 3), (ONE, "a", "b"), (-ONE, "a", "b"))


def on_the_stack(s: Tensor, n: Any, m: Any) -> Any:
    print("on")
    return (1 if s > 0 else n), (m if s > 0 else n), (s > 0 and n) or m


def in_a_variable(s: Tensor, n: Any, m: Any) -> Any:
    k = 0
    print("on")
    if s > 0:
        k = n
    else:
        k = m
    return k


def returned(s: Tensor, n: Any, m: Any) -> Any:
    print("on")
    if s > 0:
        return n
    return m


def in_a_loop(s: Tensor, n: Any, m: Any) -> Any:
    k = m
    print("on")
    for e in torch.stack([s, s + 1]):
        if e > 0:
            k = n
            break
    return k, s


def from_a_handler(s: Tensor, n: Any, m: Any) -> Any:
    print("on")
    z = k = None
    try:
        if s > 0:
            raise KeyError
        z = n
    except KeyError:
        k = m
    return z, k


def iterators(s: Tensor, n: Any, m: Any) -> Any:
    first, second = iter([n]), iter([m])
    print("on")
    return list(first if s > 0 else second)


@pytest.mark.parametrize("function", [on_the_stack, in_a_variable, returned, in_a_loop, from_a_handler, iterators])
def test_what_an_arm_moves(function: Callable[..., Any]) -> None:
    agrees(lambda record: function, *CALLS)


@contextlib.contextmanager
def managed(name: str) -> Iterator[None]:
    print("begin", name)
    yield
    print("end", name)


def test_a_function_that_a_segment_begins_in_the_making_of_has_its_defaults_in_every_call() -> None:
    def function(s: Tensor, n: int, m: int) -> Any:
        rounds, seen = 0, []

        def note(x: Tensor, much: bool = True, *, more: int = m) -> Tensor:
            nonlocal rounds
            rounds += more if much else 0
            seen.append(x.item())
            return x + 0.125

        def noted(x: Tensor, z: float = 0.5) -> Any:
            return [note(e) * z for e in map(note, x)]

        with managed("here"):
            v = torch.stack([note(abs(s)), note(s)])
        return v, noted(v), rounds, seen

    agrees(lambda record: function, *CALLS[:3])
