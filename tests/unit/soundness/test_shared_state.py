"""What classes and modules' variables hold, written by code that Python itself calls: each call does it anew."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

COUNTED = 0


class Special:
    """Each special method counts, on the class or in a variable of the module."""

    count = 0

    def __float__(self) -> float:
        Special.count += 1
        return 1.0

    def __index__(self) -> int:
        global COUNTED
        COUNTED += 1
        return 1

    def __eq__(self, other: object) -> bool:
        Special.count += 1
        return True

    def __hash__(self) -> int:
        Special.count += 1
        return 1

    def __iter__(self) -> Any:
        Special.count += 1
        return iter([1, 2])


class Made:
    count = 0

    def __new__(cls, *args: Any) -> Made:
        cls.count += 1
        return super().__new__(cls)

    def __init__(self, value: Tensor) -> None:
        self.value = value


class Single:
    instance: Any = None

    def __new__(cls) -> Single:
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            cls.instance.uses = 0
        cls.instance.uses += 1
        return cls.instance  # type: ignore[no-any-return]


class Counting(type):
    made: int

    def __call__(cls, *args: Any) -> Any:
        made = super().__call__(*args)
        cls.made = getattr(cls, "made", 0) + 1
        return made


class Counted(metaclass=Counting):
    def __init__(self, value: Tensor) -> None:
        self.value = value


SPECIAL = Special()


def by_float(x: Tensor) -> Tensor:
    return x + float(SPECIAL) + Special.count


def by_index(x: Tensor) -> Tensor:
    return x + [1, 2, 3][SPECIAL] + COUNTED  # type: ignore[call-overload]


def by_key(x: Tensor) -> Tensor:
    return x + len({SPECIAL: 1}) + Special.count


def by_search(x: Tensor) -> Tensor:
    return x + [SPECIAL].index(3) + Special.count  # type: ignore[list-item]


def by_unpacking(x: Tensor) -> Tensor:
    first, _ = SPECIAL
    return x + first + Special.count


def by_new(x: Tensor) -> Tensor:
    return Made(x).value + Made.count


def by_new_of_map(x: Tensor) -> Tensor:
    return [*map(functools.partial(Made), [x, x])][1].value + Made.count


def by_single(x: Tensor) -> Tensor:
    return x + Single().uses  # type: ignore[attr-defined]


def by_metaclass(x: Tensor) -> Tensor:
    return Counted(x).value + Counted.made  # type: ignore[no-any-return]


def by_asking(x: Tensor) -> Tensor:
    Special.asked = getattr(Special, "asked", 0) + 1  # type: ignore[attr-defined]
    return x + Special.asked  # type: ignore[attr-defined, no-any-return]


def reset() -> None:
    globals()["COUNTED"] = Special.count = Made.count = 0
    Single.instance = None
    for owner, name in ((Counted, "made"), (Special, "asked")):
        if name in vars(owner):
            delattr(owner, name)


OPERATORS = (by_float, by_index, by_key, by_search, by_unpacking)
FUNCTIONS = (*OPERATORS, by_new, by_new_of_map, by_single, by_metaclass, by_asking)


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_state_that_all_calls_share_goes_on(function: Callable[[Tensor], Tensor], full_graph: bool) -> None:
    options = {} if full_graph else {"strict": True}
    static = sg.to_static(function, full_graph=full_graph, backend="eager", **options)
    outcomes = []
    for each in (function, static):
        reset()
        outcomes.append([each(torch.zeros(1)).item() for _ in range(4)])
    assert outcomes[1] == outcomes[0]
