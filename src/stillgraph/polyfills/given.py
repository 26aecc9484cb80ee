"""What Python makes of what special methods give, where it asks for something of one kind: anything else it refuses."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

_IN_PYTHON = 1 << 9  # of `__flags__`: a class has its name alone in messages, another one its module's, too


def _named(kind: type) -> str:
    is_bare = kind.__flags__ & _IN_PYTHON or kind.__module__ == "builtins"
    return kind.__name__ if is_bare else f"{kind.__module__}.{kind.__name__}"


def of_kind(given: Any, owner: str, kind: type, said: str) -> Any:
    """What is of a kind, as Python's own of that kind; ``said`` is what Python says of anything else."""
    if not isinstance(given, kind):
        raise TypeError(said.format(_named(type(given)), owner=owner))
    return given if type(given) is kind else kind(given)


def _size(given: Any, method: str) -> Any:
    if given < 0:
        raise ValueError(f"{method}() should return >= 0")
    if given > sys.maxsize:
        raise OverflowError("cannot fit 'int' into an index-sized integer")
    return given


def length(given: Any, owner: str) -> Any:
    """``len(value)``."""
    return _size(operator.index(given), "__len__")


def hint(given: Any, owner: str) -> Any:
    """What ``operator.length_hint(value)`` goes by."""
    if given is NotImplemented:
        return given
    return _size(of_kind(given, owner, int, "__length_hint__ must be an integer, not {}"), "__length_hint__")


GIVEN: Mapping[str, tuple[Callable[..., Any], *tuple[Any, ...]]] = MappingProxyType(
    {
        "__bool__": (of_kind, bool, "__bool__ should return bool, returned {}"),
        "__complex__": (of_kind, complex, "__complex__ returned non-complex (type {})"),
        "__float__": (of_kind, float, "{owner}.__float__ returned non-float (type {})"),
        "__format__": (of_kind, str, "__format__ must return a str, not {}"),
        "__hash__": (of_kind, int, "__hash__ method should return an integer"),
        "__index__": (of_kind, int, "__index__ returned non-int (type {})"),
        "__int__": (of_kind, int, "__int__ returned non-int (type {})"),
        "__len__": (length,),
        "__length_hint__": (hint,),
        "__repr__": (of_kind, str, "__repr__ returned non-string (type {})"),
        "__str__": (of_kind, str, "__str__ returned non-string (type {})"),
    }
)
"""By a special method: the function that makes of what it gives what Python does, and what that is told besides."""


def no_manager(kind: type, missing: Sequence[str]) -> str:
    """What Python says of an object of a class that lacks methods of context managers."""
    missed = " (missed __exit__ method)" if "__enter__" not in missing else ""
    return f"'{_named(kind)}' object does not support the context manager protocol{missed}"


def length_hint(value: Any, default: int = 0, /) -> Any:
    """``operator.length_hint``: what Python asks a value for before it makes a list of what it gives."""
    if hasattr(type(value), "__len__"):
        try:
            return len(value)
        except TypeError:
            pass
    if not hasattr(type(value), "__length_hint__"):
        return default
    try:
        given = type(value).__length_hint__(value)
    except TypeError:
        return default
    found = hint(given, "")
    return default if found is NotImplemented else found
