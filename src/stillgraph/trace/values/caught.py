"""Exceptions that the run raises, as their handlers see them during capture."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import folder_of_ours, is_ours
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.numbers import Staged
from stillgraph.trace.values.raised import Raised, is_plain


class Caught(Staged):
    """An exception that the run raises: it can be printed and raised, and asked for what the capture knows of it.

    Attributes:
        stands_for: a class that it is an instance of, whatever the run raises.
    """

    stands_for: type[BaseException]

    def _refuse(self, *args: Any) -> NoReturn:
        raise refuse("SG301", "what an exception holds is only known at run time", location=here())

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN or name.startswith("stillgraph_") or (name.startswith("__") and name not in _HELD):
            return object.__getattribute__(self, name)
        if name == "with_traceback":
            return functools.partial(_with_traceback, self)
        if name in _HELD and _hands_on(sys._getframe(1).f_code.co_filename):
            return object.__getattribute__(self, name)
        told = None if name in _HELD else slot(self, _ASK)(self)
        if told is not None:
            return _held(self, name, told)
        found = None if name in _HELD else slot(self, _HOLDS)(self, name)
        return self._refuse() if found is None else found[0]

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith(("__", "stillgraph_")):
            message = f"{name} of an exception is set that the program has caught"
            raise refuse("SG305", message, location=here(), hint="Raise an exception of your own from it.")
        object.__setattr__(self, name, value)


def _hands_on(file: str) -> bool:
    """Whether code that reads what only the run knows of an exception just hands that on: no operator of the user's."""
    return file == contextlib.__file__ or (is_ours(file) and not file.startswith(folder_of_ours("operators")))


_OWN = ("stands_for", "_refuse")
_HELD = ("__cause__", "__context__", "__dict__", "__notes__", "__suppress_context__", "__traceback__")
"""What an exception has that no ``raise`` gives it by its arguments."""


_ASK, _CLEAR, _RAISED = "stillgraph_ask", "stillgraph_clear", "stillgraph_raised"
_HOLDS = "stillgraph_holds"


def slot(error: BaseException | Caught, name: str) -> Any:
    """An attribute that every exception has, of what stands for one during the capture."""
    return object.__getattribute__(error, name)


def _with_traceback(error: Any, trace: Any) -> Any:
    if trace is not None:
        raise refuse("SG301", "the traceback of an exception is only known at run time", location=here())
    slot(error, _CLEAR)(error)
    return error


def _held(error: Caught, name: str, known: Any) -> Any:
    """What a caught exception has under a name, being a copy of ``known``, or of one of several."""
    if not isinstance(known, BaseException):
        return known.either(functools.partial(_held, error, name))
    value = getattr(known, name)
    if isinstance(value, (type, torch.dtype, torch.device)) or is_plain(value):
        return value
    return error._refuse()


def raised_of(error: Any) -> tuple[Raised, ...]:
    """What a caught exception may be, as far as the capture knows."""
    found: tuple[Raised, ...] = slot(error, _RAISED)
    return found


@contextlib.contextmanager
def narrowed(error: Any, may_be: Callable[[Raised], bool]) -> Iterator[None]:
    """Record what is only reached where a caught exception is one of those for which ``may_be``."""
    state = slot(error, "__dict__") if isinstance(error, Caught) else {_RAISED: ()}
    before = state[_RAISED]
    state[_RAISED] = tuple(filter(may_be, before))
    try:
        yield
    finally:
        state[_RAISED] = before


_NAMED = "stillgraph_named"


def note_named(error: Caught) -> None:
    """The code says ``raise error``: a traceback shows that line, as it does not show a bare ``raise``."""
    slot(error, "__dict__")[_NAMED] = True


def take_named(error: Caught) -> bool:
    """Whether the code has named it to raise it; forgotten then."""
    return bool(slot(error, "__dict__").pop(_NAMED, False))


class CaughtPart(Staged):
    """The type or the traceback of an exception of which only the run knows what it is.

    ``named`` gives the name of the type, which the run tells.
    """

    def __init__(self, error: Caught, what: str, named: Callable[[str], Any] | None = None) -> None:
        self.error = error
        self.what = what
        self._named = named

    def _refuse(self, *args: Any) -> NoReturn:
        raise refuse("SG301", f"the {self.what} of an exception is only known at run time", location=here())

    def __getattr__(self, name: str) -> Any:
        if self._named is not None and name in ("__name__", "__qualname__"):
            return self._named(name)
        if name.startswith("__") and name not in ("__name__", "__qualname__", "__module__", "__mro__"):
            raise AttributeError(name)
        return self._refuse()

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
        return cls(*(slot(error, f"__{name}__") for name in ("traceback", "context", "cause", "suppress_context")))

    def restore(self, error: BaseException) -> None:
        """Let the exception be as it was before it was raised."""
        error.__traceback__, error.__context__, error.__cause__ = self.traceback, self.context, self.cause
        error.__suppress_context__ = self.suppresses


def caught(
    kinds: tuple[type[BaseException], ...],
    raised: tuple[Raised, ...],
    ask: Callable[[Any], Any],
    clear: Callable[[Any], None],
    holds: Callable[[Any, str], tuple[Any] | None],
) -> BaseException:
    """What stands for an exception of one of these types.

    Args:
        kinds: what the handlers are for.
        raised: what may come to them.
        clear: records that it gives up its traceback.
        ask: gives what the exception is, by what is known of those; None where that does not tell.
        holds: gives what it has by a name, in a tuple, be it only known to the run; None where nothing is known of it.
    """
    base = kinds[0] if len(kinds) == 1 else Exception if all(issubclass(k, Exception) for k in kinds) else BaseException
    refusing = Caught._refuse
    members = {"stands_for": base, "__str__": refusing, "__repr__": refusing, "__eq__": refusing, "__hash__": refusing}
    kind: Any = type(base.__name__, (Caught, base), members)
    made = base.__new__(kind)
    slot(made, "__dict__").update({_RAISED: raised, _ASK: ask, _CLEAR: clear, _HOLDS: holds})
    return made  # type: ignore[no-any-return]  # of a class that is made here
