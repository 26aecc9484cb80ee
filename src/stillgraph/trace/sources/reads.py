"""What a capture has read besides what its code says."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.sources.environment import Environment


@dataclass
class Reads:
    """What a capture has read besides what its code says.

    Attributes:
        functions: those that were rewritten, as the user wrote them.
        codes: the code objects that ran, with their globals.
        attributes: pairs of an object and the name of an attribute that it was asked for by that name.
        whole: objects that went to code of which only the whole is known.
        variables: pairs of a namespace, given as a dictionary, and a name that was looked up in it.
        spaces: namespaces of which all was read.
        same: pairs of a source and what was found there, on which the program relies whatever the code mentions.
        settings: readings of what no object holds: functions, their arguments and what they gave.
        hooks: functions that are put on tensors as hooks; those whose code ran are among ``functions`` or ``codes``.
        environment: what was done with environment variables.
        followed: code of which every step was looked at, with the globals, attributes and free variables that were
            looked up; what it shows of objects is in ``shown``.
        met: containers that such code has come to by a name.
        looked_into: containers that such code has done anything with but to move them.
        picked: containers of which such code has come to single entries, and the keys or indices of these.
        deep: whether such code may have gone deeper into objects, in C, than these tell.
        shown: whether such code may have shown an object that is no plain value, or asked for its hash.
        identified: objects whose id or hash was asked for, by their ids.
        drawn: iterators from outside that the code has advanced, by their ids.
        values_compared: whether numbers, texts and the like were asked to be one object.
    """

    functions: list[FunctionType] = field(default_factory=list)
    codes: dict[CodeType, dict[str, Any]] = field(default_factory=dict)
    attributes: list[tuple[Any, str]] = field(default_factory=list)
    whole: dict[int, Any] = field(default_factory=dict)
    variables: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    spaces: dict[int, dict[str, Any]] = field(default_factory=dict)
    same: list[tuple[Any, Any]] = field(default_factory=list)
    settings: list[tuple[Any, tuple[Any, ...], Any]] = field(default_factory=list)
    hooks: list[FunctionType] = field(default_factory=list)
    environment: Environment = field(default_factory=Environment)
    followed: dict[CodeType, set[str]] = field(default_factory=dict)
    looked_into: dict[int, Any] = field(default_factory=dict)
    met: dict[int, Any] = field(default_factory=dict)
    picked: dict[int, tuple[Any, dict[Any, None]]] = field(default_factory=dict)
    deep: bool = False
    shown: bool = False
    identified: dict[int, Any] = field(default_factory=dict)
    drawn: dict[int, Any] = field(default_factory=dict)
    values_compared: bool = False


class Failure:
    """Reads what a question raises: a file that is not there may come to be."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__qualname__ = f"what is raised by {getattr(function, '__qualname__', function)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Failure) and self._function == other._function

    def __hash__(self) -> int:
        return hash(self._function)

    def __call__(self, *args: Any) -> type | None:
        try:
            self._function(*args)
        except Exception as error:  # of any kind: the guard compares it
            return type(error)
        return None


def variable_value(variable: contextvars.ContextVar[Any]) -> Any:
    """What a context variable holds, its default included; `MISSING` if nothing."""
    try:
        return variable.get()
    except LookupError:
        return MISSING


def code_file(code: CodeType, namespace: dict[str, Any]) -> str:
    """Where code is from; generated code (a dataclass's ``__init__``) is from its module, if that has a file."""
    if not code.co_filename.startswith("<string>"):
        return code.co_filename
    return str(namespace.get("__file__", code.co_filename))
