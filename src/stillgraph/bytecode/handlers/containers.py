"""Containers: made, filled and taken apart; and patterns, which look into them."""

from __future__ import annotations

import collections.abc
import functools
from collections.abc import Callable
from typing import Any

from stillgraph.bytecode.frame import NULL, Frame, Handler
from stillgraph.operators.calls import call, keywords
from stillgraph.operators.stores import matched, set_item, unpack
from stillgraph.trace.session import session
from stillgraph.trace.unjoined import Unjoined


def _build_tuple(frame: Frame, count: int) -> None:
    frame.push(tuple(frame.take(count)))


def _build_list(frame: Frame, count: int) -> None:
    frame.push(frame.take(count))


def _build_set(frame: Frame, count: int) -> None:
    frame.push(frame.act(set, frame.take(count)))


def _build_map(frame: Frame, count: int) -> None:
    given = frame.take(2 * count)
    frame.push(frame.act(dict, zip(given[::2], given[1::2])))


def _build_const_key_map(frame: Frame, count: int) -> None:
    names = frame.pop()
    frame.push(dict(zip(names, frame.take(count))))


def _build_slice(frame: Frame, count: int) -> None:
    frame.push(slice(*frame.take(count)))


def _list_append(frame: Frame, position: int) -> None:
    value = frame.pop()
    frame.act(call, frame.peek(position).append, value)


def _set_add(frame: Frame, position: int) -> None:
    value = frame.pop()
    frame.act(call, frame.peek(position).add, value)


def _map_add(frame: Frame, position: int) -> None:
    value, key = frame.pop(), frame.pop()
    frame.act(set_item, frame.peek(position), key, value)


def _list_extend(frame: Frame, position: int) -> None:
    values = frame.pop()
    frame.act(_extend, frame.peek(position), values)


def _extend(target: list[Any], values: Any) -> None:
    try:
        call(target.extend, values)
    except TypeError as error:
        if hasattr(type(values), "__iter__") or hasattr(type(values), "__getitem__"):
            raise
        raise TypeError(f"Value after * must be an iterable, not {type(values).__name__}") from error


def _set_update(frame: Frame, position: int) -> None:
    values = frame.pop()
    frame.act(call, frame.peek(position).update, values)


def _dict_update(frame: Frame, position: int) -> None:
    values = frame.pop()
    frame.act(_update, frame.peek(position), values)


def _update(target: dict[Any, Any], values: Any) -> None:
    if not hasattr(values, "keys"):
        raise TypeError(f"'{type(values).__name__}' object is not a mapping")
    call(target.update, values)


def _dict_merge(frame: Frame, position: int) -> None:
    """Keywords of a call: below the dict stand the positional arguments, then the function, with or without nothing."""
    values = frame.pop()
    function = next(each for each in (frame.peek(position + 2), frame.peek(position + 3)) if each is not NULL)
    frame.act(_merge, frame.peek(position), values, function)


def _merge(target: dict[Any, Any], values: Any, function: Any) -> None:
    values = keywords(values)
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', function)}()"
    if not hasattr(values, "keys"):
        raise TypeError(f"{name} argument after ** must be a mapping, not {type(values).__name__}")
    for key in values.keys():  # noqa: SIM118 (a mapping need not be iterable over its keys)
        if key in target:
            raise TypeError(f"{name} got multiple values for keyword argument '{key}'")
        target[key] = values[key]


def _list_to_tuple(frame: Frame, _: Any) -> None:
    frame.push(tuple(frame.pop()))


def _unpack_sequence(frame: Frame, count: int) -> None:
    values = frame.act(_unpacked, frame.pop(), count)
    for value in reversed(values):
        frame.push(value)


def _unpacked(value: Any, count: int) -> Any:
    if isinstance(value, Unjoined):
        return value.either(lambda chosen: _unpacked(chosen, count))
    return _taking_apart(", ".join(f"a{i}" for i in range(count)) + "," * (count == 1))(value)


@functools.lru_cache(maxsize=64)
def _taking_apart(targets: str) -> Callable[[Any], Any]:
    """Python's own assignment to so many targets, which knows what to say where it fails."""
    names: dict[str, Any] = {}
    shown = f"({targets})"
    exec(f"def taken_apart(value):\n    {shown} = value\n    return {shown}", names)
    found: Callable[[Any], Any] = names["taken_apart"]
    return found


def _unpack_ex(frame: Frame, parts: tuple[int, int]) -> None:
    for value in reversed(frame.act(_spread, frame.pop(), *parts)):
        frame.push(value)


def _spread(value: Any, before: int, after: int) -> Any:
    if session() is not None:
        return unpack(value, before, after)
    names = [*(f"a{i}" for i in range(before)), "*rest", *(f"b{i}" for i in range(after))]
    return _taking_apart(", ".join(names) + ",")(value)


def _get_len(frame: Frame, _: Any) -> None:
    frame.push(frame.act(call, len, frame.peek()))


# ---- patterns
def _match_mapping(frame: Frame, _: Any) -> None:
    frame.push(isinstance(frame.act(matched, frame.peek(), False), collections.abc.Mapping))


def _match_sequence(frame: Frame, _: Any) -> None:
    value = frame.act(matched, frame.peek(), False)
    plain = isinstance(value, collections.abc.Sequence) and not isinstance(value, (str, bytes, bytearray))
    frame.push(plain)


def _match_keys(frame: Frame, _: Any) -> None:
    frame.push(frame.act(_values_for, frame.peek(2), frame.peek(1)))


def _values_for(subject: Any, keys: tuple[Any, ...]) -> tuple[Any, ...] | None:
    if len(set(keys)) < len(keys):
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise ValueError(f"mapping pattern checks duplicate key ({twice!r})")
    missing = object()
    values = tuple(call(subject.get, key, missing) for key in keys)
    return None if any(value is missing for value in values) else values


def _match_class(frame: Frame, positional: int) -> None:
    names, kind, subject = frame.pop(), frame.pop(), frame.pop()
    frame.push(frame.act(_parts_of, subject, kind, names, positional))


_OF_THEMSELVES = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


def _parts_of(subject: Any, kind: Any, names: tuple[str, ...], positional: int) -> tuple[Any, ...] | None:
    """The attributes that a class pattern looks at, or None; see the language reference."""
    if not isinstance(kind, type):
        raise TypeError("called match pattern must be a class")
    subject = matched(subject, True)
    if not isinstance(subject, kind):
        return None
    found: list[Any] = []
    seen: list[str] = []
    if positional:
        own = getattr(kind, "__match_args__", None)
        if own is None and kind.__flags__ & (1 << 22):  # Py_TPFLAGS_MATCH_SELF
            if positional > 1:
                raise TypeError(f"{kind.__name__}() accepts 1 positional sub-pattern ({positional} given)")
            found.append(subject)
            positional = 0
        own = () if own is None else own
        if not isinstance(own, tuple):
            raise TypeError(f"{kind.__name__}.__match_args__ must be a tuple (got {type(own).__name__})")
        if positional > len(own):
            plural = "" if len(own) == 1 else "s"
            raise TypeError(f"{kind.__name__}() accepts {len(own)} positional sub-pattern{plural} ({positional} given)")
        seen += own[:positional]
    for index, name in enumerate((*seen, *names)):
        if not isinstance(name, str):
            raise TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})")
        if name in (*seen, *names)[:index]:
            raise TypeError(f"{kind.__name__}() got multiple sub-patterns for attribute '{name}'")
        try:
            found.append(getattr(subject, name))
        except AttributeError:
            return None
    return tuple(found)


HANDLERS: dict[str, Handler] = {
    "BUILD_TUPLE": _build_tuple,
    "BUILD_LIST": _build_list,
    "BUILD_SET": _build_set,
    "BUILD_MAP": _build_map,
    "BUILD_CONST_KEY_MAP": _build_const_key_map,
    "BUILD_SLICE": _build_slice,
    "LIST_APPEND": _list_append,
    "SET_ADD": _set_add,
    "MAP_ADD": _map_add,
    "LIST_EXTEND": _list_extend,
    "SET_UPDATE": _set_update,
    "DICT_UPDATE": _dict_update,
    "DICT_MERGE": _dict_merge,
    "LIST_TO_TUPLE": _list_to_tuple,
    "UNPACK_SEQUENCE": _unpack_sequence,
    "UNPACK_EX": _unpack_ex,
    "GET_LEN": _get_len,
    "MATCH_MAPPING": _match_mapping,
    "MATCH_SEQUENCE": _match_sequence,
    "MATCH_KEYS": _match_keys,
    "MATCH_CLASS": _match_class,
}
