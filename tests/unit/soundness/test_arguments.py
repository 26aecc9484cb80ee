"""What code can tell of arguments besides their contents: identity, layout, attributes, facts of tensors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.soundness.worlds import Count, World, X, follows


# ---- containers and objects that are passed twice
def appends(x: Tensor, a: Any, b: Any) -> Any:
    a.append(1)
    return x * len(b)


def adds(x: Tensor, a: Any, b: Any) -> Any:
    a.add(9)
    return x * len(b)


def stores(x: Tensor, a: Any, b: Any) -> Any:
    a["k"] = 5
    return x * b["k"]


def sets(x: Tensor, a: Any, b: Any) -> Any:
    a.n = 5
    return x * b.n


def compares(x: Tensor, a: Any, b: Any) -> Any:
    return x * 2 if a is b else x


def returns(x: Tensor, a: Any, b: Any) -> Any:
    return x, a, b


def inner(x: Tensor, a: Any, b: Any) -> Any:
    a[0].append(x)
    return x * len(a[1]) + len(b)


def nested(make: Callable[[], Any]) -> Callable[[], list[Any]]:
    def made() -> list[Any]:
        part = make()
        return [part, part]

    return made


TWICE: dict[str, tuple[Callable[..., Any], Callable[[], Any]]] = {
    "list": (appends, lambda: [1]),
    "list of tensors": (appends, lambda: [X()]),
    "deque": (appends, lambda: deque([1])),
    "set": (adds, lambda: {1}),
    "dict": (stores, lambda: {"k": 1}),
    "dataclass": (sets, lambda: Count(1)),
    "compared list": (compares, lambda: [1]),
    "compared tuple": (compares, lambda: (X(),)),
    "compared dataclass": (compares, lambda: Count(1)),
    "returned": (returns, lambda: [1]),
    "inside": (inner, nested(lambda: [1])),
}


@pytest.mark.parametrize("first", [True, False], ids=["one, then two", "two, then one"])
@pytest.mark.parametrize("name", TWICE)
def test_one_object_passed_twice(name: str, first: bool) -> None:
    function, make = TWICE[name]

    def world() -> World:
        def call(one: bool) -> tuple[Any, ...]:
            value = make()
            return X(), value, value if one else make()

        return function, [call(first), call(not first), call(first), call(not first)]

    follows(world, 2)


def test_one_inside_another() -> None:
    def f(x: Tensor, a: Any, b: Any) -> Any:
        a.append(3)
        return x * len(b[0])

    def world() -> World:
        def call(shared: bool) -> tuple[Any, ...]:
            part = [1]
            return X(), part, [part if shared else [1]]

        return f, [call(True), call(False), call(True)]

    follows(world, 2)


# ---- arguments that the code reaches by another path too
def global_list() -> World:
    known = [1]

    def f(x: Tensor, a: Any) -> Any:
        known.append(2)
        return x * sum(a)

    return f, [(X(), known), (X(), [1, 2]), (X(), [1, 2]), (X(), [1, 2, 2, 2])]


def global_list_afterwards() -> World:
    known = [1]

    def f(x: Tensor, a: Any) -> Any:
        a.append(2)
        return x * sum(known)

    return f, [(X(), [1]), (X(), known), (X(), known)]


def list_of_a_helper() -> World:
    known = [1]

    def helper() -> int:
        return len(known)

    def f(x: Tensor, a: Any) -> Any:
        a.append(2)
        return x * helper()

    return f, [(X(), known), (X(), [1]), (X(), known)]


def list_with_tensors() -> World:
    known = [X()]

    def f(x: Tensor, a: Any) -> Any:
        a.append(x)
        return x * len(known) + known[0]

    return f, [(X(), known), (X(), [X()]), (X() + 1, known)]


def global_dataclass() -> World:
    known = Count(1)

    def f(x: Tensor, a: Any) -> Any:
        a.n += 1
        return x * known.n

    return f, [(X(), known), (X(), Count(1)), (X(), known)]


def attribute_of_an_argument() -> World:
    def f(x: Tensor, owner: Any, a: Any) -> Any:
        a.append(2)
        return x * len(owner.items)

    owner = Owner()
    return f, [(X(), owner, owner.items), (X(), owner, [1, 2]), (X(), owner, owner.items)]


class Owner:
    def __init__(self) -> None:
        self.items = [1]


def global_tensor() -> World:
    known = torch.ones(3)

    def f(x: Tensor) -> Any:
        return x if x is known else x * 2

    return f, [(known,), (X(),), (known,), (torch.ones(3),)]


def global_tensor_afterwards() -> World:
    known = torch.ones(3)

    def f(x: Tensor) -> Any:
        return x if x is known else x * 2

    return f, [(X(),), (known,), (X(),)]


def tensor_written_elsewhere() -> World:
    known = torch.ones(3)

    def f(x: Tensor) -> Any:
        known.add_(1)
        return x * 2

    return f, [(known,), (X(),), (known,)]


def global_tensor_written_as_argument() -> World:
    known = torch.ones(3)

    def f(x: Tensor) -> Any:
        x.add_(1)
        return known * 2

    return f, [(X(),), (known,), (X(),), (known,)]


def tensor_of_a_list() -> World:
    known = [torch.ones(3), torch.zeros(3)]

    def f(x: Tensor) -> Any:
        return x * 2 if any(x is tensor for tensor in known) else x

    return f, [(X(),), (known[1],), (X(),), (known[1],)]


ELSEWHERE = (
    (global_list, 4),
    (global_list_afterwards, 3),
    (list_of_a_helper, 3),
    (list_with_tensors, 3),
    (global_dataclass, 3),
    (attribute_of_an_argument, 3),
    (global_tensor, 2),
    (global_tensor_afterwards, 2),
    (tensor_written_elsewhere, 2),
    (global_tensor_written_as_argument, 2),
    (tensor_of_a_list, 2),
)


@pytest.mark.parametrize(("make", "most"), ELSEWHERE, ids=[make.__name__ for make, _ in ELSEWHERE])
def test_an_argument_that_is_reached_by_another_path_too(make: Callable[[], World], most: int) -> None:
    (function, calls), (again, same_calls) = make(), make()
    static = sg.to_static(again, backend="eager")
    for number, (args, same_args) in enumerate(zip(calls, same_calls, strict=True)):
        assert_same(function(*args), static(*same_args), f"call {number}")
        assert_same(calls, same_calls, f"call {number}: what was passed")
    assert static.cache_info().programs <= most
