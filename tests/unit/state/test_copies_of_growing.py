"""A copy of a list that the call itself makes longer holds what the list held when the copy was made."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same


class Holder:
    """Where lists are kept."""

    def __init__(self, *items: Any) -> None:
        self.items = [*items]
        self.by_name = {"items": [*items]}
        self.copy: Any = None


class Listener(logging.Handler):
    """Looks at a list whenever something is logged."""

    def __init__(self, holder: Holder) -> None:
        super().__init__()
        self.holder = holder
        self.seen: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(list(self.holder.items))


def by_list(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    return list(items)


def by_slice(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    return items[:]


def by_method(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    return items.copy()


def by_tuple(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    return tuple(items)


def by_sum(x: Tensor, items: list[Any]) -> Any:
    none: list[Any] = []
    items.append(1)
    return items + none, none + items, items + TWO


def in_a_dict(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    return {"h": list(items), "t": (tuple(items), items[:])}


def before(x: Tensor, items: list[Any]) -> Any:
    first = list(items)
    items.append(1)
    second = list(items)
    items.append(2)
    return first, second, list(items)


def moved_on(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    copy = list(items)
    copy.append(7)
    return copy, len(copy), sum(copy)


def twice_the_same(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    copy = list(items)
    return copy, copy


def onto_itself(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    items.extend(items)
    return list(items)


def a_place_assigned(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    items = items + TWO
    return items, len(items)


def of_the_run(x: Tensor, items: list[Any]) -> Any:
    items.append(int(x.sum()))
    return list(items), tuple(items)


def in_a_branch(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    copy = list(items)
    if x.sum() > 5:
        copy.append(3)
        items.append(9)
    return copy, tuple(items)


def on_one_path(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    result = None
    if x.sum() > 5:
        result = list(items)
    return result


def in_a_loop(x: Tensor, items: list[Any]) -> Any:
    for number in range(int(x[0])):
        items.append(number)
    copy = list(items)
    items.append(1)
    return copy, list(items), len(items)


def within_itself(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    result: dict[str, Any] = {"copy": list(items)}
    result["me"] = result
    return result["copy"], result["me"]["copy"]


def before_an_error(x: Tensor, items: list[Any]) -> Any:
    items.append(1)
    copy = list(items)
    if x.sum() > 5:
        raise ValueError(f"of {len(copy)} and {x.sum().item()}")
    return copy


TWO = [2]
ON_A_LIST = [
    by_list, by_slice, by_method, by_tuple, by_sum, in_a_dict, before, moved_on, twice_the_same, onto_itself,
    a_place_assigned, of_the_run, in_a_branch, on_one_path, in_a_loop, within_itself, before_an_error,
]  # fmt: skip


def an_attribute(x: Tensor, holder: Holder) -> Any:
    holder.items.append(1)
    holder.copy = list(holder.items)
    holder.items.append(2)
    return list(holder.items)


def two_lists(x: Tensor, holder: Holder) -> Any:
    holder.items.append(1)
    holder.by_name["items"].append(2)
    both = holder.items + holder.by_name["items"]
    holder.copy = {"both": both}
    holder.items.append(3)
    return both, tuple(holder.by_name["items"])


def before_a_listener(x: Tensor, holder: Holder) -> Any:
    holder.items.append(1)
    holder.copy = copy = list(holder.items)
    length = len(copy)
    logger.warning("noted")
    return copy, length, sum(copy)


ON_AN_OBJECT = [an_attribute, two_lists, before_a_listener]
XS = [torch.tensor([1.0, 2, 3]) * factor for factor in (1, 0.5, 2, 1)]
logger = logging.Logger("of the tests of copies")


def outcomes(function: Callable[..., Any], given: Any) -> list[Any]:
    """What calls in a row give, and what they leave of the object that they are given."""
    found: list[Any] = []
    for x in XS:
        try:
            result = function(x, given)
        except ValueError as error:
            result = type(error), str(error)
        held = list(given) if isinstance(given, list) else [list(given.items), *map(list, given.by_name.values())]
        found.append((result, held, getattr(given, "copy", None) if isinstance(given, Holder) else None))
    return found


@pytest.mark.parametrize("items", [[], [5], [5, 6]])
@pytest.mark.parametrize("function", ON_A_LIST)
def test_of_an_argument(function: Callable[..., Any], items: list[int]) -> None:
    static = sg.to_static(function, backend="eager")
    assert_same(outcomes(function, [*items]), outcomes(static, [*items]))
    assert static.cache_info().programs <= 2  # an empty list has elements of no kind


@pytest.mark.parametrize("function", ON_AN_OBJECT)
def test_of_what_an_object_holds(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager")
    expected, actual = Holder(5), Holder(5)
    heard = []
    for holder, called in ((expected, function), (actual, static)):
        listener = Listener(holder)
        logger.handlers = [listener]
        heard.append((outcomes(called, holder), listener.seen))
    assert_same(*heard)
    assert static.cache_info().programs == 1


class Losses(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def forward(self, x: Tensor) -> Any:
        self.losses.append(x.mean().item())
        return x, list(self.losses), self.losses[:], {"mean": sum(self.losses) / len(self.losses)}


def test_of_floats_that_a_module_keeps() -> None:
    eager, static = Losses(), sg.to_static(Losses(), backend="eager")
    for x in XS:
        assert_same((eager(x), eager.losses), (static(x), static.losses))


KEPT: list[int] = []


def of_a_global(x: Tensor) -> Any:
    KEPT.append(4)
    return list(KEPT), KEPT + KEPT


def test_of_a_global() -> None:
    static = sg.to_static(of_a_global, backend="eager")
    found = []
    for function in (of_a_global, static):
        KEPT[:] = [1]
        found.append([function(x) for x in XS])
    assert_same(*found)
