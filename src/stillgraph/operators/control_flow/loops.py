"""``while`` and ``for``: unrolled while their conditions are known, staged where they are not."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

from stillgraph.core.diagnostics import Refusal, refuse
from stillgraph.operators import dispatch
from stillgraph.operators.conditions.branches import Block, if_exp, places
from stillgraph.operators.conditions.truth import truth
from stillgraph.operators.containers.drawing import drawn, items_of, iterable_of
from stillgraph.operators.containers.ranges import Count
from stillgraph.operators.containers.sequences import StagedEntries
from stillgraph.operators.containers.watched import Watch, run_over, watched_container
from stillgraph.operators.control_flow.closing import before_stop
from stillgraph.operators.control_flow.generators import Produced, is_fresh
from stillgraph.operators.control_flow.inside_out import run_inside_out
from stillgraph.operators.control_flow.loop_attempts import (
    MOST_NESTED,
    Checkpoint,
    Context,
    Unstageable,
    stage,
    try_stage,
)
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.staging import any_flag, branch
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import Place, Variable
from stillgraph.trace.values.entries import maybe_keys

_MOST_TRIES = 3
"""How often it is tried to stage a ``while``: a first iteration may find other kinds of values than the next."""


# ---- while
def while_(
    test: Callable[[], Any],
    body: Block,
    orelse: Block | None = None,
    *,
    keeps: tuple[str, ...] = (),
    drops: tuple[str, ...] = (),
) -> Exit | None:
    """``while test(): body()``, with ``orelse`` behind it."""
    capture = session()
    if capture is None:
        return _plain_while(test, body, orelse)
    blocks = (test, body, orelse)
    context = Context(capture, list(places(keeps, *blocks)), list(places(drops, *blocks)))
    exit = capture_while(context, test, body)
    _note_unrolled("while", sys._getframe(1), context)
    return _finish(context, exit, orelse)


def _note_unrolled(kind: str, frame: FrameType, context: Context) -> None:
    if context.iterations is not None:
        context.session.watch.decided(kind, frame, context.iterations)


def _plain_while(test: Callable[[], Any], body: Block, orelse: Block | None) -> Exit | None:
    while test():
        exit = body()
        if exit is not None and not exit.continued:
            return exit if exit.returned else None
    return None if orelse is None else orelse()


def capture_while(context: Context, test: Callable[[], Any], body: Block) -> Exit | None:
    """``while test(): body()``: how it was left, be that by its test or otherwise."""
    capture = context.session

    def staged_test() -> Any:
        return truth(capture, test())

    start = context.checkpoint()
    limit: int | None = capture.options.unroll_limit if len(context.failures) < _MOST_TRIES else None
    count = 0
    while True:
        before = context.checkpoint()
        known = staged_test()
        if not isinstance(known, bool):
            before.rollback()
            return _must_stage(context, staged_test, body)
        if not known:
            return None
        exit = body()
        context.iterated()
        count += 1
        if (limit is not None and count > limit) or _undecided(exit):
            if limit is not None:
                staged = try_stage(context, staged_test, body, start)
                if not isinstance(staged, Unstageable):
                    return staged  # type: ignore[no-any-return]  # of Any
                context.failures.append(staged)
                limit, count, start, context.iterations = None, 0, context.checkpoint(), 0
                continue
            context.nested -= 1
            if context.nested < 0 and context.failures:
                raise Refusal(context.failures[-1].error)
            return _nested(context, exit, lambda: capture_while(context, test, body))
        if exit is not None and exit.certain and exit.continued is not True:
            return exit


def _must_stage(context: Context, test: Callable[[], Any], body: Block) -> Exit | None:
    """Stage a loop, its first iteration apart if only that changes the kind of what it carries (``total = 0``)."""
    start = context.checkpoint()
    try:
        return stage(context, test, body)
    except Unstageable as failure:
        if failure.error.reason.code not in _CHANGES_OF_KIND:
            raise Refusal(failure.error) from None
        start.rollback()
        try:
            return _first_apart(context, test, body)
        except (Refusal, Unstageable):
            raise Refusal(failure.error) from None


_CHANGES_OF_KIND = ("SG201", "SG202", "SG203", "SG205")


def _first_apart(context: Context, test: Callable[[], Any], body: Block) -> Exit | None:
    def first() -> Exit | None:
        exit = body()
        if exit is None or exit.continued is True or not (exit.certain or _undecided(exit)):
            return stage(context, test, body)
        return exit if exit.certain else _nested(context, exit, lambda: stage(context, test, body))

    known = test()
    if isinstance(known, bool):
        return first() if known else None
    return branch(context.session, known, first, lambda: None, context.keeps, context.drops)


def _undecided(exit: Exit | None) -> bool:
    """Whether only the run knows if the loop goes on."""
    return (
        exit is not None
        and not exit.certain
        and any(flag is not False for flag in (exit.broke, exit.returned, exit.ended))
    )


def _nested(context: Context, exit: Exit | None, rest: Block) -> Exit | None:
    """The remaining iterations, in an arm for when this one did not leave the loop."""
    assert exit is not None
    left = replace(exit, continued=False)
    return branch(context.session, any_flag(left), lambda: left.taken, rest, context.keeps, context.drops)


# ---- for
@dispatch.for_.defined
def for_(
    iterable: Any,
    body: Callable[[Any], Exit | None],
    orelse: Block | None = None,
    *,
    keeps: tuple[str, ...] = (),
    drops: tuple[str, ...] = (),
) -> Exit | None:
    """``for item in iterable: body(item)``, with ``orelse`` behind it."""
    capture = session()
    if capture is None:
        return _plain_for(iterable, body, orelse)
    context = Context(capture, list(places(keeps, body, orelse)), list(places(drops, body, orelse)))
    if isinstance(iterable, Unjoined):
        again = functools.partial(for_, body=body, orelse=orelse, keeps=keeps, drops=drops)
        return capture.either_block(iterable, again, context.keeps, context.drops)
    exit = capture_for(context, iterable, body)
    _note_unrolled("for", sys._getframe(1), context)
    return _finish(context, exit, orelse)


def _plain_for(iterable: Any, body: Callable[[Any], Exit | None], orelse: Block | None) -> Exit | None:
    for item in iterable:
        exit = body(item)
        if exit is not None and not exit.continued:
            return exit if exit.returned else None
    return None if orelse is None else orelse()


def capture_for(context: Context, iterable: Any, body: Callable[[Any], Exit | None]) -> Exit | None:
    """``for item in iterable: body(item)``: how it was left."""
    iterable = iterable_of(iterable)
    sequence = run_over(iterable)
    if sequence is None:
        sequence = Count.of(iterable)
    if sequence is None:
        iterable = drawn(iterable)
        sequence = run_over(iterable)  # of what the method of an object gives
    if is_fresh(iterable):
        return _run_generator(context, iterable, body)
    if sequence is None:
        if isinstance(iterable, Iterator):
            context.session.iterators.before_advancing(iterable)
        return _unroll(context, items_of(iterable), body, MOST_NESTED)
    if isinstance(sequence, StagedEntries):
        return _run_over_entries(context, sequence, body)
    length = sequence.length()
    if not sequence.is_known:
        if not sequence.pickable:
            raise refuse("SG206", "only the run knows how often this loop runs", location=here())
        return _staged_over(context, sequence, length, body)
    start = context.checkpoint()
    staged: Any = None
    left = length - sequence.at_index
    if sequence.stageable and not sequence.endless and left > context.session.options.unroll_limit:
        staged = _try_stage_for(context, sequence, length, body, start)
        if not isinstance(staged, Unstageable):
            return staged  # type: ignore[no-any-return]  # of Any
        start = context.checkpoint()
    attempt = staged is None and sequence.stageable
    items = sequence.begin()
    most = MOST_NESTED if sequence.endless else math.inf
    for item in items:
        exit = body(item)
        context.iterated()
        if not (sequence.is_known or sequence.endless):  # the body has drawn from it, in a branch
            start.rollback()
            return _staged_over(context, sequence, length, body)
        if _undecided(exit):
            if attempt:
                staged = _try_stage_for(context, sequence, length, body, start)
                if not isinstance(staged, Unstageable):
                    return staged  # type: ignore[no-any-return]  # of Any
                items = sequence.begin()
                context.iterations = 0
                return _unroll(context, items, body, most)
            before_stop(context.session, items)
            return _nested(context, exit, functools.partial(_unroll, context, items, body, most))
        if exit is not None and exit.certain and exit.continued is not True:
            return exit
    return None


def _staged_over(context: Context, sequence: Any, length: Any, body: Callable[[Any], Exit | None]) -> Exit | None:
    """Stage a loop over a sequence."""
    exit = _must_stage(*_indexed(context, sequence, length, body))
    context.iterations = None
    _end(sequence, exit)
    return exit


def _end(sequence: Any, exit: Exit | None) -> None:
    """Told how a staged loop over a sequence was left: at its end, an iterator over a list has no more elements."""
    if not (sequence.once and sequence.may_grow):
        return
    if exit is None:
        sequence.end()
    elif not exit.certain or exit.ended is True:
        left = any_flag(replace(exit, ended=False, continued=False))
        if_exp(left, lambda: None, sequence.end)


def _unroll(
    context: Context, items: Iterator[Any], body: Callable[[Any], Exit | None], most: float = math.inf
) -> Exit | None:
    """Run the body once for each item; from an iteration that may leave the loop, the others stand in an arm.

    Raises:
        CaptureError: there are more than ``most`` such iterations.
    """
    for item in items:
        exit = body(item)
        context.iterated()
        if _undecided(exit):
            if not most:
                hint = "Write a while loop with a counter, or loop over a list or range."
                what = "a loop over an iterator has no end that a capture sees"
                raise refuse("SG206", what, location=here(), hint=hint)
            before_stop(context.session, items)
            return _nested(context, exit, lambda: _unroll(context, items, body, most - 1))
        if exit is not None and exit.certain and exit.continued is not True:
            return exit
    return None


def _run_over_entries(context: Context, sequence: StagedEntries, body: Callable[[Any], Exit | None]) -> Exit | None:
    """Run the body once for each element that may be there, in an arm for when it is."""

    def one(element: tuple[Any, Any]) -> Exit | None:
        present, item = element
        if present is True:
            return body(item)
        return branch(context.session, present, lambda: body(item), lambda: None, context.keeps, context.drops)

    return _unroll(context, _checked(context.session, sequence.container, iter(sequence.perhaps())), one)


def _checked(capture: Session, container: Any, elements: Iterator[Any]) -> Iterator[Any]:
    keys = watched_container(container)
    before, watch = maybe_keys(keys), None if isinstance(keys, frozenset) else Watch(capture, keys)
    for element in elements:
        yield element
        now = maybe_keys(keys)
        if len(now) != len(before) or any(a is not b for a, b in zip(now, before)):
            raise refuse_unknown("SG211", "a dict or set is changed in a branch while it is run over", keys)
        if watch is not None:
            watch.check()


def _run_generator(context: Context, generator: Produced, body: Callable[[Any], Exit | None]) -> Exit | None:
    """Run a generator, and the loop's body wherever it yields."""
    context.iterations = None  # the generator's own loops tell how often

    def one(item: Any) -> Exit | None:
        exit = body(item)
        return exit and replace(exit, continued=False)

    return run_inside_out(context, generator.run, one, repeats=True)


def _indexed(
    context: Context, sequence: Any, length: Any, body: Callable[[Any], Exit | None]
) -> tuple[Context, Callable[[], Any], Block]:
    """A ``for`` loop as one with a test.

    Raises:
        CaptureError: another iterator draws from the sequence.
    """
    sequence.require_own()
    place: Place = sequence.position or Variable("the loop's index", 0)
    capture = context.session

    def test() -> Any:
        sequence.check(place.get())
        return place.get() < (sequence.length() if sequence.may_change else length)

    def one() -> Exit | None:
        item = sequence.at(place.get())
        if sequence.once:  # the body may draw from it, too
            sequence.advance(place.get() + 1)
            return body(item)
        exit = body(item)
        capture.journal.write(place, place.get() + 1)
        return exit

    return Context(capture, [place, *context.keeps], context.drops), test, one


def _stage_for(context: Context, sequence: Any, length: Any, body: Callable[[Any], Exit | None]) -> Exit | None:
    return stage(*_indexed(context, sequence, length, body))


def _try_stage_for(
    context: Context, sequence: Any, length: Any, body: Callable[[Any], Exit | None], start: Checkpoint
) -> Any:
    start.rollback()
    again = context.checkpoint()
    try:
        exit = _stage_for(context, sequence, length, body)
        context.iterations = None
        _end(sequence, exit)
        return exit
    except Unstageable as failure:
        again.rollback()
        return failure


# ---- behind the loop
def _finish(context: Context, exit: Exit | None, orelse: Block | None) -> Exit | None:
    """What a loop's exit is to the block around it: ``break`` ends here, ``else`` runs unless there was one.

    A ``break`` inside ``else`` is another loop's: it must not be taken for this one's.
    """
    if exit is None or exit.ended is True:
        return None if orelse is None else orelse()
    if exit.certain or orelse is None:
        return _outside(exit)
    left = replace(exit, ended=False, continued=False)
    if all(flag is False for flag in left.flags):
        return orelse()
    return branch(context.session, any_flag(left), lambda: _outside(left.taken), orelse, context.keeps, context.drops)


def _outside(exit: Exit) -> Exit | None:
    """An exit behind its loop: only a ``return`` goes further."""
    outside = replace(exit, broke=False, ended=False, continued=False)
    return None if all(flag is False for flag in outside.flags) else outside
