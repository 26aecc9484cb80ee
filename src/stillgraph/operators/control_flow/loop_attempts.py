"""Attempts to stage a loop: what is known of the loop, and checkpoints to which the capture goes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stillgraph.core.diagnostics import CaptureError, Refusal, refuse
from stillgraph.operators.conditions.branches import Block
from stillgraph.program.facts.size_facts import Undo
from stillgraph.program.types import JoinFailure
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.heap import locals_of_users
from stillgraph.trace.control_flow.joined.join_errors import refuse_loop
from stillgraph.trace.control_flow.loops import loop
from stillgraph.trace.effects.upcoming import ADVANCE_OUTSIDE
from stillgraph.trace.graph.region import Mark
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.journal import Midway
from stillgraph.trace.sources.memory import Held

MOST_NESTED = 100
"""How many iterations of a loop that nobody knows the length of may stand in arms of one another."""


@dataclass
class Context:
    """A loop of the user's during capture.

    Attributes:
        iterations: how many times its body was recorded, one after the other; None once it is staged as a loop.
        nested: how many iterations of a ``while`` may be nested, each in an arm of the one before.
        failures: why a ``while`` cannot be staged, from one iteration or another on.
    """

    session: Session
    keeps: list[Any]
    drops: list[Any]
    iterations: int | None = 0
    nested: int = MOST_NESTED
    failures: list[Unstageable] = field(default_factory=list)

    def iterated(self) -> None:
        """The body was recorded once more."""
        if self.iterations is not None:
            self.iterations += 1

    def checkpoint(self) -> Checkpoint:
        """A point to which the capture can go back."""
        with self.session.executed.paused():
            return self._checkpoint()

    def _checkpoint(self) -> Checkpoint:
        journal = self.session.journal
        mark = journal.mark
        for place in (*self.keeps, *self.drops):
            journal.note(place)
        capture = self.session
        return Checkpoint(
            capture,
            mark,
            capture.region.mark(),
            len(capture.splits),
            len(capture.watch.decisions),
            len(capture.iterators.advances),
            capture.iterators.count,
            len(capture.deductions.learned),
            capture.memory.as_now(locals_of_users(capture)),
            journal.midway.copy(),
            dict(capture.stale),
            Undo(capture.symbolic.shape_env),
        )


@dataclass
class Checkpoint:
    session: Session
    journal: int
    region: Mark
    splits: int
    decisions: int
    advances: int
    iterators: int
    learned: int
    held: list[Held]
    midway: Midway
    stale: dict[int, tuple[Any, str]]
    sizes: Undo

    def rollback(self) -> None:
        """Undo everything that was written and recorded since.

        Raises:
            CaptureError: an iterator from before has been advanced.
        """
        if any(number <= self.iterators for number in self.session.iterators.advances[self.advances :]):
            message = "an iterator is advanced where only the run decides whether that happens"
            raise refuse("SG305", message, location=here(), hint=ADVANCE_OUTSIDE)
        self.session.journal.rollback(self.journal)
        self.session.journal.midway = self.midway.copy()
        self.session.stale.clear()
        self.session.stale.update(self.stale)
        for held in self.held:
            held.put_back()
        self.session.region.rollback(self.region)
        del self.session.splits[self.splits :]
        self.session.watch.forget(self.decisions)
        del self.session.deductions.learned[self.learned :]
        self.sizes.all_but_guards()


class Unstageable(Exception):
    """A loop cannot be staged; ``error`` says why."""

    def __init__(self, error: CaptureError) -> None:
        super().__init__(str(error))
        self.error = error


def stage(context: Context, test: Callable[[], Any], body: Block) -> Exit | None:
    before, context.iterations = context.iterations, None
    try:
        return loop(context.session, test, body, context.keeps, context.drops)
    except JoinFailure as failure:
        context.iterations = before
        raise Unstageable(refuse_loop(failure)) from failure
    except Refusal as refused:
        context.iterations = before
        raise Unstageable(refused.error) from refused


def try_stage(context: Context, test: Callable[[], Any], body: Block, start: Checkpoint) -> Any:
    """The exit of the staged loop, or the error why there is none; then everything is as at ``start``."""
    start.rollback()
    again = context.checkpoint()
    try:
        return stage(context, test, body)
    except Unstageable as failure:
        again.rollback()
        return failure
