"""What can be done with a list of which only the run knows the length (`trace/values/lists.py`)."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from torch.utils._pytree import tree_leaves

from stillgraph.operators.elements.references import is_there, refer, refer_to_taken
from stillgraph.program import operations
from stillgraph.program.constants import Known, is_constant
from stillgraph.program.types import TEXT, ListType, NumberType, ObjectType, TableType
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.code.frames import called
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.joined.elements import freeze_elements, may_repeat
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.region_interface import leaf_node
from stillgraph.trace.control_flow.spreads import as_spread, copied_into, each, element_at, is_spread
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.graph.typed_values import define
from stillgraph.trace.values import entries, list_columns, lists, number_failures
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.list_contents import is_plain
from stillgraph.trace.values.lists import StagedList, StagedSpread
from stillgraph.trace.values.numbers import StagedFloat, StagedInt, StagedNumber
from stillgraph.trace.values.operands import require_known, sample
from stillgraph.trace.values.text import StagedText
from stillgraph.trace.values.texts_of_paths import beside_text


# ---- reading
def length(capture: Session, value: Sequence[Any]) -> Any:
    """``len(value)``."""
    total: Any = sum(type(child) is not StagedSpread for child in value)
    for child in value:
        if type(child) is StagedSpread:
            total = total + _count(capture, child.columns[0])
    return total


def entry_count(capture: Session, container: Any) -> Any:
    """``len`` of a dict or set of which only the run knows all keys."""
    table = entries.table_of(container)
    return entries.length(container) if table is None else length(capture, table.keys)


def _count(capture: Session, column: StagedList) -> Any:
    node = capture.emit("call_function", len, (column,), {})
    return capture.number(capture.symbolic.fresh_size(), node)


def at(capture: Session, value: Sequence[Any], index: Any) -> Any:
    """``value[index]``, a whole number or slice; raises what Python raises, in the run."""
    if isinstance(index, slice):
        return _cut(capture, value, index)
    known = _known_element(value, index)
    if known is not _UNKNOWN:
        return known
    if isinstance(value, deque):
        _require_place(capture, value, index)
    whole = type(value) is list and (type(index) is int or isinstance(index, StagedInt))
    capture.before_failures(number_failures.indexing(list) if whole else None)
    element = element_at(capture, as_spread(capture, value), index)
    refer(capture, value, index, element)
    return element


_UNKNOWN = object()


def _known_element(value: Sequence[Any], index: Any) -> Any:
    """The element at a constant index, if it stands before (counted from the end: behind) everything unknown."""
    if not isinstance(index, int) or isinstance(index, StagedNumber):
        return _UNKNOWN
    run = value if index >= 0 else list(reversed(value))
    position = index if index >= 0 else -1 - index
    if position >= len(run) or lists.has_spread(list(run)[: position + 1]):
        return _UNKNOWN
    return run[position]


def _cut(capture: Session, value: Any, index: slice) -> Any:
    bounds = (index.start, index.stop, index.step)
    if isinstance(value, deque) or any(isinstance(each, StagedFloat) for each in bounds):
        require_known(bounds, "is the bound of a slice")
        type(value)()[slice(*map(sample, bounds))]  # to raise what Python raises
    if isinstance(index.step, StagedNumber):
        capture.before_raise(ValueError)
    kind = list if isinstance(value, list) else tuple  # what a slice of an object of a derived class is
    if all(bound is None for bound in bounds):
        return kind(value)
    if type(bounds[0]) is int and bounds == (1, None, None) and type(value[0]) is not StagedSpread:
        return kind(list(value)[1:])
    spread = as_spread(capture, value)
    return kind([each(capture, spread, operator.getitem, index)])


def contains(capture: Session, value: Sequence[Any], item: Any) -> Any:
    """``item in value``, for tensors, numbers and constants."""
    capture.before_risk()
    sought = _sought(capture, value, item)
    return capture.fresh_result(bool, capture.emit("call_function", operator.contains, sought, {}))


def _sought(capture: Session, value: Sequence[Any], item: Any) -> tuple[Any, Any]:
    """A list and what is looked for in it, as arguments of a node: of constants, their numbers."""
    ask_which_object(capture, (value, item))
    if isinstance(item, tuple) and any(type(child) is StagedSpread for child in value):
        return _rows_with(capture, value, item), True
    several = any(isinstance(child, (StagedSpread, Unjoined)) for child in value) and is_constant(item)
    element = lists.structure(value, capture.type_of) if several else None
    if not isinstance(element, lists.Leaf) or not isinstance(element.type, TableType):
        return list(value), item
    found = (entry for entry in element.type.entries if entry.value is item or entry.value == item)
    equal = [capture.entry_number(entry) for entry in found]
    if len(equal) > 1:  # such as 1 and True
        raise refuse_unknown("SG210", "a list is looked through in which several constants are equal", value)
    return as_spread(capture, value).columns[0], equal[0] if equal else _NO_ENTRY


_NO_ENTRY = -1


def _rows_with(capture: Session, value: Sequence[Any], item: tuple[Any, ...]) -> StagedList:
    """For each element of a list of tuples, whether it is equal to ``item``.

    Raises:
        CaptureError: the elements are no tuples of the same length, or hold other things than numbers and constants.
    """
    item = _as_others(as_spread(capture, value).element, item)
    spread = as_spread(capture, value, (item,))
    kinds = lists.types(spread.element)
    tables = [kind.entries for kind in kinds if isinstance(kind, TableType)]
    unlike = not all(isinstance(kind, (NumberType, TableType)) for kind in kinds)
    if unlike or any(_are_equal(table) for table in tables):
        raise refuse_unknown("SG210", "a list is looked through for a tuple of other things than numbers", value)
    cells = list_columns.columns(spread.element, (item,))
    values = tuple(leaf_node(capture, each.items[0], kind, "a tuple") for each, kind in zip(cells, kinds))
    node = capture.emit("call_function", operations.rows_with, (spread.columns, values), {})
    found: StagedList = define(capture, ListType(NumberType(bool)), node)
    return found


def _as_others(element: lists.Element, item: Any) -> Any:
    """A tuple as one of the type that the elements of a list have: they may be named tuples, which are equal to it."""
    if not isinstance(element, lists.Node) or not isinstance(item, tuple) or not issubclass(element.parts.type, tuple):
        return item
    if len(element.children) != len(item):
        return item
    return element.parts.rebuild([*map(_as_others, element.children, item)])


def rows_of(capture: Session, value: Sequence[Any]) -> tuple[StagedList, ...] | None:
    """The columns of a list of unknown length whose elements are tuples of numbers; None for any other.

    Raises:
        CaptureError: they are tuples of other things.
    """
    spread = as_spread(capture, value)
    if not isinstance(spread.element, lists.Node):
        return None
    kinds = lists.types(spread.element)
    are_numbers = all(type(kind) is NumberType and not kind.may_be_none for kind in kinds)
    if not (are_numbers and _is_row(spread.element)):
        raise refuse_unknown("SG210", "a list of tuples of other things than numbers is sorted", value)
    return spread.columns


def _is_row(element: lists.Element) -> bool:
    """Whether an element is a tuple that is compared as Python compares those, or a part of one."""
    if not isinstance(element, lists.Node):
        return True
    kind: Any = element.parts.type
    return issubclass(kind, tuple) and kind.__lt__ is tuple.__lt__ and all(map(_is_row, element.children))


def _are_equal(entries: Sequence[Known]) -> bool:
    """Whether some of several constants are equal, such as 1 and True."""
    return any(a.value == b.value for index, a in enumerate(entries) for b in entries[:index])


def ask_which_object(capture: Session, compared: Any) -> None:
    """Where a NaN is among what containers compare, numbers of the call are constants: identity is asked first."""
    if any(type(leaf) is float and leaf != leaf for leaf in tree_leaves(compared)):
        capture.needs_value(compared)


# ---- changing
def set_at(capture: Session, target: Any, index: Any, value: Any) -> None:
    """``target[index] = value``."""
    if isinstance(target, deque):
        _require_place(capture, target, index)
    if is_there(capture, target, index, value):
        return
    capture.before_risk()
    spread = as_spread(capture, target, (value,))
    cells = list_columns.columns(spread.element, (value,))
    _take_in(capture, spread, value)
    only = [items.items[0] for items in cells]
    _become(target, [each(capture, spread, operations.replaced, index, cells=only)])


def _take_in(capture: Session, spread: StagedSpread, value: Any) -> None:
    """Note that a value becomes one of the elements that a spread stands for."""
    if may_repeat(capture, spread.element, (spread, value)):
        capture.identities.repeat(spread)
    freeze_elements(capture, spread, ((value,),), is_older=lambda kept: True)


def set_known(capture: Session, target: list[Any], index: StagedNumber, value: Any) -> None:
    """``target[index] = value`` for a list of known length and an index that only the run knows."""
    if is_there(capture, target, index, value):
        return
    before = [*target]
    set_at(capture, target, index, value)
    (spread,) = target
    _become(target, [element_at(capture, spread, position, [each]) for position, each in enumerate(before)])


def put_into_deque(capture: Session, target: deque[Any], value: Any, at_left: bool) -> None:
    """``target.append(value)``, or ``appendleft``; what is too much for its maximal length leaves at the other end."""
    limit = target.maxlen
    if limit is None or not is_spread(target):
        (deque.appendleft if at_left else deque.append)(target, value)
        return
    contents = [value, *target] if at_left else [*target, value]
    _become(target, _cut(capture, contents, slice(limit) if at_left else slice(-limit, None)))


def delete_at(capture: Session, target: Any, index: Any) -> None:
    """``del target[index]``, which may be a slice."""
    if isinstance(target, deque):
        _require_place(capture, target, index)
    capture.before_risk()
    _become(target, [each(capture, as_spread(capture, target), operations.deleted, index)])


def _become(target: Any, contents: list[Any]) -> None:
    target.clear()
    target.extend(contents)


def _pop(capture: Session, target: Any, index: Any = -1) -> Any:
    known = _known_element(target, index)
    if known is not _UNKNOWN and isinstance(target, list):
        return target.pop(index)
    if isinstance(target, deque):
        _require(capture, length(capture, target) > 0, lambda: IndexError("pop from an empty deque"))
    capture.before_risk()
    spread = as_spread(capture, target)
    rest = each(capture, spread, operations.popped, index)
    element = element_at(capture, spread, index, copied_into(capture, spread))
    _become(target, [rest])
    refer_to_taken(capture, target, element)
    return element


def _popleft(capture: Session, target: Any) -> Any:
    if type(target[0]) is not StagedSpread:
        return target.popleft()
    return _pop(capture, target, 0)


def _insert(capture: Session, target: Any, index: Any, value: Any) -> None:
    if isinstance(target, deque) and target.maxlen is not None:
        has_room = length(capture, target) < target.maxlen
        _require(capture, has_room, lambda: IndexError("deque already at its maximum size"))
    if type(index) is int and index == 0:
        _become(target, [value, *target])
        return
    spread = as_spread(capture, target, (value,))
    cells = [items.items[0] for items in list_columns.columns(spread.element, (value,))]
    _take_in(capture, spread, value)
    _become(target, [each(capture, spread, operations.inserted, index, cells=cells)])


def _reverse(capture: Session, target: Any) -> None:
    turned = [
        each(capture, child, operator.getitem, slice(None, None, -1)) if type(child) is StagedSpread else child
        for child in reversed(target)
    ]
    _become(target, turned)


def _remove(capture: Session, target: Any, value: Any) -> None:
    if isinstance(target, deque):
        there = contains(capture, target, value)
        _require(capture, there, lambda: ValueError(_missing(capture, target, value)))
    capture.before_risk()
    node = capture.emit("call_function", operations.found_to_remove, _sought(capture, target, value), {})
    delete_at(capture, target, capture.fresh_result(int, node))


def _index(capture: Session, target: Any, value: Any, *bounds: Any) -> Any:
    sought = _sought(capture, target, value)
    if not isinstance(target, list) or sought[1] is not value:  # the run's own message would be another
        within = at(capture, list(target), slice(*(*bounds, None)[:2])) if bounds else target
        there = contains(capture, within, value)
        _require(capture, there, lambda: ValueError(_missing(capture, target, value)))
    capture.before_risk()
    return capture.fresh_result(int, capture.emit("call_method", "index", (*sought, *bounds), {}))


def _require(capture: Session, holds: Any, error: Callable[[], Exception]) -> None:
    """Raise, in the run, what Python raises where a condition does not hold."""

    def fail() -> NoReturn:
        emit_raise(capture, error())
        raise Diverged

    if holds is False:
        fail()
    if holds is not True:
        branch(capture, holds, lambda: None, fail, (), ())


def _require_place(capture: Session, target: deque[Any], index: Any) -> None:
    """Raise what a deque raises where it has no element at an index: the program has lists."""
    if not isinstance(index, (int, StagedNumber)):
        operator.getitem(deque((0,)), index)  # Python says what is no index
    count = length(capture, target)
    _require(capture, (index < count) & (index >= -count), lambda: IndexError("deque index out of range"))


def _missing(capture: Session, target: Any, value: Any) -> Any:
    if isinstance(target, tuple):
        return "tuple.index(x): x not in tuple"
    template = f"{{!r}} is not in {'list' if isinstance(target, list) else 'deque'}"
    return StagedText(capture, template, (value,)) if holds_staged(value) else template.format(value)


def _count_of(capture: Session, target: Any, value: Any) -> Any:
    return capture.fresh_result(int, capture.emit("call_method", "count", _sought(capture, target, value), {}))


METHODS: dict[str, Callable[..., Any]] = {
    "pop": _pop,
    "popleft": _popleft,
    "insert": _insert,
    "reverse": _reverse,
    "remove": _remove,
    "index": _index,
    "count": _count_of,
}
"""Methods of lists and deques that need to know their elements. Append, extend, clear and copy do not."""

SAFE_METHODS = frozenset({"append", "appendleft", "extend", "clear", "copy", "__iadd__", "__add__", "__contains__"})


def in_order(capture: Session, value: Sequence[Any], order: Any) -> list[Any]:
    """The elements at the indices that the node ``order`` computes, in that order."""
    return [each(capture, as_spread(capture, value), operations.taken, order)]


def are_texts(capture: Session, value: Sequence[Any]) -> bool:
    """Whether the elements of a list of unknown length are texts."""
    element = as_spread(capture, value).element
    return isinstance(element, lists.Leaf) and isinstance(beside_text(element.type), ObjectType)


def joined(capture: Session, separator: str, value: Sequence[Any]) -> Any:
    """``separator.join(value)``, for a list of unknown length of texts."""
    capture.before_risk()  # there may be None among them
    return define(capture, TEXT, capture.emit("call_method", "join", (separator, list(value)), {}))


def extreme(function: Callable[..., Any], value: Sequence[Any]) -> Any:
    """``min(value)`` or ``max(value)`` of tensors, numbers or texts."""
    capture = capturing()
    capture.before_risk()
    spread = as_spread(capture, list(value))
    if are_texts(capture, [spread]):
        return define(capture, TEXT, capture.emit("call_function", function, (list(value),), {}))
    if not is_plain(spread.element) or not isinstance(spread.element, lists.Leaf):
        message = f"{function.__name__} of a list of unknown length whose elements are not tensors or numbers"
        raise refuse_unknown("SG210", message, value)
    return define(capture, spread.element.type, capture.emit("call_function", function, (spread.columns[0],), {}))


__all__ = ["METHODS", "SAFE_METHODS", "is_spread"]


def call_method(capture: Session, target: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a list of unknown length.

    Raises:
        CaptureError: it has no meaning for one.
    """
    if name not in METHODS:
        raise refuse_unknown("SG210", f"the method {name} of {called(target)}, a list of unknown length", target)
    return METHODS[name](capture, target, *args, **kwargs)
