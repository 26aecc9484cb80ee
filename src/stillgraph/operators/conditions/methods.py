"""Operators on objects of users' classes: their methods are called, followed like any other, in CPython's order."""

from __future__ import annotations

import functools
import operator
from collections import Counter, deque
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NoReturn

import torch

from stillgraph.core.files import is_ours, is_standard_library, is_torch
from stillgraph.core.lookup import class_member, of_class, own_attributes
from stillgraph.operators.dispatch import call, not_
from stillgraph.operators.elements.indices import counted
from stillgraph.polyfills.deques import OPERATORS
from stillgraph.polyfills.sets import OPERATORS as SETS
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, alternatives, is_lost
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.spreads import is_spread
from stillgraph.trace.values.entries import are_of_numbers, container_of, refuse_operator
from stillgraph.trace.values.number_operands import base_value
from stillgraph.trace.values.numbers import Staged, StagedNumber, by_method, kind_of
from stillgraph.trace.values.operands import require_one_kind
from stillgraph.trace.values.operator_tables import REFLECTED_COMPARISONS

_NAMES = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
}
_SYMBOLS = {"__lt__": "<", "__gt__": ">", "__le__": "<=", "__ge__": ">="}
_NEVER = (torch.Tensor, Staged, Unjoined, type)


def method_of(value: Any, name: str) -> FunctionType | None:
    """A method for an operator that a class of the user's, or of a library, has in Python; None where it is no such."""
    if isinstance(value, _NEVER):
        return None
    method = class_member(type(value), name)
    if not isinstance(method, FunctionType):
        return None
    code = method.__code__
    if code.co_filename.startswith("<attrs") or "__create_fn__" in code.co_qualname:
        return None  # written for a dataclass: it does nothing but compare
    file = code.co_filename
    if is_standard_library(file) and keeps_unknown(value):
        capture = capturing()
        capture.follow_libraries()  # as `collections.UserList`, whose code would take a spread for an element
        return method
    return None if is_ours(file) or is_torch(file) or is_standard_library(file) else method


def keeps_unknown(value: Any) -> bool:
    """Whether an object has a list or dict of which only the run knows the length or the keys."""
    held = own_attributes(value) if session() is not None else None
    return any(is_spread(each) or container_of(each) is not None for each in (held or {}).values())


def _call(method: FunctionType, *args: Any) -> Any:
    return call(method, *args)


def binary(symbol: str, plain: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An operator on two values.

    Args:
        symbol: as it is written.
        plain: what does it where neither value is an object with a method of its own.
    """
    name, reflected = f"__{_NAMES[symbol]}__", f"__r{_NAMES[symbol]}__"

    def apply(left: Any, right: Any) -> Any:
        capture = session()
        if capture is None:
            return plain(left, right)
        if symbol == "*":
            left, right = counted(capture, left, right)
        mine, other = method_of(left, name) or _in_python(left, right, name), method_of(right, reflected)
        if (mine is None and other is None) or (symbol == "%" and isinstance(left, (str, bytes))):
            refuse_operator(symbol, left, right)
            return plain(left, right)
        return _binary(symbol, left, right, mine, other)

    return apply


def _in_python(left: Any, right: Any, name: str) -> FunctionType | None:
    """What is followed in place of C: a `Counter`, `deque` or set of which only the run knows the contents."""
    if isinstance(left, deque) and left.maxlen is not None and any(map(is_spread, (left, right))):
        return OPERATORS.get(name) if name != "__add__" or isinstance(right, deque) else None
    if isinstance(left, set) and are_of_numbers(left, right):
        return SETS.get(name)
    counters = isinstance(left, Counter) and isinstance(right, Counter)
    method = class_member(type(left), name) if counters and (container_of(left) or container_of(right)) else None
    return method if isinstance(method, FunctionType) else None


def by_methods(symbol: str, left: Any, right: Any, in_place: bool) -> bool:
    """Whether ``left += right`` is ``left + right``, by a method of an object; ``in_place`` where ``left`` has one."""
    if not in_place and method_of(left, f"__{_NAMES[symbol]}__") is not None:
        return True
    return not isinstance(left, (list, bytearray)) and method_of(right, f"__r{_NAMES[symbol]}__") is not None


def _binary(symbol: str, left: Any, right: Any, mine: FunctionType | None, other: FunctionType | None) -> Any:
    name, reflected = f"__{_NAMES[symbol]}__", f"__r{_NAMES[symbol]}__"
    if type(left) is type(right):
        other = None
    mirrored = None if other is None else functools.partial(_call, other, right, left)
    steps: list[Callable[[], Any]] = []
    if mirrored is not None and _overrides(right, left, reflected):
        steps, other = [mirrored], None
    if mine is not None:
        steps.append(functools.partial(_call, mine, left, right))
    elif other is not None:
        steps.append(functools.partial(_by_type, left, name, right))
    if mirrored is not None and other is not None:
        steps.append(mirrored)
    elif mine is not None and type(left) is not type(right):
        steps.append(functools.partial(_by_type, right, reflected, left))

    def fail() -> NoReturn:
        shown = "** or pow()" if symbol == "**" else symbol
        kinds = f"'{named(left)}' and '{named(right)}'"
        _raise(TypeError(f"unsupported operand type(s) for {shown}: {kinds}"))

    return _first_answer(steps, fail)


def _first_answer(steps: Sequence[Callable[[], Any]], fail: Callable[[], Any]) -> Any:
    """What the first of some methods gives that is not ``NotImplemented``."""
    if not steps:
        return fail()
    return or_else(steps[0](), functools.partial(_first_answer, steps[1:], fail))


def or_else(result: Any, otherwise: Callable[[], Any]) -> Any:
    """What a method gives, or where that is ``NotImplemented``, be it on some paths, what comes of asking further."""
    if result is NotImplemented:
        return otherwise()
    return result.either(lambda each: or_else(each, otherwise)) if _may_decline(result) else result


def _may_decline(result: Any) -> bool:
    if not isinstance(result, Unjoined) or is_lost(result):
        return result is NotImplemented
    known = alternatives(result)
    return _may_decline(known.left) or _may_decline(known.right)


def _raise(error: Exception) -> NoReturn:
    """Raise what Python raises where no method knows an operator: on a path of the run, in the run."""
    capture = session()
    if capture is None or not capture.in_arm:
        raise error
    emit_raise(capture, error)
    raise Diverged


def _overrides(right: Any, left: Any, name: str) -> bool:
    """Whether the right operand is asked first: its class is derived from the left one's, with a method of its own."""
    kind = _kind(left)
    return isinstance(right, kind) and class_member(type(right), name) is not class_member(kind, name)


def _kind(value: Any) -> type:
    """The type of an operand as Python would have it."""
    if not isinstance(value, StagedNumber):
        return type(value)
    require_one_kind((value,), "meets an object with methods of its own for operators")
    return kind_of(value)


def _by_type(value: Any, name: str, other: Any) -> Any:
    """What a value of Python's or torch's own makes of an object that it does not know: nothing, for most of them."""
    if isinstance(value, StagedNumber):
        return by_method(value, name, other)
    if isinstance(value, torch.Tensor) and base_value(other) is not None:
        return getattr(value, name)(other)
    if isinstance(value, (torch.Tensor, Staged, list, tuple, str, bytes, bytearray)):
        return NotImplemented
    method = of_class(value, name)
    return NotImplemented if method is None else method(value, other)


def named(value: Any) -> str:
    """The name of a value's class, as messages of Python's have it."""
    return str(call(type, value).__name__) if isinstance(value, (torch.Tensor, Staged)) else type(value).__name__


def unary(name: str, plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An operator on one value."""

    def apply(value: Any) -> Any:
        method = None if session() is None else method_of(value, name)
        return plain(value) if method is None else _call(method, value)

    return apply


def compared(name: str, left: Any, right: Any) -> tuple[Any] | None:
    """What a comparison gives, in a tuple, where one side has a method of its own for it; None where none has."""
    mine, other = _comparing(left, name), _comparing(right, REFLECTED_COMPARISONS[name])
    if mine is None and other is None:
        return None
    tries = [(left, mine, name, right), (right, other, REFLECTED_COMPARISONS[name], left)]
    if type(left) is not type(right) and isinstance(right, _kind(left)):
        tries.reverse()
    steps = [functools.partial(_asked, value, method, tried, against) for value, method, tried, against in tries]

    def fail() -> Any:
        if name in ("__eq__", "__ne__"):
            return (left is right) is (name == "__eq__")
        kinds = f"'{named(left)}' and '{named(right)}'"
        return _raise(TypeError(f"'{_SYMBOLS[name]}' not supported between instances of {kinds}"))

    return (_first_answer(steps, fail),)


def _asked(value: Any, method: Callable[[Any, Any], Any] | None, name: str, against: Any) -> Any:
    if method is not None:
        return method(value, against)
    if isinstance(value, StagedNumber):
        return by_method(value, name, against)
    if isinstance(value, (torch.Tensor, Staged)):
        return NotImplemented
    return getattr(type(value), name)(value, against)


def _comparing(value: Any, name: str) -> Callable[[Any, Any], Any] | None:
    method = method_of(value, name)
    if method is not None:
        found = method
        return lambda value, against: _call(found, value, against)
    if name == "__ne__" and class_member(type(value), name) is object.__ne__:
        equal = method_of(value, "__eq__")
        if equal is not None:
            return lambda value, against: _unequal(_call(equal, value, against))
    return None


def _unequal(equal: Any) -> Any:
    if equal is NotImplemented:
        return equal
    return equal.either(_unequal) if _may_decline(equal) else not_(equal)


def got(target: Any, name: str) -> tuple[Any] | None:
    """``target.name`` by a ``__get__`` or ``__getattr__`` of the user's, in a tuple; None where neither is asked."""
    if isinstance(target, _NEVER):
        return None
    member = class_member(type(target), name)
    getter = None if member is None else method_of(member, "__get__")
    if getter is not None:
        is_data = any(class_member(type(member), each) is not None for each in ("__set__", "__delete__"))
        own = {} if is_data else own_attributes(target) or {}
        return None if name in own else (_call(getter, member, target, type(target)),)
    method = None if member is not None else method_of(target, "__getattr__")
    if method is None or name in (own_attributes(target) or {}) or hasattr(type(target), name):
        return None
    return (_call(method, target, name),)


def set_by_descriptor(target: Any, name: str, value: Any) -> bool:
    """``target.name = value`` by a ``__set__`` of the user's; whether there is one."""
    if isinstance(target, _NEVER):
        return False
    member = class_member(type(target), name)
    setter = None if member is None else method_of(member, "__set__")
    if setter is None:
        return False
    _call(setter, member, target, value)
    return True


POSITIVE = unary("__pos__", operator.pos)
NEGATIVE = unary("__neg__", operator.neg)
INVERTED = unary("__invert__", operator.invert)
