"""Comparisons: `==`, `!=`, `<` and its kin, and `in`."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from numbers import Number
from types import FunctionType
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import class_member, is_exactly
from stillgraph.operators import dispatch
from stillgraph.operators.conditions.methods import compared, method_of
from stillgraph.operators.conditions.truth import truth_number
from stillgraph.operators.containers import entries, tables
from stillgraph.operators.containers.drawing import drawn
from stillgraph.operators.containers.sequences import Listed, StagedEntries
from stillgraph.operators.containers.table_methods import Items
from stillgraph.operators.dispatch import call
from stillgraph.operators.each import Case, of_each
from stillgraph.operators.elements import lists
from stillgraph.operators.objects import part_by_part
from stillgraph.operators.objects.attributes import attr
from stillgraph.operators.objects.booleans import and_, not_, or_
from stillgraph.operators.objects.identity import is_
from stillgraph.operators.objects.namespaces import note_name
from stillgraph.program.constants import is_constant
from stillgraph.trace.capture.session import Session, capturing, session
from stillgraph.trace.code.frames import called, here
from stillgraph.trace.control_flow.both_sides import require_one_object, several_in
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.narrowing import exchanged
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.guards.one_object import is_told_by_identity
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.caught import Caught
from stillgraph.trace.values.entries import container_of, find, holds_unknown, some_keys
from stillgraph.trace.values.number_operands import UNEQUAL, equal_number
from stillgraph.trace.values.numbers import Staged, StagedNumber, is_of_numpy, kinds_of
from stillgraph.trace.values.operands import unsupported
from stillgraph.trace.values.text import StagedText


@dispatch.eq.defined
@of_each(0, 1, cases=Case.NONE)
def eq(left: Any, right: Any) -> Any:
    """``left == right``; containers of what only the run knows are compared in the run."""
    capture = session()
    if capture is not None and isinstance(left, torch.Tensor) and isinstance(right, Unjoined):
        return right.either(lambda one: eq(left, one))  # a tensor leaves it to some of them to answer
    known = _comparable(left, right)
    if known is not None:
        return known
    by_method = None if capture is None else compared("__eq__", left, right)
    return left == right if by_method is None else by_method[0]


def equal(left: Any, right: Any) -> Any:
    """``left == right``, of which only the truth is asked: that of a scalar of numpy's and a number is known."""
    for number, other in ((left, right), (right, left)):
        if isinstance(number, StagedNumber) and is_of_numpy(other):
            known = {equal_number(kind, other) for kind in kinds_of(number)}
            if len(known) == 1 and None not in known:
                return False if known == {UNEQUAL} else eq(number, known.pop())
    return eq(left, right)


@of_each(0, 1, cases=Case.NONE)
def ne(left: Any, right: Any) -> Any:
    """``left != right``."""
    capture = session()
    if capture is not None and isinstance(left, torch.Tensor) and isinstance(right, Unjoined):
        return right.either(lambda one: ne(left, one))  # a tensor leaves it to some of them to answer
    known = _comparable(left, right)
    if known is not None:
        return not_(known)
    by_method = None if capture is None else compared("__ne__", left, right)
    return left != right if by_method is None else by_method[0]


def ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``left < right`` and its kin, of which Python asks sets for their length."""
    name = f"__{compare.__name__}__"

    @of_each(0, 1, cases=Case.UNJOINED)
    def ask(left: Any, right: Any) -> Any:
        is_asked = isinstance(left, (set, frozenset, KeysView, ItemsView)) and session() is not None
        if is_asked and any(container_of(side) is not None for side in (left, right)):
            return _sets_in_order(compare, left, right)
        left, right = _in_order(name, left, right)
        in_run = _ordered_in_run(compare, left, right)
        if in_run is not None:
            return in_run
        by_method = None if session() is None else compared(name, left, right)
        return compare(left, right) if by_method is None else by_method[0]

    return ask


def _sets_in_order(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """``left < right`` and its kin, for two sets of which one has elements on some paths only."""
    capture = capturing()
    if not isinstance(left, (set, frozenset)) or not part_by_part.is_compared(left, right):
        _refuse_comparing(left, right)
    least, most = (left, right) if compare in (operator.lt, operator.le) else (right, left)
    within = part_by_part.is_within(capture, least, most)
    if compare in (operator.le, operator.ge):
        return within
    return and_(within, lambda: not_(part_by_part.equal_by_keys(capture, left, right)))


def _refuse_comparing(*sides: Any) -> NoReturn:
    unknown = next(side for side in sides if holds_unknown(side))
    raise refuse_unknown("SG211", f"{called(unknown)}, {some_keys(unknown)}, is compared", unknown)


def _in_order(name: str, left: Any, right: Any) -> tuple[Any, Any]:
    """Two objects of a class made by ``dataclass(order=True)`` as the tuples that it compares; others as they are."""
    if type(left) is not type(right):
        return left, right
    return as_compared(left, name), as_compared(right, name)


def as_compared(value: Any, name: str = "__lt__") -> Any:
    """An object of a class made by ``dataclass(order=True)`` as the tuple that it compares; any other as it is."""
    capture = session()
    if capture is None or not dataclasses.is_dataclass(value) or not _is_generated(class_member(type(value), name)):
        return value
    names = [each.name for each in dataclasses.fields(value) if each.compare]
    capture.reads.attributes.extend((value, name) for name in names)
    return tuple(attr(value, name) for name in names)


def _ordered_in_run(compare: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Which of two tuples or lists comes first where only the run knows the numbers in them; None for any others.

    Where there is a tensor in them, Python gives what comparing that gives, which need not be a truth value.
    """
    capture = session()
    if capture is None or not any(isinstance(left, kind) and isinstance(right, kind) for kind in (tuple, list)):
        return None
    if part_by_part.holds_several(left, right):
        return part_by_part.in_order(capture, ordered(compare), left, right)
    if not (_holds_staged(left) or _holds_staged(right)) or _holds_tensor(left) or _holds_tensor(right):
        return None
    capture.before_risk()  # not all can be compared
    return capture.fresh_result(bool, capture.emit("call_function", compare, (left, right), {}))


def _holds_tensor(value: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in torch.utils._pytree.tree_leaves(value))


def _comparable(left: Any, right: Any) -> Any:
    """Whether two containers are equal, as Python compares them; None for anything that Python may compare itself."""
    capture = session()
    if capture is not None and isinstance(left, torch.nn.Module) and isinstance(right, torch.nn.Module):
        capture.compared = True  # they are equal to themselves alone
    if capture is None or left is right:
        return None
    if any(map(capture.identities.is_another, (left, right))) and type(left).__eq__ is type(right).__eq__:
        return is_(left, right)
    if isinstance(left, Caught) or isinstance(right, Caught):
        return _equals_caught(capture, left, right)
    if container_of(left) is not None or container_of(right) is not None:
        if not part_by_part.is_compared(left, right):
            _refuse_comparing(left, right)
        return part_by_part.equal_by_keys(capture, left, right)
    is_apart = holds_unknown(left) or holds_unknown(right)
    if isinstance(left, (Listed, Items)) or isinstance(right, (Listed, Items)):
        raise refuse("SG211", "keys or values that only the run knows are compared", location=here())
    if isinstance(left, torch.Size) or isinstance(right, torch.Size):  # which is equal to a tuple
        left, right = (tuple(side) if isinstance(side, torch.Size) else side for side in (left, right))
    if type(left) is not type(right):
        return _refuse_comparing(left, right) if is_apart else None
    if dataclasses.is_dataclass(left) and _is_generated(type(left).__eq__):
        names = [each.name for each in dataclasses.fields(left) if each.compare]
        capture.reads.attributes.extend((side, name) for side in (left, right) for name in names)
        return eq(*(tuple(attr(side, name) for name in names) for side in (left, right)))
    if not isinstance(left, (list, tuple, dict, collections.deque)) or isinstance(left, collections.Counter):
        return None
    if is_apart and any(map(lists.is_spread, (left, right))):
        _refuse_comparing(left, right)
    if is_apart or part_by_part.holds_several(left, right) or _holds_ordered(left):
        return part_by_part.equal(capture, left, right)
    if not _holds_staged(left) and not _holds_staged(right):
        return None
    capture.before_risk()  # tensors of several elements have no one truth value
    lists.ask_which_object(capture, (left, right))
    sides = tuple(list(side) if isinstance(side, collections.deque) else side for side in (left, right))
    return capture.fresh_result(bool, capture.emit("call_function", operator.eq, sides, {}))


def _equals_caught(capture: Session, left: Any, right: Any) -> Any:
    """``left == right``, where one is an exception that the program has caught: most are equal to themselves alone."""
    for side in (left, right):
        kind = side.stands_for if isinstance(side, Caught) else type(side)
        if isinstance(side, BaseException) and class_member(kind, "__eq__") is not class_member(object, "__eq__"):
            message = f"an exception is compared whose class, {kind.__name__}, has an __eq__ of its own"
            raise refuse("SG301", message, location=here())
    return is_(left, right)


def has_generated_order(kind: type) -> bool:
    """Whether ``dataclass(order=True)`` has made a class."""
    return dataclasses.is_dataclass(kind) and _is_generated(class_member(kind, "__lt__"))


def has_own_order(kind: type) -> bool:
    """Whether a method of a class that is written in Python says which of two objects is less."""
    return isinstance(class_member(kind, "__lt__"), FunctionType) and not has_generated_order(kind)


def _is_generated(method: Any) -> bool:
    """Whether a method is one that ``dataclass`` has written."""
    return isinstance(method, FunctionType) and method.__code__.co_filename == "<string>"


def _holds_ordered(container: Any) -> bool:
    """Whether a container is or holds a dict whose order counts: in a graph it would be a plain one."""
    if isinstance(container, collections.OrderedDict):
        return True
    parts = container.values() if isinstance(container, dict) else container
    return any(_holds_ordered(part) for part in parts if isinstance(part, (list, tuple, dict, collections.deque)))


def _holds_staged(container: Any) -> bool:
    parts = container.values() if isinstance(container, dict) else container
    return any(
        _holds_staged(part) if isinstance(part, (list, tuple, dict)) else isinstance(part, Staged) or _staged(part)
        for part in parts
    )


@of_each(1)
@of_each(0, cases=Case.NONE)
def in_(item: Any, container: Any) -> Any:
    """``item in container``."""
    capture = session()
    if capture is None:
        return item in container
    capture.settling.require_current(container)
    if isinstance(item, Unjoined):
        ask = item.asks if _holds_constants(container) else item.either
        return ask(lambda v: in_(v, container))
    several = several_in(item) if isinstance(container, (dict, set, frozenset)) else None
    if several is not None:
        return several.either(lambda v: in_(exchanged(item, several, v), container))
    capture.compared = capture.compared or (is_told_by_identity(item) and not isinstance(container, torch.Tensor))
    method = method_of(container, "__contains__")
    if method is not None:
        return truth_number(capture, call(method, container, item))
    text = next((each for each in (container, item) if isinstance(each, StagedText)), None)
    if text is not None and isinstance(container, str):
        return text.stillgraph_computed(operator.contains, container, item)
    if lists.is_spread(container):
        return lists.contains(capture, container, item)
    if isinstance(container, (list, tuple, dict, set, frozenset)) and holds_unknown(item):
        raise refuse("SG211", "a dict or set is looked for that has a key on some paths only", location=here())
    if entries.is_staged_key(container, item):
        return entries.has(capture, container, item)
    if tables.is_by_table(container, item):
        return tables.has(capture, container, item)
    if class_member(type(container), "__contains__") is None:
        if isinstance(container, Iterator):
            return _drawn_until_found(item, container)
        container = drawn(container)
    else:
        container = capture.iterators.to_draw_from(container)
    if isinstance(container, (dict, set, frozenset, KeysView)) and isinstance(item, Caught):
        raise refuse("SG301", "a caught exception is looked up, which is only known at run time", location=here())
    if isinstance(container, (dict, set, frozenset)):
        require_one_object(item)
        note_name(container, item)
        known = find(container, item)
        return item in container if known is None else known.present
    if isinstance(container, (KeysView, ValuesView, ItemsView)) and container_of(container) is not None:
        return entries.contains(container, item)
    if isinstance(container, StagedEntries):
        return entries.contains(container, item)
    if isinstance(container, (list, tuple)) and holds_unknown(container):
        message = "a list or tuple is looked through in which a dict or set has a key on some paths only"
        raise refuse("SG211", message, location=here())
    if isinstance(container, torch.Tensor) or (isinstance(container, StagedArray) and not container.scalar):
        return truth_number(capture, _in_tensor(item, container))
    sequence = (item, *container) if isinstance(container, (list, tuple)) else ()
    parts = [each for each in sequence if type(each) is not str]
    if _holds_staged(parts) or any(map(capture.identities.is_another, parts)):
        return _in_sequence(capture, item, container)
    if isinstance(item, Staged) and isinstance(container, (str, bytes)):
        return unsupported(operator.contains, container, item)
    return item in container


def _in_tensor(item: Any, container: Any) -> Any:
    """``item in container``, for a tensor or array: what stands for its truth."""
    if isinstance(container, torch.Tensor) and not isinstance(item, (torch.Tensor, Number, StagedNumber)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(item)}.")
    by_item = isinstance(item, torch.Tensor) and isinstance(container, torch.Tensor)
    found = item.eq(container) if by_item else operator.eq(container, item)
    return found.any()


def _holds_constants(container: Any) -> bool:
    """Whether to look something up in a container does nothing else: it is Python's, and holds constants."""
    return is_exactly(container, (tuple, list, set, frozenset, dict)) and all(map(is_constant, container))


def _drawn_until_found(item: Any, iterable: Any) -> Any:
    """``item in iterable`` for an iterator, of which no more is drawn than is needed."""
    return call(any, call(map, lambda value: value is item or eq(item, value), iterable))


def _staged(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, StagedNumber, Unjoined))


def _in_sequence(capture: Session, item: Any, container: Any) -> Any:
    found = next((index for index, value in enumerate(container) if item is value), None)
    tests: list[Callable[[], Any]] = [functools.partial(equal, item, value) for value in container[:found]]
    if found is not None:
        tests.append(lambda: True)  # Python looks no further; what stands before it is compared all the same
    return truth_number(capture, or_(tests[0](), *tests[1:])) if tests else False
