"""Containers: made, filled and taken apart; and patterns, which look into them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stillgraph.bytecode.machine.frame import NULL, Frame, Handler
from stillgraph.operators.calls.arguments import keywords, received
from stillgraph.operators.calls.binding import NamedAs, is_iterable
from stillgraph.operators.calls.calls import call
from stillgraph.operators.consumers.displays import dict_display, set_display
from stillgraph.operators.consumers.patterns import is_mapping, is_sequence, length, parts_of, values_of
from stillgraph.operators.consumers.unpacking import unpack
from stillgraph.operators.objects.stores import set_item
from stillgraph.trace.capture.session import session
from stillgraph.trace.control_flow.joined.unjoined import Unjoined


def _build_tuple(frame: Frame, count: int) -> None:
    frame.push(tuple(frame.take(count)))


def _build_list(frame: Frame, count: int) -> None:
    frame.push(frame.take(count))


def _build_set(frame: Frame, count: int) -> None:
    frame.push(frame.act(set_display, *frame.take(count)))


def _build_map(frame: Frame, count: int) -> None:
    given = frame.take(2 * count)
    frame.push(frame.act(dict_display, *zip(given[::2], given[1::2])))


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
    if session() is None or not is_iterable(values):
        values = [*values]  # which says by itself what is wrong
    call(target.extend, values)


def _set_update(frame: Frame, position: int) -> None:
    values = frame.pop()
    frame.act(call, frame.peek(position).update, values)


def _dict_update(frame: Frame, position: int) -> None:
    values = frame.pop()
    frame.act(_update, frame.peek(position), values)


def _update(target: dict[Any, Any], values: Any) -> None:
    call(target.update, {**values} if session() is None or not hasattr(values, "keys") else values)


def _dict_merge(frame: Frame, position: int) -> None:
    """Keywords of a call: below the dict stand the positional arguments, then the function, with or without nothing."""
    values = frame.pop()
    function = next(each for each in (frame.peek(position + 2), frame.peek(position + 3)) if each is not NULL)
    frame.act(_merge, frame.peek(position), values, function)


def _merge(target: dict[Any, Any], values: Any, function: Any) -> None:
    merged = NamedAs(function, dict)(**keywords(target), **keywords(values))
    target.clear()
    target.update(received(merged))


def _list_to_tuple(frame: Frame, _: Any) -> None:
    frame.push(tuple(frame.pop()))


def _unpack_sequence(frame: Frame, count: int) -> None:
    values = frame.act(_unpacked, frame.pop(), count)
    for value in reversed(values):
        frame.push(value)


def _unpacked(value: Any, count: int) -> Any:
    if isinstance(value, Unjoined):
        return value.either(lambda chosen: _unpacked(chosen, count))
    return _taking_apart(", ".join(f"a{i}" for i in range(count)) + "," * (count == 1))(unpack(value, count))


@functools.lru_cache(maxsize=64)
def _taking_apart(targets: str) -> Callable[[Any], Any]:
    """Python's own assignment to so many targets, which knows what to say where it fails."""
    names: dict[str, Any] = {}
    shown = f"({targets})"
    text = f"def taken_apart(value):\n    {shown} = value\n    return {shown.replace('*', '')}"
    exec(compile(text, f"{__file__}: taking apart", "exec"), names)
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
    frame.push(frame.act(length, frame.peek()))


# ---- patterns
def _match_mapping(frame: Frame, _: Any) -> None:
    frame.push(frame.act(is_mapping, frame.peek()))


def _match_sequence(frame: Frame, _: Any) -> None:
    frame.push(frame.act(is_sequence, frame.peek()))


def _match_keys(frame: Frame, _: Any) -> None:
    frame.push(frame.act(values_of, frame.peek(2), frame.peek(1)))


def _match_class(frame: Frame, positional: int) -> None:
    names, kind, subject = frame.pop(), frame.pop(), frame.pop()
    frame.push(frame.act(parts_of, subject, kind, names, positional))


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
