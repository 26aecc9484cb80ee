"""Exception handlers around what is being recorded: staged `try` statements, managers, loops that are tried."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any


class Handlers:
    """What a recorder knows of them."""

    def __init__(self) -> None:
        self.attempts: list[Any] = []  # the `try` statements whose bodies are being recorded, see `protected.Attempt`
        self.unbound_behind: list[Any] = []  # variables of handlers at work, see `protected.unbound_behind`
        self.unsettled: list[list[BaseException]] = []  # by a loop whose body is being tried: why paths in it fail
        self.raising: dict[int, Any] = {}  # by exception: the `caught.Raisable` of one that had been raised before
        self.handled_outside = _being_handled()
        self.handled_before: list[BaseException] = []  # what a segment begins in the handlers of: another in each call
        self.swallowing: list[int] = []  # by manager entered that may end an exception: how many attempts lie around
        self.watching: list[int] = []  # the same, by manager of the user's that sees an exception go by
        self.asking: list[tuple[type[BaseException], int]] = []  # what Python handles, and the attempts around

    @contextlib.contextmanager
    def trying(self) -> Iterator[list[BaseException]]:
        """Collects why paths of a body fail: what a later iteration brings may be what they miss in the first one."""
        failed: list[BaseException] = []
        self.unsettled.append(failed)
        try:
            yield failed
        finally:
            self.unsettled.pop()

    @contextlib.contextmanager
    def answering(self, kind: type[BaseException]) -> Iterator[None]:
        """While code is run that answers Python by an exception of a class, which Python itself handles."""
        self.asking.append((kind, len(self.attempts)))
        try:
            yield
        finally:
            self.asking.pop()

    def answers(self, kind: type[BaseException], raised: Sequence[Any]) -> bool:
        """Whether Python would take what is raised for an answer: no ``try`` around it ends it before."""
        for asked, around in reversed(self.asking):
            inner = [each for each in self.attempts[around:] if not each.only_cleans_up]
            if issubclass(kind, asked):
                return not any(each.may_be(attempt.kinds) for attempt in inner for each in raised)
        return False

    @property
    def may_carry(self) -> bool:
        """Whether what is recorded is in the body of a loop or ``try`` that hands on what places hold."""
        return bool(self.unsettled) or any(attempt.staged for attempt in self.attempts)

    def before_node(self, takes_all: bool) -> None:
        """Let the handlers know how far their bodies have come, those that may be the next an exception comes to.

        A `try` that takes all exceptions (``finally``) goes before those around it, which get what its own handler
        raises: they are told there, and not by its body.

        Args:
            takes_all: whether what is recorded next is such a `try` as a whole.
        """
        innermost = len(self.attempts)
        while innermost > 0 and not self.attempts[innermost - 1].takes_all:
            innermost -= 1
        for attempt in self.attempts[max(innermost - 1, 0) :]:
            if takes_all:
                attempt.require_begun()
            else:
                attempt.before_node()

    def path_fails(self, refusal: BaseException) -> None:
        """Refuse a path that cannot be recorded; while a loop is tried, only once that is known of all iterations.

        Raises:
            Refusal: at once, outside of such loops.
        """
        if not self.unsettled:
            raise refusal
        self.unsettled[-1].append(refusal)


def _being_handled() -> frozenset[int]:
    """The ids of the exceptions in whose handlers a capture begins."""
    found: list[int] = []
    error = sys.exc_info()[1]
    while error is not None and id(error) not in found:
        found.append(id(error))
        error = error.__context__
    return frozenset(found)
