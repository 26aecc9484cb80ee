"""``sorted`` and ``list.sort``: the program asks Python for the order of keys that only the run knows."""

from __future__ import annotations

import operator
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.consumers.comprehensions import list_of
from stillgraph.operators.consumers.consumers import known_or_list
from stillgraph.operators.containers.drawing import listed
from stillgraph.operators.dispatch import call
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.picking import pick
from stillgraph.operators.objects.changes import change, note_contents
from stillgraph.operators.objects.comparisons import as_compared, has_generated_order, has_own_order
from stillgraph.polyfills.ordered import order_of
from stillgraph.program.operations import sort_order, sort_rows
from stillgraph.program.types import ListType, NumberType
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.aliases import mutable_containers
from stillgraph.trace.control_flow.both_sides import several_in
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, is_leaf
from stillgraph.trace.control_flow.spreads import as_spread, have_structure
from stillgraph.trace.values.containers import holds_staged, instance_parts
from stillgraph.trace.values.lists import Node
from stillgraph.trace.values.numbers import StagedNumber, plain
from stillgraph.trace.values.several import known_in


def sorted_(iterable: Any, *, key: Any = None, reverse: bool = False) -> list[Any]:
    """``sorted(iterable, key=key, reverse=reverse)``."""
    capture = capturing()
    items = list(known_or_list(iterable, listed))
    of_any_length = lists.is_spread(items)
    if of_any_length:
        keys = items if key is None else list_of(items, lambda item: call(key, item))
    else:
        keys = items if key is None else [call(key, item) for item in items]
    kinds = _kinds(capture, keys)
    if any(map(has_own_order, kinds)):
        return _in_own_order(capture, items, keys, reverse)
    if of_any_length:
        keys = list_of(keys, as_compared) if any(map(has_generated_order, kinds)) else keys
        return _spread_in_order(capture, items, keys, reverse)
    keys = [*map(as_compared, keys)] if len({*map(type, keys)}) == 1 else keys
    keys = _deciding(_ranked(capture, keys))
    leaves = torch.utils._pytree.tree_leaves(keys)
    if not any(isinstance(leaf, (torch.Tensor, StagedNumber)) for leaf in leaves):
        return [items[index] for index in sort_order(keys, reverse)]
    if not items:
        return []
    if any(map(_may_change, items)) and have_structure(capture, items):
        return _spread_in_order(capture, items, keys, reverse)
    return _in_order(capture, items, keys, reverse)


def _kinds(capture: Session, keys: list[Any]) -> set[type]:
    """The user's classes of keys of which only the run knows all parts."""
    if not lists.is_spread(keys):
        return {type(key) for key in keys if instance_parts(key) is not None and holds_staged(key)}
    element = as_spread(capture, keys).element
    return {element.parts.type} if isinstance(element, Node) else set()


def _in_own_order(capture: Session, items: list[Any], keys: list[Any], reverse: Any) -> list[Any]:
    """A list in the order of keys of which a method of the user's says which is less."""
    order = capture.conversion.convert(_ORDER_OF)(keys, reverse)
    if not order:
        return []
    if not lists.is_spread(items) and not have_structure(capture, items):
        return [pick(capture, items, place) for place in order]
    return lists.in_order(capture, items, as_spread(capture, order).columns[0])


_ORDER_OF: Any = order_of


def _may_change(item: Any) -> bool:
    """Whether an element is, or holds, an object that can be changed."""
    return not is_leaf(item) and any(True for _ in mutable_containers(item))


def _ranked(capture: Session, keys: list[Any]) -> list[Any]:
    """Keys with numbers that order them in the place of texts, where paths leave one of several texts.

    Raises:
        CaptureError: a place has texts on one path and something else on another.
    """
    if several_in(keys) is None:
        return keys
    if all(type(key) is tuple for key in keys):
        if len({*map(len, keys)}) == 1:
            return list(zip(*(_ranked(capture, list(column)) for column in zip(*keys))))
        raise refuse("SG301", "tuples of several lengths are sorted in which paths leave texts", location=here())
    tables = [known_in(key) for key in keys]
    held = [entry.value for table in tables for entry in table or ()]
    if not all(tables) or any(type(value) is not str for value in held):
        raise refuse("SG301", "texts that paths leave are sorted with other values", location=here())
    ranks = {value: rank for rank, value in enumerate(sorted({*held}))}
    return [_rank(capture, key, ranks) for key in keys]


def _rank(capture: Session, key: Any, ranks: dict[str, int]) -> Any:
    if not isinstance(key, Unjoined):
        return ranks[key]
    table = {capture.entry_number(entry): ranks[entry.value] for entry in known_in(key) or ()}
    return pick(capture, [table.get(number, 0) for number in range(max(table) + 1)], capture.entry_of(key))


def _deciding(keys: list[Any]) -> list[Any]:
    """What tells the keys apart: of tuples with other names or whole numbers in front, just these."""
    if not keys or any(type(key) is not tuple for key in keys):
        return keys
    for length in range(1, min(map(len, keys)) + 1):
        if any(type(key[length - 1]) not in (str, int) for key in keys):
            return keys
        front = {key[:length] for key in keys}
        if len(front) == len(keys):
            return [key[:length] for key in keys]
    return keys


def _spread_in_order(capture: Session, items: list[Any], keys: list[Any], reverse: Any) -> list[Any]:
    """A list of which only the run knows the length, in the order of the keys."""
    if not isinstance(reverse, (bool, int)):
        raise refuse("SG301", "only the run knows which way to sort", location=here())
    capture.before_risk()
    rows = lists.rows_of(capture, keys)
    by, given = (sort_order, list(keys)) if rows is None else (sort_rows, rows)
    order = capture.emit("call_function", by, (given, bool(reverse)), {})
    order.meta["val"] = ListType(NumberType(int))
    return lists.in_order(capture, items, order)


def _in_order(capture: Session, items: list[Any], keys: list[Any], reverse: Any) -> list[Any]:
    if not isinstance(reverse, (bool, int)):
        raise refuse("SG301", "only the run knows which way to sort", location=here())
    capture.before_risk()  # comparing tensors of several elements raises
    order = capture.emit("call_function", sort_order, (keys, bool(reverse)), {})
    indices = []
    for position in range(len(items)):
        node = capture.region.graph.create_node("call_function", operator.getitem, (order, position))
        node.meta.update(order.meta)
        indices.append(capture.fresh_result(int, node))
    order.meta["val"] = tuple(map(plain, indices))
    return [pick(capture, items, index) for index in indices]


def sort(target: list[Any], *, key: Any = None, reverse: bool = False) -> None:
    """``target.sort(key=key, reverse=reverse)``."""
    ordered = sorted_(target, key=key, reverse=reverse)

    def done() -> None:
        note_contents(target)
        target[:] = ordered

    change(target, "__setitem__", (slice(None), ordered), done)
