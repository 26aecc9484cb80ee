"""What can be done with a dict or set that has a key on some paths only (`trace/values/entries.py`)."""

from __future__ import annotations

import collections
import functools
import operator
from collections.abc import Callable, ItemsView, ValuesView
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.conditions.branches import select
from stillgraph.operators.containers.sequences import StagedEntries
from stillgraph.operators.dispatch import call
from stillgraph.operators.elements.picking import pick
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import called, here
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.heap.contents import kind_of_container, replace_contents
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import ContentsPlace
from stillgraph.trace.values.entries import MaybeKey, container_of, find, is_ranked, some_keys, table_of
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.text import StagedText


def contains(container: Any, item: Any) -> Any:
    """``item in container``."""
    container = container.container if isinstance(container, StagedEntries) else container
    if isinstance(container, (ValuesView, ItemsView)):
        raise refuse("SG211", "a value is looked for in a dict that has a key on some paths only", location=here())
    key = find(getattr(container, "mapping", container), item)
    return item in container if key is None else key.present


# ---- a key that is a number which only the run knows
FEW = 32  # so many keys are compared one by one, which every lowering can do


def is_staged_key(container: Any, key: Any) -> bool:
    """Whether a key has to be looked for in the run: among keys that are all numbers, or all texts."""
    if not is_exactly(container, (dict, set, frozenset)) or table_of(container) is not None:
        return False
    if isinstance(key, StagedText):
        return all(type(each) is str for each in container)
    return isinstance(key, StagedNumber) and all(isinstance(each, (int, float)) for each in container)


def has(capture: Session, container: Any, key: Any) -> Any:
    """``key in container``, for a staged key."""
    if len(container) > FEW:
        return capture.fresh_result(bool, capture.emit("call_function", operator.contains, (list(container), key), {}))
    return functools.reduce(operator.or_, (key == each for each in container), False)


def look_up(capture: Session, container: dict[Any, Any], key: Any) -> Any:
    """``container[key]``, for a staged key: raises ``KeyError`` in the run where there is none.

    Raises:
        CaptureError: the values have no join.
    """

    def missing() -> Exit | None:
        raise KeyError(key)

    branch(capture, has(capture, container, key), lambda: None, missing, (), ())
    return picked(capture, container, key)


def picked(capture: Session, container: dict[Any, Any], key: Any) -> Any:
    """What a dict has for a staged key that is there."""
    keys = list(container)
    if len(keys) > FEW:
        index = capture.fresh_result(int, capture.emit("call_function", operator.indexOf, (keys, key), {}))
    else:
        index = sum(position * (key == each) for position, each in enumerate(keys))
    return pick(capture, list(container.values()), index)


def get(capture: Session, container: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """``container.get(key, default)``, for a staged key."""
    if not container:
        return default
    there = has(capture, container, key)
    return select(capture, there, lambda: picked(capture, container, key), lambda: default)


# ---- one key
def require(capture: Session, key: MaybeKey) -> None:
    """Let the program raise ``KeyError`` where a key is missing."""

    def missing() -> Exit | None:
        raise KeyError(key.key)

    if key.present is not True:
        branch(capture, key.present, lambda: None, missing, (), ())


def at(capture: Session, container: dict[Any, Any], key: MaybeKey) -> Any:
    """``container[key]``."""
    if isinstance(container, collections.defaultdict) and container.default_factory is not None:
        return _setdefault(capture, container, key.key, functools.partial(call, container.default_factory))
    if isinstance(container, collections.Counter):
        return _choose(capture, key, lambda: container[key], lambda: 0)
    require(capture, key)
    return container[key]


def _choose(capture: Session, key: MaybeKey, there: Callable[[], Any], missing: Callable[[], Any]) -> Any:
    return there() if key.present is True else select(capture, key.present, there, missing)


def put(capture: Session, container: dict[Any, Any], key: Any, value: Any) -> None:
    """``container[key] = value``, by no ``__setitem__`` of the user's; the contents are noted already."""
    known, kind = find(container, key), kind_of_container(container)
    if known is None and (key in container or not is_ranked(container)):
        kind.__setitem__(container, key, value)
    elif known is not None and type(known.key) is not type(key):
        raise refuse("SG211", f"{key!r} is set where {known.key!r} may be there, which is one key", location=here())
    elif known is not None and list(container)[-1] is known and known.rank is None:
        kind.__delitem__(container, known)
        kind.__setitem__(container, key, value)
    elif known is not None and known.present is True:
        kind.__setitem__(container, known, value)
    else:
        _put_last(capture, container, known, key, value)


def _put_last(capture: Session, container: dict[Any, Any], known: MaybeKey | None, key: Any, value: Any) -> None:
    """Set a key that comes behind the others if it was missing, so that only the run knows their order."""
    ranks = [_rank(each, index) for index, each in enumerate(container)]
    last = functools.reduce(lambda a, b: _larger(capture, a, b), ranks) + 1
    rank = last
    if known is not None:
        mine = ranks[list(container).index(known)]
        rank = select(capture, known.present, lambda: mine, lambda: last)
    others = [
        (MaybeKey(each.key, each.present, rank_) if type(each) is MaybeKey else MaybeKey(each, True, rank_), held)
        for (each, held), rank_ in zip(container.items(), ranks)
        if each is not known
    ]
    replace_contents(container, dict([*others, (MaybeKey(key, True, rank), value)]))


def _rank(key: Any, index: int) -> Any:
    return index if type(key) is not MaybeKey or key.rank is None else key.rank


def _larger(capture: Session, left: Any, right: Any) -> Any:
    staged = isinstance(left, StagedNumber) or isinstance(right, StagedNumber)
    return capture.number_operation(max, (left, right)) if staged else max(left, right)


def delete(capture: Session, container: Any, key: MaybeKey) -> None:
    """``del container[key]``, or ``container.remove(key)``."""
    require(capture, key)
    _drop(container, key)


def _drop(container: Any, key: MaybeKey) -> None:
    if isinstance(container, set):
        set.discard(container, key)
    else:
        kind_of_container(container).__delitem__(container, key)


# ---- methods; the contents are noted already
def _get(capture: Session, container: dict[Any, Any], item: Any, default: Any = None) -> Any:
    key = find(container, item)
    if key is None:
        return container.get(item, default)
    return _choose(capture, key, lambda: container[key], lambda: default)


def _pop(capture: Session, container: dict[Any, Any], item: Any, *default: Any) -> Any:
    key = find(container, item)
    if key is None:
        return container.pop(item, *default)
    if not default:
        require(capture, key)  # of all dicts: nothing is made for a missing key
    value = _get(capture, container, item, *default) if default else container[key]
    known = find(container, item)
    if known is not None:
        _drop(container, known)
    else:
        del container[item]
    return value


def _setdefault(capture: Session, container: dict[Any, Any], item: Any, make: Callable[[], Any]) -> Any:
    key = find(container, item)
    if key is None and item in container:
        return container[item]

    def add() -> Any:
        capture.journal.note(ContentsPlace(container))
        value = make()
        put(capture, container, item, value)
        return value

    return add() if key is None else _choose(capture, key, lambda: container[key], add)


def _update(capture: Session, container: Any, *others: Any, **named: Any) -> None:
    for other in others:
        if container_of(other) is not None:
            _update_by_some(capture, container, other)
        elif isinstance(container, set):
            for item in other:
                _add(capture, container, item)
        else:
            for key, value in dict(other).items():
                put(capture, container, key, value)
    for name, value in named.items():
        put(capture, container, name, value)


def _update_by_some(capture: Session, container: Any, other: Any) -> None:
    """Put in what another dict or set has, each key where it is there.

    Raises:
        CaptureError: only the run knows in which order it has them, or all of its keys.
    """
    mapping = container_of(other)
    is_alike = isinstance(other, _NO_PAIRS) == isinstance(container, set)
    if table_of(mapping) is not None or is_ranked(mapping) or not is_alike:
        raise refuse_unknown("SG211", f"{called(other)}, {some_keys(other)}, is put into another", other)

    def put_one(key: Any, *value: Any) -> None:
        capture.journal.note(ContentsPlace(container))
        put(capture, container, key, *value) if value else _add(capture, container, key)

    for key in list(mapping):
        each = key if type(key) is MaybeKey else MaybeKey(key, True)
        held = (mapping[key],) if isinstance(mapping, dict) else ()
        if each.present is True:
            put_one(each.key, *held)
        else:
            branch(capture, each.present, functools.partial(put_one, each.key, *held), lambda: None, (), ())


_NO_PAIRS: tuple[type, ...] = (set, frozenset, type({}.keys()))


def _add(capture: Session, container: set[Any], item: Any) -> None:
    key = find(container, item)
    if key is not None:
        if type(key.key) is not type(item):
            message = f"{item!r} is added where {key.key!r} may be there, which is one element"
            raise refuse("SG211", message, location=here())
        _drop(container, key)
    container.add(item)


def _discard(capture: Session, container: set[Any], item: Any) -> None:
    key = find(container, item)
    set.discard(container, item if key is None else key)


def _remove(capture: Session, container: set[Any], item: Any) -> None:
    key = find(container, item)
    if key is None:
        container.remove(item)
    else:
        delete(capture, container, key)


METHODS: dict[str, Callable[..., Any]] = {
    "get": _get,
    "pop": _pop,
    "setdefault": lambda capture, container, item, default=None: _setdefault(capture, container, item, lambda: default),
    "update": _update,
    "add": _add,
    "discard": _discard,
    "remove": _remove,
    **{
        name: lambda capture, container, name=name: StagedEntries(getattr(container, name)())
        for name in ("keys", "values", "items")
    },
    "copy": lambda capture, container: container.copy(),
    "clear": lambda capture, container: container.clear(),
}


def call_method(capture: Session, container: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of such a dict or set.

    Raises:
        CaptureError: it has no meaning for one.
    """
    if name not in METHODS or not hasattr(container, name) or (name == "pop" and isinstance(container, set)):
        raise refuse_unknown("SG211", f"the method {name} of {called(container)}, {some_keys(container)}", container)
    return METHODS[name](capture, container, *args, **kwargs)
