"""Methods and views of dicts and sets by keys that are numbers which only the run knows (`tables`)."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.containers.indexed import Indexed
from stillgraph.operators.containers.sequences import Listed, Zipped
from stillgraph.operators.containers.tables import (
    among,
    as_table,
    at,
    become,
    choose,
    count,
    delete,
    drop,
    has,
    index_of,
    is_by_table,
    put,
    raise_unless,
    require,
    setdefault,
    value_at,
)
from stillgraph.operators.elements import lists
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import called, here
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.heap.places import ContentsPlace
from stillgraph.trace.values.entries import KINDS_OF_DICT, MaybeKey, Table, is_sought, maybe_keys, table_of
from stillgraph.trace.values.numbers import StagedFloat


def takes(container: Any, name: str, args: tuple[Any, ...]) -> bool:
    """Whether a method of a dict or set has to look for a key in the run."""
    if name == "update" and type(container) in (dict, *KINDS_OF_DICT):
        return any(type(each) in (dict, *KINDS_OF_DICT) and is_by_table(each) for each in (container, *args))
    if name in BY_ORDER and isinstance(container, dict) and any(type(each) is MaybeKey for each in container):
        return all(is_sought(each.key if type(each) is MaybeKey else each) for each in container)
    return is_by_table(container, *(args[:1] if name in WITH_KEY else ()))


def _get(capture: Session, container: dict[Any, Any], key: Any, default: Any = None) -> Any:
    table = as_table(container)
    there = among(capture, table.keys, key)
    return choose(capture, there, lambda: value_at(capture, container, key), lambda: default)


def _pop(capture: Session, container: dict[Any, Any], key: Any, *default: Any) -> Any:
    if not default:
        value = at(capture, container, key)
        drop(capture, container, key)
        return value

    def take() -> Any:
        capture.journal.note(ContentsPlace(container))
        value = value_at(capture, container, key)
        drop(capture, container, key)
        return value

    return choose(capture, has(capture, container, key), take, lambda: default[0])


def _popitem(capture: Session, container: dict[Any, Any], *args: Any, **kwargs: Any) -> Any:
    table, is_ordered = as_table(container), isinstance(container, collections.OrderedDict)
    if not is_ordered and (args or kwargs):
        {}.popitem(*args, **kwargs)  # Python says what is wrong with them
    last = _takes_last(*args, **kwargs)
    said = "dictionary is empty" if is_ordered else "popitem(): dictionary is empty"
    raise_unless(capture, count(capture, table) > 0, lambda: KeyError(said))
    columns = [list(table.keys), list(table.values or ())]
    item = tuple(lists.METHODS["pop"](capture, column, -1 if last else 0) for column in columns)
    become(container, Table(*columns))
    return item


def _takes_last(last: bool = True) -> bool:
    return last


def _move_to_end(capture: Session, container: dict[Any, Any], key: Any, last: bool = True) -> None:
    table = as_table(container)
    require(capture, among(capture, table.keys, key), key)
    index = index_of(capture, table.keys, key)
    columns = [list(table.keys), list(table.values or ())]
    for column in columns:
        moved = lists.METHODS["pop"](capture, column, index)
        column.insert(len(column) if last else 0, moved)
    become(container, Table(*columns))


def _discard(capture: Session, container: set[Any], key: Any) -> None:
    def take_out() -> None:
        capture.journal.note(ContentsPlace(container))
        drop(capture, container, key)

    there = has(capture, container, key)
    if isinstance(there, bool):
        take_out() if there else None
    else:
        branch(capture, there, take_out, lambda: None, (), ())


def _update(capture: Session, container: Any, *others: Any) -> None:
    for other in others:
        known = isinstance(other, (dict, set, frozenset))
        table = table_of(other) if known else None
        if table is not None and isinstance(container, dict) and not container:
            become(container, table)
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
OF_DICTS = frozenset({"get", "pop", "popitem", "setdefault", "update", "keys", "values", "items", "copy", "clear"})
BY_ORDER = frozenset({"popitem", "move_to_end"})
"""Methods that may take ``last=``."""

WITH_KEY = frozenset({"add", "discard", "remove", "get", "pop", "setdefault", "move_to_end"})
"""Methods whose first argument is a key."""

_METHODS: dict[str, Callable[..., Any]] = {
    "add": put,
    "discard": _discard,
    "remove": delete,
    "get": _get,
    "pop": _pop,
    "popitem": _popitem,
    "move_to_end": _move_to_end,
    "setdefault": lambda capture, container, key, default=None: setdefault(capture, container, key, lambda: default),
    "update": _update,
    **{
        name: lambda capture, container, name=name: values_and_items(container, name)
        for name in ("keys", "values", "items")
    },
    "copy": lambda capture, container: container.copy(),
    "clear": lambda capture, container: container.clear(),
}


def call_method(
    capture: Session, container: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> Any:
    """A method of a dict or set by such keys.

    Raises:
        CaptureError: it has no meaning for one.
    """
    known = OF_DICTS if isinstance(container, dict) else OF_SETS
    is_own = name == "move_to_end" and isinstance(container, collections.OrderedDict)
    if not (name in known or is_own) or any(isinstance(each, StagedFloat) and name not in WITH_KEY for each in args):
        what = f"the method {name} of {called(container)}, with keys that only the run knows"
        raise refuse_unknown("SG211", what, container)
    return _METHODS[name](capture, container, *args, **(kwargs or {}))
