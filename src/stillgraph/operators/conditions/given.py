"""What special methods of the user's give where Python asks for something of one kind: it converts or refuses that."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType
from typing import Any

import torch

from stillgraph.core.lookup import class_member, of_class
from stillgraph.operators import dispatch
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.dispatch import call
from stillgraph.polyfills.given import GIVEN
from stillgraph.trace.capture.session import session
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.values.numbers import Staged

_BY: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "__bool__": bool,
        "__complex__": complex,
        "__float__": float,
        "__format__": format,
        "__hash__": hash,
        "__index__": operator.index,
        "__int__": int,
        "__len__": len,
        "__length_hint__": operator.length_hint,
        "__repr__": repr,
        "__str__": str,
    }
)
"""The function of Python's that asks a special method."""


@dispatch.asked.defined
def asked(value: Any, name: str, *args: Any) -> Any:
    """What Python makes of what a special method gives, for ``len(value)`` say.

    Raises:
        TypeError: it is not of the kind that Python asks for.
        ValueError: it is negative, and a length.
    """
    method = class_member(type(value), name)
    if isinstance(method, (staticmethod, classmethod)):
        return accepted(name, type(value).__name__, call(method.__get__(value, type(value)), *args))
    return accepted(name, type(value).__name__, call(of_class(value, name), value, *args))


def accepted(name: str, owner: str, given: Any) -> Any:
    """What Python makes of what the special method of a class of the name ``owner`` has given."""
    capture = session()
    if isinstance(given, Unjoined):
        return given.either(lambda one: accepted(name, owner, one))
    if capture is None or not (isinstance(given, (torch.Tensor, Staged)) or method_of(given, "__index__") is not None):
        return _BY[name](type(owner, (), {name: lambda *_: given})())
    make, *known = GIVEN[name]
    assert isinstance(make, FunctionType)
    return capture.conversion.convert(make)(given, owner, *known)


@dispatch.indexed.defined
def indexed(value: Any, unless: str | None = None) -> Any:
    """What an object of the user's is in a place where Python wants a whole number; anything else as it is.

    Args:
        value: what stands in that place.
        unless: a method that Python asks first.
    """
    if isinstance(value, int) or method_of(value, "__index__") is None or (unless and of_class(value, unless)):
        return value
    return asked(value, "__index__")


def tells_length(value: Any) -> bool:
    """Whether Python asks a method of the user's how much a value gives, before it makes a list of that."""
    return any(method_of(value, each) is not None for each in ("__len__", "__length_hint__"))
