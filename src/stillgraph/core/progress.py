"""What stillgraph is doing, for who wants to show it: phases, and how many of their steps are done.

What works says it with `doing` and `step`; nobody need listen. Each thread is by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Phase:
    """Something that takes time.

    Attributes:
        what: in words: ``"tracing for the file"``.
        steps: what its steps are called, in the plural.
        total: how many they are; 0 where nobody knows.
        done: how many are done.
    """

    what: str
    steps: str = ""
    total: int = 0
    done: int = 0

    def __str__(self) -> str:
        if not self.steps or not (self.total or self.done):
            return self.what
        count = f"{min(self.done, self.total)} of {self.total}" if self.total else str(self.done)
        return f"{self.what}, {count} {self.steps}"


Listener = Callable[[Phase | None], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
_PHASE: ContextVar[Phase | None] = ContextVar("phase", default=None)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Within it a listener is told of each change: the phase, or None where there is none any more."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def is_heard() -> bool:
    """Whether anybody listens."""
    return _LISTENER.get() is not None


@contextlib.contextmanager
def doing(what: str, steps: str = "", total: int = 0) -> Iterator[None]:
    """Within it this is what is done; behind it, what was done around it."""
    before = _PHASE.get()
    _tell(Phase(what, steps, total))
    try:
        yield
    finally:
        _tell(before)


def step() -> None:
    """One more step of the phase is done."""
    phase = _PHASE.get()
    if phase is not None:
        _tell(replace(phase, done=phase.done + 1))


def _tell(phase: Phase | None) -> None:
    _PHASE.set(phase)
    listener = _LISTENER.get()
    if listener is not None:
        listener(phase)
