"""Exceptions that the run raises, as their handlers see them during capture."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.frames import here
from stillgraph.trace.numbers import Staged


class Caught(Staged):
    """An exception of which only the run knows what it holds: it can be printed, asked for its type, and raised.

    Attributes:
        stands_for: a class that it is an instance of, whatever the run raises.
    """

    stands_for: type[BaseException]

    def _refuse(self, *args: Any) -> NoReturn:
        raise refuse("SG301", "what an exception holds is only known at run time", location=here())

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(("__", "stillgraph_")):
            raise AttributeError(name)
        self._refuse()


_NAMED = "stillgraph_named"


def note_named(error: Caught) -> None:
    """The code says ``raise error``: a traceback shows that line, as it does not show a bare ``raise``."""
    vars(error)[_NAMED] = True


def take_named(error: Caught) -> bool:
    """Whether the code has named it to raise it; forgotten then."""
    return bool(vars(error).pop(_NAMED, False))


class CaughtPart(Staged):
    """The type or the traceback of an exception of which only the run knows what it is."""

    def __init__(self, error: Caught, what: str) -> None:
        self.error = error
        self.what = what

    def _refuse(self, *args: Any) -> NoReturn:
        raise refuse("SG301", f"the {self.what} of an exception is only known at run time", location=here())

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and name not in ("__name__", "__qualname__", "__module__", "__mro__"):
            raise AttributeError(name)
        self._refuse()

    __str__ = __repr__ = __eq__ = __call__ = _refuse
    __hash__ = _refuse


@dataclass(frozen=True)
class Raisable:
    """What a ``raise`` changes of an exception, as it was before."""

    traceback: TracebackType | None = None
    context: BaseException | None = None
    cause: BaseException | None = None
    suppresses: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Raisable:
        return cls(error.__traceback__, error.__context__, error.__cause__, error.__suppress_context__)

    def restore(self, error: BaseException) -> None:
        """Let the exception be as it was before it was raised."""
        error.__traceback__, error.__context__, error.__cause__ = self.traceback, self.context, self.cause
        error.__suppress_context__ = self.suppresses


def caught(kinds: tuple[type[BaseException], ...]) -> BaseException:
    """What stands for an exception of one of these types."""
    base = kinds[0] if len(kinds) == 1 else Exception if all(issubclass(k, Exception) for k in kinds) else BaseException
    refusing = Caught._refuse
    members = {"stands_for": base, "args": property(refusing), "__str__": refusing, "__repr__": refusing}
    members |= {"__eq__": refusing, "__hash__": refusing}
    kind: Any = type(base.__name__, (Caught, base), members)
    return base.__new__(kind)  # type: ignore[no-any-return]  # of a class that is made here
