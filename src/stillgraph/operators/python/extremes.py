"""`min` and `max` of values that only the run knows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.diagnostics import InternalError
from stillgraph.core.lookup import class_member
from stillgraph.operators.conditions.branches import if_exp
from stillgraph.operators.consumers.comprehensions import list_of
from stillgraph.operators.consumers.consumers import is_looped_over, known_or_list
from stillgraph.operators.dispatch import call
from stillgraph.operators.elements import lists
from stillgraph.operators.objects.comparisons import ordered
from stillgraph.polyfills.extremes import largest, smallest
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.control_flow.both_sides import several_in
from stillgraph.trace.control_flow.spreads import as_spread
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.lists import Node
from stillgraph.trace.values.numbers import StagedNumber, is_number, kind_of


def _staged(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_staged, value))
    if isinstance(value, (torch.Tensor, StagedNumber)) or several_in((value,)) is not None:
        return True
    return isinstance(class_member(type(value), "__lt__"), FunctionType) and holds_staged(value)


def _extreme(function: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def extreme(first: Any, /, *others: Any, key: Any = None, **default: Any) -> Any:
        values = (first, *others)
        if not others and key is not None and is_looped_over(first):
            return _extreme_by_key(function, first, key, default)
        if len(values) == 1 and not isinstance(values[0], torch.Tensor):
            values = (known_or_list(values[0]),)
        items = list(values[0]) if len(values) == 1 else list(values)
        if lists.is_spread(items):
            return _extreme_of_spread(function, items, key, default)
        if not any(_staged(v) for v in items) and key is None:
            return function(items, **default)
        if not items:
            return function(items, key=key, **default)
        if key is None and all(is_number(v) for v in items) and len({kind_of(v) for v in items}) == 1:
            return _fold_numbers(function, items)
        def measure(value: Any) -> Any:
            return value if key is None else call(key, value)

        best, rank = items[0], measure(items[0])
        for item in items[1:]:
            candidate = measure(item)
            test = better(candidate, rank)
            best, rank = _pick(test, (item, candidate), (best, rank))
        return best

    return extreme


EXTREMES = {min: _extreme(min, ordered(operator.lt)), max: _extreme(max, ordered(operator.gt))}


def _extreme_by_key(function: Callable[..., Any], iterable: Any, key: Any, default: dict[str, Any]) -> Any:
    """``max(iterable, key=key)`` of what a loop draws from: each element is measured before the next is drawn."""
    pairs = list_of(iterable, lambda item: (item, call(key, item)))
    if not lists.is_spread(pairs):
        if not pairs:
            return function(pairs, **default)
        return EXTREMES[function](pairs, key=lambda pair: pair[1])[0]
    items, keys = list_of(pairs, lambda pair: pair[0]), list_of(pairs, lambda pair: pair[1])
    if "default" in default:
        return if_exp(items, lambda: _of_largest(function, items, keys), lambda: default["default"])
    return _of_largest(function, items, keys)


def _of_largest(function: Callable[..., Any], items: list[Any], keys: list[Any]) -> Any:
    index = lists.METHODS["index"](capturing(), keys, lists.extreme(function, keys))
    return lists.at(capturing(), items, index)


def _extreme_of_spread(function: Callable[..., Any], items: list[Any], key: Any, default: dict[str, Any]) -> Any:
    if "default" in default:
        return if_exp(items, lambda: _extreme_of_spread(function, items, key, {}), lambda: default["default"])
    if key is None and isinstance(as_spread(capturing(), items).element, Node):
        return capturing().conversion.convert(_IN_TURN[function])(items, _said_of_none(function))
    if key is None:
        return lists.extreme(function, items)
    return _of_largest(function, items, list_of(items, lambda item: call(key, item)))


def _said_of_none(function: Callable[..., Any]) -> str:
    """What Python says where there is nothing to choose from."""
    try:
        function([])
    except ValueError as error:
        return str(error)
    raise InternalError(f"{function.__name__} of nothing is something")


_IN_TURN: dict[Any, Any] = {min: smallest, max: largest}


def _pick(test: Any, left: Any, right: Any) -> Any:
    return if_exp(test, lambda: left, lambda: right)


def _fold_numbers(function: Callable[..., Any], items: list[Any]) -> Any:
    best = items[0]
    for item in items[1:]:
        best = capturing().number_operation(function, (best, item))
    return best
