"""What people put on functions: a count of the calls, a flag, a setting. Another call may find it changed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.soundness.turns import Turns, agrees


def setting(target: Any) -> Callable[[int], None]:
    return lambda number: setattr(target, "k", number)


def sometimes(target: Any) -> Callable[[int], None]:
    """The attribute is there in the calls 1 and 2."""

    def change(number: int) -> None:
        if number in (1, 2):
            target.k = number + 3
        elif number == 3:
            del target.k

    return change


def named() -> Any:
    def other() -> None: ...

    return other


def read() -> Turns:
    other = named()
    return lambda x: x * other.k, setting(other)


def of_a_lambda() -> Turns:
    other: Any = lambda: 0  # noqa: E731  # a lambda is what is tested
    return lambda x: x * other.k, setting(other)


def of_one_that_is_called() -> Turns:
    other = named()

    def function(x: Tensor) -> Any:
        other()
        return x * other.k

    return function, setting(other)


def asked_with_a_default() -> Turns:
    other = named()
    return lambda x: x * getattr(other, "k", 7), sometimes(other)


def asked_whether_it_is_there() -> Turns:
    other = named()
    return lambda x: x * 2 if hasattr(other, "k") else x, sometimes(other)


def tried() -> Turns:
    other = named()

    def function(x: Tensor) -> Any:
        try:
            return x * other.k
        except AttributeError:
            return x

    return function, sometimes(other)


def among_all() -> Turns:
    other = named()
    return lambda x: x * vars(other).get("k", 3) + len(other.__dict__), sometimes(other)


def of_a_method() -> Turns:
    class Owner:
        def method(self) -> None: ...

    owner = Owner()
    return lambda x: x * owner.method.k, setting(Owner.method)  # type: ignore[attr-defined]


def of_a_method_with_a_default() -> Turns:
    class Owner:
        def method(self) -> None: ...

    owner = Owner()
    return lambda x: x * getattr(owner.method, "k", 7), sometimes(Owner.method)


def of_a_static_method() -> Turns:
    class Owner:
        @staticmethod
        def method() -> None: ...

    return lambda x: x * Owner.method.k, setting(Owner.method)  # type: ignore[attr-defined]


def of_a_partial() -> Turns:
    other: Any = functools.partial(int)
    return lambda x: x * other.k, setting(other)


def of_a_partial_with_a_default() -> Turns:
    other = functools.partial(int)
    return lambda x: x * getattr(other, "k", 7), sometimes(other)


def of_some_in_a_list() -> Turns:
    others = [named(), named()]

    def function(x: Tensor) -> Any:
        for other in others:
            x = x + other.k
        return x

    def change(number: int) -> None:
        others[0].k, others[1].k = number, number * 10

    return function, change


def a_list() -> Turns:
    other = named()
    return lambda x: x * sum(other.k), lambda number: setattr(other, "k", [1] * number)


def a_tensor() -> Turns:
    other = named()
    return lambda x: x * other.k, lambda number: setattr(other, "k", torch.full((1,), float(number)))


def counted(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def wrapper(x: Tensor) -> Any:
        wrapper.calls += 1  # type: ignore[attr-defined]
        return function(x)

    wrapper.calls = 0  # type: ignore[attr-defined]
    return wrapper


def counted_by_a_wrapper() -> Turns:
    inner = counted(lambda x: x + 1)

    def function(x: Tensor) -> Any:
        result = inner(x)
        print(end="")
        return result, inner.calls

    return function, lambda number: None


def counted_by_itself() -> Turns:
    other: Any = named()
    other.k = 0

    def function(x: Tensor) -> Any:
        other.k += 1
        print(end="")
        return x * 2, other.k

    return function, lambda number: None


TURNS = [
    *(read, of_a_lambda, of_one_that_is_called, asked_with_a_default, asked_whether_it_is_there, tried, among_all),
    *(of_a_method, of_a_method_with_a_default, of_a_static_method, of_a_partial, of_a_partial_with_a_default),
    *(of_some_in_a_list, a_list, a_tensor, counted_by_a_wrapper, counted_by_itself),
]


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("make", TURNS)
def test_attributes_of_functions_are_read_in_each_call(make: Callable[[], Turns], full: bool) -> None:
    agrees(make, full)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("default", [False, True])
def test_a_static_function_reads_its_own(default: bool, full: bool) -> None:
    def function(x: Tensor) -> Any:
        return x * (getattr(static, "k", 7) if default else static.k)

    static: Any = sg.to_static(function, backend="eager", full_graph=full)
    change = sometimes(static) if default else setting(static)
    given = []
    for number in range(4):
        change(number)
        given.append(static(torch.ones(1)).item())
    assert given == ([7, 4, 5, 7] if default else [0, 1, 2, 3])


def test_a_static_function_counts_its_calls_between_programs() -> None:
    def function(x: Tensor) -> Any:
        result = x * 2
        static.calls += 1
        print(end="")
        return result, static.calls

    static: Any = sg.to_static(function, backend="eager", full_graph=False, strict=True)
    static.calls = 0
    assert [static(torch.ones(1))[1] for _ in range(4)] == [1, 2, 3, 4]


def test_what_the_code_does_not_mention_may_change() -> None:
    other = named()
    static = sg.to_static(lambda x: x if other.k else -x, backend="eager")
    other.k, other.unmentioned = True, 0
    static(torch.ones(1))
    other.unmentioned = 1
    static(torch.ones(1))
    assert static.cache_info().programs == 1
