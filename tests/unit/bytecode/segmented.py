"""Functions that leave steps to Python, run beside eager PyTorch: what they give, raise, print and do, call by call."""
from __future__ import annotations

import contextlib
import copy
import io
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import stillgraph as sg
from tests.cases.compare import assert_same, walk

Args = tuple[Any, ...]
Record = Callable[[Any], None]


def to_partial(target: Any, **options: Any) -> Any:
    """What is tested."""
    return sg.to_static(target, **{"full_graph": False, "strict": True, "backend": "eager", **options})


def held(static: Any) -> Any:
    """The static function, of a module that of its `forward`."""
    found = static.forward if isinstance(static, nn.Module) else static
    return getattr(found, "__func__", found)


@dataclass
class Made:
    """What one call gave and did."""

    value: Any
    error: tuple[type, str] | None
    printed: str
    arguments: Args
    gradients: list[Any]


def observed(function: Any, args: Args) -> Made:
    """Call a function on a copy of the arguments."""
    args = copy.deepcopy(args)
    torch.manual_seed(3)
    random.seed(3)
    value, error = None, None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            value = function(*args)
        except Exception as raised:
            error = type(raised), str(raised)
    gradients = []
    results = [part for _, part in walk(value) if isinstance(part, torch.Tensor) and part.requires_grad]
    if results:
        torch.autograd.backward([each.sum() for each in results])
        gradients = [part.grad for _, part in walk(args) if isinstance(part, torch.Tensor) and part.is_leaf]
    return Made(value, error, printed.getvalue(), args, gradients)


def agrees(make: Callable[[Record], Any], *calls: Args, times: int = 3, settled: int = 2, **options: Any) -> Any:
    """Make calls in eager PyTorch and in segments; they are equal in every round, and later rounds make no programs.

    Args:
        make: gives a fresh function, which may put whatever it likes on record.
        calls: the arguments of each.
        times: how often all of them are made.
        settled: in which round, counted from 0, there are no more programs to be made.
        options: of `to_static`.

    Returns:
        The static function.
    """
    expected: list[Any] = []
    actual: list[Any] = []
    eager, static = make(expected.append), to_partial(make(actual.append), **options)
    programs = 0
    for number in range(times):
        for index, args in enumerate(calls):
            where = f"round {number}, call {index}"
            wanted, given = observed(eager, args), observed(static, args)
            assert given.error == wanted.error, f"{where}: raises {given.error}, eager {wanted.error}"
            assert given.printed == wanted.printed, f"{where}: prints {given.printed!r}, eager {wanted.printed!r}"
            assert_same(wanted.value, given.value, where)
            assert_same(wanted.arguments, given.arguments, f"{where}, arguments")
            assert_same(wanted.gradients, given.gradients, f"{where}, gradients")
            assert_same(expected, actual, f"{where}, on record")
            expected.clear()
            actual.clear()
        if isinstance(eager, nn.Module):
            assert_same(dict(eager.state_dict()), dict(static.state_dict()), f"round {number}, state")
        if number >= settled:
            assert count(static) == programs, f"round {number} makes {count(static) - programs} more programs"
        programs = count(static)
    return static


def captured(make: Callable[[], Any], calls: Iterable[Args]) -> tuple[Any, list[int]]:
    """Make calls in eager PyTorch, and then in segments, of functions that may keep a state: they are equal.

    Args:
        make: gives a fresh function; so it is called before each of the two.
        calls: the arguments of each.

    Returns:
        The static function, and how many programs had been made behind each call.
    """
    calls = [*calls]
    eager = make()
    expected = [observed(eager, args) for args in calls]
    static = to_partial(make())
    made = []
    for index, (args, wanted) in enumerate(zip(calls, expected)):
        given = observed(static, args)
        assert given.error == wanted.error, f"call {index}: raises {given.error}, eager {wanted.error}"
        assert given.printed == wanted.printed, f"call {index}: prints {given.printed!r}, eager {wanted.printed!r}"
        assert_same(wanted.value, given.value, f"call {index}")
        made.append(held(static).cache_info().misses)
    return static, made


def count(static: Any) -> int:
    """How many programs there are."""
    return int(held(static).cache_info().programs)


def segments(static: Any) -> int:
    """How many segments there are."""
    return len(held(static).plan.segments)


def reasons(static: Any) -> set[str]:
    """Why Python does what it does."""
    residual = held(static).plan.breaks.residual
    return {why.text for found in residual.values() for why in found.values()}


X = torch.tensor([1.0, 2.0, 3.0])
CALLS: tuple[Args, ...] = ((X,), (-X,), (X * 4,))


def stepwise(x: Any, seen: list[Any]) -> Any:
    """Two steps for Python, each put on record; its handler is for none of our own errors."""
    seen.append(1)
    print("a")
    y = x * 2
    seen.append(2)
    print("b")
    try:
        y = y + 1
    except Exception:  # of any kind: a fault that gets here is on record
        seen.append("handled")
    return y
