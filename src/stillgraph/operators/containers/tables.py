"""Dicts and sets by keys that are numbers which only the run knows, or tuples of such.

Such a dict is a list of keys beside one of values, in the order of insertion (`trace.entries.Table`): a key is looked
for among them in the run, so that 1, 1.0 and True are one key, as in Python. What a program leaves is a real dict.
"""

from __future__ import annotations

import collections
import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import class_member
from stillgraph.operators.conditions.branches import select
from stillgraph.operators.containers.entries import FEW, is_staged_key
from stillgraph.operators.dispatch import call
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.picking import pick
from stillgraph.operators.elements.references import is_there, refer_to
from stillgraph.program.types import JoinFailure
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.code.frames import called, here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.aliases import mutable_containers
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.spreads import only_if
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.heap.contents import replace_contents
from stillgraph.trace.heap.places import ContentsPlace
from stillgraph.trace.values.entries import (
    KINDS_OF_DICT,
    Table,
    dict_parts,
    gathered,
    is_of_run,
    is_ranked,
    is_sought,
    require_numbers,
    set_parts,
    table_of,
)
from stillgraph.trace.values.list_contents import is_mutable
from stillgraph.trace.values.lists import StagedSpread
from stillgraph.trace.values.numbers import StagedNumber


def is_by_table(container: Any, *keys: Any) -> bool:
    """Whether keys of a dict or set have to be looked for in the run."""
    if type(container) not in (dict, set, frozenset, *KINDS_OF_DICT):
        return False
    return table_of(container) is not None or any(map(is_of_run, keys))


def is_looked_up(container: Any, key: Any) -> bool:
    """Whether reading by a key is not what `entries.look_up` does for a dict of known keys."""
    return is_by_table(container, key) and (not container or not is_staged_key(container, key))


def as_table(container: Any) -> Table:
    """The keys of a dict or set, and its values.

    Raises:
        CaptureError: a key is no number, or only the run knows the order of the keys.
    """
    table = table_of(container)
    if table is not None:
        return table
    if is_ranked(container):
        raise refuse_unknown("SG211", f"{called(container)} has keys in another order on each path", container)
    keys, children = dict_parts(container) if isinstance(container, dict) else set_parts(container)
    try:
        require_numbers(keys)
    except JoinFailure as failure:
        raise refuse("SG211", failure.message, location=here()) from failure
    capture = capturing()
    return Table(*gathered(keys, children, isinstance(container, dict), functools.partial(only_if, capture)))


# ---- looking
def has(capture: Session, container: Any, key: Any) -> Any:
    """``key in container``."""
    return among(capture, as_table(container).keys, key)


def among(capture: Session, keys: list[Any], key: Any) -> Any:
    if not keys:
        return False
    if any(each is key for each in keys):
        return True  # be it NaN
    lists.ask_which_object(capture, (keys, key))
    if not is_sought(key):
        raise refuse("SG211", f"{key!r} is looked for among keys that only the run knows", location=here())
    if _are_few(keys):
        return functools.reduce(operator.or_, (_equals(key, each) for each in keys), False)
    return lists.contains(capture, keys, key)


def _equals(left: Any, right: Any) -> Any:
    """``left == right``, of two keys."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        pairs = zip(left, right) if len(left) == len(right) else ()
        return functools.reduce(operator.and_, itertools.starmap(_equals, pairs), len(left) == len(right))
    numbers = [isinstance(each, (int, float, StagedNumber)) for each in (left, right)]
    return left == right if numbers[0] == numbers[1] else False


def _are_few(keys: list[Any]) -> bool:
    """Whether keys are compared one by one, which every lowering can do."""
    return not lists.is_spread(keys) and len(keys) <= FEW


def index_of(capture: Session, keys: list[Any], key: Any) -> Any:
    if _are_few(keys):
        return sum(position * _equals(key, each) for position, each in enumerate(keys))
    return lists.METHODS["index"](capture, keys, key)


def value_at(capture: Session, container: dict[Any, Any], key: Any) -> Any:
    """What a dict has by a key that is there."""
    table = as_table(container)
    assert table.values is not None
    index = index_of(capture, table.keys, key)
    if not lists.is_spread(table.values):
        return pick(capture, table.values, index)
    element = lists.at(capture, table.values, index)

    def exchange(values: list[Any]) -> None:
        become(container, Table(as_table(container).keys, values))

    refer_to(capture, container, key, lambda: as_table(container).values, exchange, index, element)
    return element


def at(capture: Session, container: dict[Any, Any], key: Any) -> Any:
    """``container[key]``: raises ``KeyError`` in the run where there is none."""
    table = as_table(container)
    there = among(capture, table.keys, key)
    missing: Any = class_member(type(container), "__missing__")
    if isinstance(container, collections.Counter):
        return choose(capture, there, lambda: value_at(capture, container, key), lambda: 0)
    if isinstance(container, collections.defaultdict) and container.default_factory is not None:
        return setdefault(capture, container, key, functools.partial(call, container.default_factory))
    if missing is not None and not isinstance(container, collections.defaultdict):
        raise refuse_unknown("SG211", f"{called(container)} has a __missing__ of its own", container)
    require(capture, there, key)
    return value_at(capture, container, key)


def require(capture: Session, there: Any, key: Any) -> None:
    """Let the program raise ``KeyError`` where a key is missing."""

    raise_unless(capture, there, lambda: KeyError(key))


def raise_unless(capture: Session, holds: Any, make: Callable[[], Exception]) -> None:
    """Let the program raise an exception where a condition does not hold; where it is known not to, Python does."""

    def fails() -> None:
        emit_raise(capture, make())
        raise Diverged

    if holds is False:
        raise make()
    if holds is not True:
        branch(capture, holds, lambda: None, fails, (), ())


def choose(capture: Session, there: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    if isinstance(there, bool):
        return then() if there else otherwise()
    return select(capture, there, then, otherwise)


def count(capture: Session, table: Table) -> Any:
    """How many keys there are."""
    return lists.length(capture, table.keys) if lists.is_spread(table.keys) else len(table.keys)


# ---- changing; the contents are noted already
def put(capture: Session, container: Any, key: Any, *value: Any) -> None:
    """``container[key] = value``, or ``container.add(key)``."""
    if value and is_there(capture, container, key, *value):
        return
    table = as_table(container)

    def exchange() -> None:
        if value:
            capture.journal.note(ContentsPlace(container))
            become(container, Table(table.keys, _exchanged(capture, table, key, *value)))

    def add() -> None:
        capture.journal.note(ContentsPlace(container))
        values = None if table.values is None else [*table.values, *value]
        become(container, Table([*table.keys, key], values))

    there = among(capture, table.keys, key)
    if isinstance(there, bool):
        (exchange if there else add)()
    else:
        branch(capture, there, exchange, add, (), ())


def _exchanged(capture: Session, table: Table, key: Any, value: Any) -> list[Any]:
    values = list(table.values or ())
    index = index_of(capture, table.keys, key)
    if lists.is_spread(values) or len(values) > 1:
        (lists.set_at if lists.is_spread(values) else lists.set_known)(capture, values, index, value)
        return values
    return [value]


def become(container: Any, table: Table) -> None:
    capture = capturing()
    capture.unseen.follow_all()  # Python's own ``&`` and ``-`` would compare what stands for the keys, and ask nobody
    replace_contents(container, {table: None})


def delete(capture: Session, container: Any, key: Any) -> None:
    """``del container[key]``, or ``container.remove(key)``."""
    require(capture, has(capture, container, key), key)
    drop(capture, container, key)


def drop(capture: Session, container: Any, key: Any) -> None:
    table = as_table(container)
    columns: list[Any] = [None if column is None else list(column) for column in (table.keys, table.values)]
    index = index_of(capture, table.keys, key)
    for column in columns:
        if column is not None:
            lists.delete_at(capture, column, index)
    become(container, Table(*columns))


def setdefault(capture: Session, container: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    """``container.setdefault(key, make())``, made where it is missing."""
    table = as_table(container)

    def add() -> Any:
        capture.journal.note(ContentsPlace(container))
        value = make()
        become(container, Table([*table.keys, key], [*(table.values or ()), value]))
        return value

    there = among(capture, table.keys, key)
    if isinstance(there, bool) or not any(map(_can_be_changed, table.values or ())):
        return choose(capture, there, lambda: value_at(capture, container, key), add)

    def add_only() -> None:
        add()

    branch(capture, there, lambda: None, add_only, (), ())
    return value_at(capture, container, key)


def _can_be_changed(value: Any) -> bool:
    """Whether a value of a dict is one, or stands for such, that who has it may change in place."""
    return is_mutable(value.element) if type(value) is StagedSpread else bool([*mutable_containers(value)])
