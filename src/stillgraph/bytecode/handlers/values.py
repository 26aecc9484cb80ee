"""The stack, operators, attributes, items and texts."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from stillgraph.bytecode.machine.frame import NULL, Frame, Handler
from stillgraph.operators.calls.calls import call
from stillgraph.operators.conditions import methods
from stillgraph.operators.objects.attribute_stores import del_attr, set_attr
from stillgraph.operators.objects.attributes import attr
from stillgraph.operators.objects.booleans import not_
from stillgraph.operators.objects.comparisons import eq, in_, ne, ordered
from stillgraph.operators.objects.identity import is_
from stillgraph.operators.objects.inplace import inplace
from stillgraph.operators.objects.stores import del_item, set_item
from stillgraph.operators.objects.strings import format_, percent, repr_, text
from stillgraph.operators.objects.subscripts import item
from stillgraph.trace.capture.session import session
from stillgraph.trace.control_flow.joined.unjoined import METHODS, Unjoined


# ---- the stack
def _load_const(frame: Frame, value: Any) -> None:
    frame.push(value)


def _push_null(frame: Frame, _: Any) -> None:
    frame.push(NULL)


def _pop_top(frame: Frame, _: Any) -> None:
    frame.pop()


def _copy(frame: Frame, position: int) -> None:
    frame.push(frame.peek(position))


def _swap(frame: Frame, position: int) -> None:
    top, other = frame.stack[frame.depth - 1], frame.stack[frame.depth - position]
    top.cell_contents, other.cell_contents = other.cell_contents, top.cell_contents


# ---- operators
def _is_not(left: Any, right: Any) -> Any:
    return not_(is_(left, right))


def _not_in(left: Any, right: Any) -> Any:
    return not_(in_(left, right))


def _modulo(left: Any, right: Any) -> Any:
    return percent(left, right) if isinstance(left, str) else left % right


UNARY: dict[str, Callable[[Any], Any]] = {
    "+": methods.POSITIVE,
    "-": methods.NEGATIVE,
    "~": methods.INVERTED,
    "not": not_,
}
_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": _modulo,
    "@": operator.matmul,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **{symbol: methods.binary(symbol, plain) for symbol, plain in _PLAIN.items()},
    **{f"{symbol}=": functools.partial(inplace, symbol) for symbol in _PLAIN},
}
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "==": eq,
    "!=": ne,
    "<": ordered(operator.lt),
    "<=": ordered(operator.le),
    ">": ordered(operator.gt),
    ">=": ordered(operator.ge),
    "is": is_,
    "is not": _is_not,
    "in": in_,
    "not in": _not_in,
}


def _unary(frame: Frame, symbol: str) -> None:
    value = frame.pop()
    is_warned_of = symbol == "~" and isinstance(value, bool)  # at the user's line
    frame.push(frame.act(operator.invert if is_warned_of else UNARY[symbol], value))


def _binary(frame: Frame, symbol: str) -> None:
    right, left = frame.pop(), frame.pop()
    frame.push(frame.act(BINARY[symbol], left, right))


def _compare(frame: Frame, symbol: str) -> None:
    right, left = frame.pop(), frame.pop()
    frame.push(frame.act(COMPARED[symbol], left, right))


# ---- attributes and items
def _load_attr(frame: Frame, name: str) -> None:
    frame.push(frame.act(attr, frame.pop(), name))


def _load_method(frame: Frame, name: str) -> None:
    """The bound method in the function's place: what is called is what it is where it stands alone."""
    frame.push(frame.act(_method, frame.pop(), name))
    frame.push(NULL)


def _method(target: Any, name: str) -> Any:
    capture = session()
    if capture is None or name.startswith("__") or name in METHODS:
        return attr(target, name)
    if isinstance(target, Unjoined) or capture.may_be_none(target):
        if not hasattr(None, name):
            capture.before_raise(AttributeError)  # here, rather than in the call, whose method could not be left behind
        return getattr(target, name)  # the call is made on both sides, of which neither could hand out a method
    return attr(target, name)


def _load_super_attr(frame: Frame, name: str) -> None:
    receiver, kind, maker = frame.pop(), frame.pop(), frame.pop()
    frame.push(frame.act(lambda: attr(call(maker, kind, receiver), name)))


def _load_super_method(frame: Frame, name: str) -> None:
    _load_super_attr(frame, name)
    frame.push(NULL)


def _store_attr(frame: Frame, name: str) -> None:
    target, value = frame.pop(), frame.pop()
    frame.act(set_attr, target, name, value)


def _delete_attr(frame: Frame, name: str) -> None:
    frame.act(del_attr, frame.pop(), name)


def _load_item(frame: Frame, _: Any) -> None:
    key, target = frame.pop(), frame.pop()
    frame.push(frame.act(item, target, key))


def _store_item(frame: Frame, _: Any) -> None:
    key, target, value = frame.pop(), frame.pop(), frame.pop()
    frame.act(set_item, target, key, value)


def _delete_item(frame: Frame, _: Any) -> None:
    key, target = frame.pop(), frame.pop()
    frame.act(del_item, target, key)


def _load_slice(frame: Frame, _: Any) -> None:
    stop, start, target = frame.pop(), frame.pop(), frame.pop()
    frame.push(frame.act(item, target, slice(start, stop)))


def _store_slice(frame: Frame, _: Any) -> None:
    stop, start, target, value = frame.pop(), frame.pop(), frame.pop(), frame.pop()
    frame.act(set_item, target, slice(start, stop), value)


# ---- texts
CONVERSIONS: dict[int, tuple[str, Callable[[Any], str]]] = {1: ("{!s}", str), 2: ("{!r}", repr), 3: ("{!a}", ascii)}


def _convert(frame: Frame, kind: int) -> None:
    template, convert = CONVERSIONS[kind]
    value = frame.pop()
    if session() is None:
        frame.push(frame.act(convert, value))
    elif kind == 2 and methods.method_of(value, "__repr__") is not None:
        frame.push(frame.act(repr_, value))
    else:
        frame.push(frame.act(text, template, value))


def _format(frame: Frame, _: Any) -> None:
    value = frame.pop()
    if type(value) is not str:
        value = frame.act(format, value) if session() is None else frame.act(_formatted, "{}", value)
    frame.push(value)


def _format_with(frame: Frame, _: Any) -> None:
    spec, value = frame.pop(), frame.pop()
    frame.push(frame.act(format, value, spec) if session() is None else frame.act(_formatted, "{:{}}", value, spec))


def _formatted(template: str, value: Any, spec: Any = "") -> Any:
    if methods.method_of(value, "__format__") is not None:
        return format_(value, spec)
    return text(template, value, spec) if spec or template != "{}" else text(template, value)


def _build_string(frame: Frame, count: int) -> None:
    parts = frame.take(count)
    frame.push("".join(parts) if session() is None else frame.act(text, "{}" * count, *parts))


HANDLERS: dict[str, Handler] = {
    "LOAD_CONST": _load_const,
    "PUSH_NULL": _push_null,
    "POP_TOP": _pop_top,
    "COPY": _copy,
    "SWAP": _swap,
    "UNARY_OP": _unary,
    "BINARY_OP": _binary,
    "COMPARE_OP": _compare,
    "IS_OP": _compare,
    "CONTAINS_OP": _compare,
    "LOAD_ATTR": _load_attr,
    "LOAD_METHOD": _load_method,
    "LOAD_SUPER_ATTR": _load_super_attr,
    "LOAD_SUPER_METHOD": _load_super_method,
    "STORE_ATTR": _store_attr,
    "DELETE_ATTR": _delete_attr,
    "BINARY_SUBSCR": _load_item,
    "STORE_SUBSCR": _store_item,
    "DELETE_SUBSCR": _delete_item,
    "BINARY_SLICE": _load_slice,
    "STORE_SLICE": _store_slice,
    "CONVERT_VALUE": _convert,
    "FORMAT_SIMPLE": _format,
    "FORMAT_WITH_SPEC": _format_with,
    "BUILD_STRING": _build_string,
}
