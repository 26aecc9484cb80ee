"""What a program does to the world outside: it logs, warns, writes to streams and files.

A step is the first argument of `operations.act`, which hands it the values of the run. What asks Python where it was
called from, to show that to people, is told the user's own lines.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

from stillgraph.core.files import is_ours


@dataclass(frozen=True, eq=False)
class Place:
    """A line of the user's: its file, number and function, and the globals that it sees."""

    file: str
    line: int
    function: str
    namespace: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Calling:
    """A function that is called as it is."""

    function: Callable[..., Any]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))


@dataclass(frozen=True, eq=False)
class Method:
    """A method of an object that a guard knows; the program does not keep it alive."""

    reference: weakref.ref[Any]
    name: str

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        owner = self.reference()
        assert owner is not None, "its caller holds it"
        return getattr(owner, self.name)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self.reference()).__name__}.{self.name}"


@dataclass(frozen=True, eq=False)
class StandardStream:
    """A method of ``sys.stdout`` or ``sys.stderr``, whichever stream that is when the program runs."""

    stream: str
    method: str

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(getattr(sys, self.stream), self.method)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"sys.{self.stream}.{self.method}"


class Logging:
    """A function that logs, called from the user's lines: a record says where it comes from.

    Attributes:
        function: of `logging`, or a method of a logger.
    """

    def __init__(self, function: Callable[..., Any], places: tuple[Place, ...]) -> None:
        self.function = function
        self._frames = tuple([_standing_at(each) for each in places])

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        call, given, keywords = self.function, args, kwargs
        for frame in self._frames:
            call, given, keywords = frame, (call, given, keywords), {}
        return call(*given, **keywords)

    def __repr__(self) -> str:
        return str(self.function.__name__)


def _standing_at(place: Place) -> Callable[..., Any]:
    """A function that calls another, and looks as if it did so in a line of the user's."""
    code: CodeType = (lambda function, args, kwargs: function(*args, **kwargs)).__code__
    named = {"co_name": place.function, "co_qualname": place.function}
    moved = code.replace(co_filename=place.file, co_firstlineno=place.line, **named)  # type: ignore[arg-type]
    return FunctionType(moved, place.namespace)


@dataclass(frozen=True, eq=False)
class Warning_:
    """``warnings.warn``, for the user's lines: the innermost comes first."""

    places: tuple[Place, ...]

    def __call__(self, message: Any, category: Any = None, stacklevel: int = 1, source: Any = None) -> None:
        if isinstance(message, Warning):
            category = type(message)
        elif category is None:
            category = UserWarning
        at = self._place(max(stacklevel, 1) - 1)
        module = at.namespace.get("__name__") or "<string>"
        registry = at.namespace.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, category, at.file, at.line, str(module), registry, source=source)

    def _place(self, index: int) -> Place:
        if index < len(self.places):
            return self.places[index]
        frame = _caller(index - len(self.places))
        if frame is None:  # as Python has it
            return Place("sys", 1, "", vars(sys))
        return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, frame.f_globals)

    def __repr__(self) -> str:
        return "warn"


class Shown:
    """Stands for an object of the user's where Python shows it: its texts have been made by the program.

    Args:
        as_str: what ``str`` gives, or None where nothing asks for it.
        as_repr: what ``repr`` gives, or None where nothing asks for it.
    """

    __slots__ = ("_as_repr", "_as_str")

    def __init__(self, as_str: str | None, as_repr: str | None) -> None:
        self._as_str, self._as_repr = as_str, as_repr

    def __str__(self) -> str:
        assert self._as_str is not None, "the capture knows how it is shown"
        return self._as_str

    def __repr__(self) -> str:
        assert self._as_repr is not None, "the capture knows how it is shown"
        return self._as_repr


def _caller(index: int) -> FrameType | None:
    """A frame outside the program, counted from the one that called it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            if index == 0:
                return frame
            index -= 1
        frame = frame.f_back
    return None
