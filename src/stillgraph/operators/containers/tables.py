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
from stillgraph.operators.containers.entries import FEW
from stillgraph.operators.containers.sequences import Indexed, Listed, Zipped
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.picking import pick
from stillgraph.program.types import JoinFailure
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import called, here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.heap.contents import replace_contents
from stillgraph.trace.heap.places import ContentsPlace
from stillgraph.trace.values.entries import (
    KINDS_OF_DICT,
    Table,
    dict_parts,
    is_of_run,
    is_sought,
    maybe_keys,
    require_numbers,
    table_of,
)
from stillgraph.trace.values.numbers import StagedFloat, StagedNumber


def is_by_table(container: Any, *keys: Any) -> bool:
    """Whether keys of a dict or set have to be looked for in the run."""
    if type(container) not in (dict, set, frozenset, *KINDS_OF_DICT):
        return False
    return table_of(container) is not None or any(map(is_of_run, keys))


def is_looked_up(container: Any, key: Any) -> bool:
    """Whether reading by a key is not what `entries.look_up` does for a dict of known keys."""
    makes = isinstance(container, (collections.defaultdict, collections.Counter))
    is_row = isinstance(key, tuple)
    return is_by_table(container, key) and (table_of(container) is not None or makes or is_row or not container)


def takes(container: Any, name: str, args: tuple[Any, ...]) -> bool:
    """Whether a method of a dict or set has to look for a key in the run."""
    if name == "update" and type(container) in (dict, *KINDS_OF_DICT):
        return any(type(each) in (dict, *KINDS_OF_DICT) and is_by_table(each) for each in (container, *args))
    return is_by_table(container, *(args[:1] if name in WITH_KEY else ()))


def as_table(container: Any) -> Table:
    """The keys of a dict or set, and its values.

    Raises:
        CaptureError: a key is no number, or there on some paths only.
    """
    table = table_of(container)
    if table is not None:
        return table
    try:
        require_numbers(() if maybe_keys(container) else container)
    except JoinFailure as failure:
        raise refuse("SG211", failure.message, location=here()) from failure
    if maybe_keys(container):
        raise refuse_unknown("SG211", f"{called(container)} has keys on some paths only", container)
    if isinstance(container, dict):
        keys, values = dict_parts(container)
        return Table(list(keys), list(values))
    return Table(list(container), None)


# ---- looking
def has(capture: Session, container: Any, key: Any) -> Any:
    """``key in container``."""
    return _among(capture, as_table(container).keys, key)


def _among(capture: Session, keys: list[Any], key: Any) -> Any:
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


def _index(capture: Session, keys: list[Any], key: Any) -> Any:
    if _are_few(keys):
        return sum(position * _equals(key, each) for position, each in enumerate(keys))
    return lists.METHODS["index"](capture, keys, key)


def _value_at(capture: Session, table: Table, key: Any) -> Any:
    assert table.values is not None
    index = _index(capture, table.keys, key)
    if lists.is_spread(table.values):
        return lists.at(capture, table.values, index)
    return pick(capture, table.values, index)


def at(capture: Session, container: dict[Any, Any], key: Any) -> Any:
    """``container[key]``: raises ``KeyError`` in the run where there is none."""
    table = as_table(container)
    there = _among(capture, table.keys, key)
    missing: Any = class_member(type(container), "__missing__")
    if isinstance(container, collections.Counter):
        return _choose(capture, there, lambda: _value_at(capture, table, key), lambda: 0)
    if isinstance(container, collections.defaultdict) and container.default_factory is not None:
        return setdefault(capture, container, key, container.default_factory)
    if missing is not None and not isinstance(container, collections.defaultdict):
        raise refuse_unknown("SG211", f"{called(container)} has a __missing__ of its own", container)
    _require(capture, there, key)
    return _value_at(capture, table, key)


def _require(capture: Session, there: Any, key: Any) -> None:
    """Let the program raise ``KeyError`` where a key is missing."""

    def missing() -> None:
        emit_raise(capture, KeyError(key))
        raise Diverged

    if there is False:
        raise KeyError(key)
    if there is not True:
        branch(capture, there, lambda: None, missing, (), ())


def _choose(capture: Session, there: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    if isinstance(there, bool):
        return then() if there else otherwise()
    return select(capture, there, then, otherwise)


def count(capture: Session, table: Table) -> Any:
    """How many keys there are."""
    return lists.length(capture, table.keys) if lists.is_spread(table.keys) else len(table.keys)


# ---- changing; the contents are noted already
def put(capture: Session, container: Any, key: Any, *value: Any) -> None:
    """``container[key] = value``, or ``container.add(key)``."""
    table = as_table(container)

    def exchange() -> None:
        if value:
            capture.journal.note(ContentsPlace(container))
            _become(container, Table(table.keys, _exchanged(capture, table, key, *value)))

    def add() -> None:
        capture.journal.note(ContentsPlace(container))
        values = None if table.values is None else [*table.values, *value]
        _become(container, Table([*table.keys, key], values))

    there = _among(capture, table.keys, key)
    if isinstance(there, bool):
        (exchange if there else add)()
    else:
        branch(capture, there, exchange, add, (), ())


def _exchanged(capture: Session, table: Table, key: Any, value: Any) -> list[Any]:
    values = list(table.values or ())
    index = _index(capture, table.keys, key)
    if lists.is_spread(values) or len(values) > 1:
        (lists.set_at if lists.is_spread(values) else lists.set_known)(capture, values, index, value)
        return values
    return [value]


def _become(container: Any, table: Table) -> None:
    capture = session()
    assert capture is not None
    capture.unseen.follow_all()  # Python's own ``&`` and ``-`` would compare what stands for the keys, and ask nobody
    replace_contents(container, {table: None})


def delete(capture: Session, container: Any, key: Any) -> None:
    """``del container[key]``, or ``container.remove(key)``."""
    _require(capture, has(capture, container, key), key)
    _drop(capture, container, key)


def _drop(capture: Session, container: Any, key: Any) -> None:
    table = as_table(container)
    columns: list[Any] = [None if column is None else list(column) for column in (table.keys, table.values)]
    index = _index(capture, table.keys, key)
    for column in columns:
        if column is not None:
            lists.delete_at(capture, column, index)
    _become(container, Table(*columns))


def setdefault(capture: Session, container: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    """``container.setdefault(key, make())``, made where it is missing."""
    table = as_table(container)

    def add() -> Any:
        capture.journal.note(ContentsPlace(container))
        value = make()
        _become(container, Table([*table.keys, key], [*(table.values or ()), value]))
        return value

    return _choose(capture, _among(capture, table.keys, key), lambda: _value_at(capture, table, key), add)


def _get(capture: Session, container: dict[Any, Any], key: Any, default: Any = None) -> Any:
    table = as_table(container)
    there = _among(capture, table.keys, key)
    return _choose(capture, there, lambda: _value_at(capture, table, key), lambda: default)


def _pop(capture: Session, container: dict[Any, Any], key: Any, *default: Any) -> Any:
    if not default:
        value = at(capture, container, key)
        _drop(capture, container, key)
        return value

    def take() -> Any:
        capture.journal.note(ContentsPlace(container))
        value = _value_at(capture, as_table(container), key)
        _drop(capture, container, key)
        return value

    return _choose(capture, has(capture, container, key), take, lambda: default[0])


def _discard(capture: Session, container: set[Any], key: Any) -> None:
    def drop() -> None:
        capture.journal.note(ContentsPlace(container))
        _drop(capture, container, key)

    there = has(capture, container, key)
    if isinstance(there, bool):
        drop() if there else None
    else:
        branch(capture, there, drop, lambda: None, (), ())


def _update(capture: Session, container: Any, *others: Any) -> None:
    for other in others:
        known = isinstance(other, (dict, set, frozenset))
        table = table_of(other) if known else None
        if table is not None and isinstance(container, dict) and not container:
            _become(container, table)
            continue
        if lists.is_spread(other if table is None else table.keys) or (table is None and known and maybe_keys(other)):
            raise refuse_unknown("SG211", f"{called(other)} is put into another", other)
        if table is not None:
            rows: Any = zip(table.keys, table.values or ())
        else:
            rows = dict(other).items() if isinstance(container, dict) else ((item,) for item in other)
        for row in rows:
            capture.journal.note(ContentsPlace(container))
            put(capture, container, *row)


class _OfSets:
    """Views of keys and of items are sets: what Python would compute of one is refused."""

    __slots__ = ()

    def _refused(self, *_: Any) -> Any:
        message = "an operator or method of sets reads keys or items that only the run knows"
        raise refuse("SG211", message, location=here(), hint="Loop over the keys: for key in d: if key in other: ...")

    __and__ = __or__ = __sub__ = __xor__ = __rand__ = __ror__ = __rsub__ = __rxor__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = isdisjoint = _refused


class _View(Listed):
    """A view of a dict: it shows what the dict holds whenever it is asked."""

    __slots__ = ("container",)

    def __init__(self, container: Any) -> None:
        Indexed.__init__(self)
        self.container = container


class Keys(_OfSets, _View, kind=type({}.keys())):
    """``d.keys()``."""

    __slots__ = ()

    @property
    def items(self) -> list[Any]:
        return as_table(self.container).keys


class Values(_View, kind=type({}.values())):
    """``d.values()``."""

    __slots__ = ()

    @property
    def items(self) -> list[Any]:
        return as_table(self.container).values or []


class Items(_OfSets, Zipped, kind=type({}.items())):
    """``d.items()``."""

    __slots__ = ("container",)

    once = False

    def __init__(self, container: Any) -> None:
        super().__init__((Keys(container), Values(container)))
        self.container = container


_VIEWS: dict[str, Callable[[Any], Any]] = {"keys": Keys, "values": Values, "items": Items}


def values_and_items(container: Any, name: str) -> Any:
    """What ``keys``, ``values`` or ``items`` gives."""
    return _VIEWS[name](container)


OF_SETS = frozenset({"add", "discard", "remove", "update", "copy", "clear"})
OF_DICTS = frozenset({"get", "pop", "setdefault", "update", "keys", "values", "items", "copy", "clear"})
WITH_KEY = frozenset({"add", "discard", "remove", "get", "pop", "setdefault"})
"""Methods whose first argument is a key."""

_METHODS: dict[str, Callable[..., Any]] = {
    "add": put,
    "discard": _discard,
    "remove": delete,
    "get": _get,
    "pop": _pop,
    "setdefault": lambda capture, container, key, default=None: setdefault(capture, container, key, lambda: default),
    "update": _update,
    **{
        name: lambda capture, container, name=name: values_and_items(container, name)
        for name in ("keys", "values", "items")
    },
    "copy": lambda capture, container: container.copy(),
    "clear": lambda capture, container: container.clear(),
}


def call_method(capture: Session, container: Any, name: str, args: tuple[Any, ...]) -> Any:
    """A method of a dict or set by such keys.

    Raises:
        CaptureError: it has no meaning for one.
    """
    known = OF_DICTS if isinstance(container, dict) else OF_SETS
    if name not in known or any(isinstance(each, StagedFloat) and name not in WITH_KEY for each in args):
        what = f"the method {name} of {called(container)}, with keys that only the run knows"
        raise refuse_unknown("SG211", what, container)
    return _METHODS[name](capture, container, *args)
