"""Lists and deques of a length that only the run knows: what they raise, what a slice of one is, and its factories."""

from __future__ import annotations

from collections import UserDict, UserList, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from tests.unit.operators.grown import CALLS, grown
from tests.unit.trace.agreement import agree, refusal


def queue(x: Tensor) -> deque[float]:
    return deque(grown(x))


def said(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (IndexError, ValueError) as error:
        return type(error).__name__, str(error)


# ---- errors
def taken_from_a_deque(x: Tensor) -> Any:
    return said(lambda: queue(x).pop()), said(lambda: queue(x).popleft()), said(lambda: queue(x)[2])


def stored_in_a_deque(x: Tensor) -> Any:
    held = queue(x)
    try:
        held[2] = 0.0
    except IndexError as error:
        return str(error)
    return held


def deleted_from_a_deque(x: Tensor) -> Any:
    held = queue(x)
    try:
        del held[-2]
    except IndexError as error:
        return str(error)
    return held


def removed_from_a_deque(x: Tensor) -> Any:
    held = queue(x)
    return said(lambda: held.remove(2.0)), held, said(lambda: queue(x).index(2.0))


def looked_for_in_a_list(x: Tensor) -> Any:
    pairs = [(value, 1) for value in x.tolist() if value > 0]
    texts = ["p" if value > 1 else "n" for value in x.tolist() if value != 0]
    return said(lambda: pairs.index((2.0, 1))), said(lambda: texts.index("z")), said(lambda: texts.index("p"))


def looked_for_from_a_place_on(x: Tensor) -> Any:
    values = tuple(grown(x))
    return said(lambda: values.index(2.0, 1)), said(lambda: values.index(2.0, 0, 1)), said(lambda: values.index(3.0))


# ---- slices
class Values(list[float]):
    pass


def slices_of_a_derived_class(x: Tensor) -> Any:
    values = Values([1.0])
    if x.sum() > 0:
        values.append(2.0)
    return [type(each).__name__ for each in (values[:1], values[:], values[1:], values, values.copy())], values[:1]


# ---- containers written in Python
def a_user_list(x: Tensor) -> Any:
    values: UserList[float] = UserList()
    for value in x.tolist():
        if value > 0:
            values.append(value)
    return values[:1].data, values[1:].data, len(values)


def a_user_dict(x: Tensor) -> Any:
    values: UserDict[int, float] = UserDict()
    for value in x.tolist():
        values[int(value)] = value
    return len(values), 1 in values, values.get(1), values.get(7, "none")


# ---- factories
def a_factory_that_counts(x: Tensor) -> Any:
    count, log = 0, []

    def new() -> int:
        nonlocal count
        count += 1
        log.append(count)
        return count

    numbers: defaultdict[str, int] = defaultdict(new)
    if x.sum() > 0:
        numbers["a"] = 5
    return numbers["a"], count, len(log)


def a_factory_that_asks_its_dict(x: Tensor) -> Any:
    places: defaultdict[int, int] = defaultdict(lambda: len(places))
    return [places[int(value)] for value in x.tolist()]


@pytest.mark.parametrize(
    "function",
    [
        *(taken_from_a_deque, stored_in_a_deque, deleted_from_a_deque, removed_from_a_deque, looked_for_in_a_list),
        *(looked_for_from_a_place_on, slices_of_a_derived_class, a_user_list, a_user_dict, a_factory_that_counts),
        a_factory_that_asks_its_dict,
    ],
)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


def every_second_one(x: Tensor) -> Any:
    values = [1.0, 2.0, 3.0, 4.0]
    values[::2] = grown(x)
    return values


def test_refused() -> None:
    assert refusal(every_second_one, CALLS[0]).reason.code == "SG210"
