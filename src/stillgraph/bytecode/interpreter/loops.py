"""Loops: blocks that an operator runs again and again, which unrolls them or makes them loops of the program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from stillgraph.bytecode.interpreter.branches import Targets, arrive, inside, places, under_handlers
from stillgraph.bytecode.machine.frame import Frame, State, Stop, Stops
from stillgraph.bytecode.machine.iteration import Iteration
from stillgraph.bytecode.machine.running import run_block
from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.operators.control_flow.loops import capture_for, capture_while
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.control_flow.staging import any_flag, branch
from stillgraph.trace.heap.exits import BREAK, CONTINUE, Exit
from stillgraph.trace.heap.places import Variable


def loop(frame: Frame, header: int, stops: Stops, place: int) -> tuple[bool, Exit | None]:
    """Run a loop; whether the block was left in it, and how.

    ``place`` is an instruction that is protected by what is around the loop.
    """
    with inside(frame, header, is_loop=True):
        return _loop(frame, header, stops, place)


def _loop(frame: Frame, header: int, stops: Stops, place: int) -> tuple[bool, Exit | None]:
    found = frame.prepared.flow.loop(header)
    each = frame.prepared.decoded.instructions[header]
    is_for = each.name == "FOR_ITER"
    ends = each.argument if is_for else None if found.test is None else found.test.ends
    exits = [index for index in found.exits if not (is_for and index == ends)]
    exits.sort(key=lambda index: index == ends, reverse=True)
    needs_flags = is_for or len(exits) > 1
    flags = {
        index: Variable(f"whether it goes on at {index}", False) if needs_flags and (is_for or number) else None
        for number, index in enumerate(exits)
    }
    ordered = sorted(flags.items(), key=lambda pair: pair[1] is None)
    inner = {index: Stop(BREAK, flag) for index, flag in flags.items()}
    keeps, drops = places(frame, found.nodes, frozenset(inner), found.exits, [header, *stops])
    keeps += [flag for flag in flags.values() if flag is not None]
    context = Context(capturing(), keeps, drops)
    if frame.segment is not None:
        context.nested = _MOST_NESTED
    line = _line(frame, header, place)
    start = frame.state
    if is_for:
        iteration: Iteration = frame.peek()
        with under_handlers(frame, place):
            exit = line(capture_for, (context, iteration.values, _body(frame, header, start, inner)), {})
        frame.states[each.argument] = replace(start, depth=start.depth - 1)
        ordered.append((each.argument, None))
    else:
        go_on = Variable("whether the loop goes on", False)
        context.keeps.append(go_on)
        test, body = _asking(frame, header, start, go_on), _body(frame, header, start, inner)
        with under_handlers(frame, place):
            exit = line(capture_while, (context, test, body), {})
        if ends is not None:
            frame.states[ends] = start
    line(_note_unrolled, ("for" if is_for else "while", context), {})
    return behind(frame, exit, ordered, stops, place)


def _line(frame: Frame, header: int, place: int) -> Callable[..., Any]:
    """What stands where the loop does, for a call: no ``try`` that its body begins with is around it."""
    before = frame.staged
    frame.staged = before | (frame.prepared.tries_around(header) - frame.prepared.tries_around(place))
    try:
        return frame.line("call", header)
    finally:
        frame.staged = before


def _asking(frame: Frame, header: int, start: State, go_on: Variable) -> Callable[[], Any]:
    """The condition of a ``while`` loop; it always holds where the loop does not begin with one."""
    test = frame.prepared.flow.loops[header].test
    if test is None:
        return lambda: True
    stops = {test.holds: Stop(None, go_on, answers=True), test.ends: Stop(None, None, answers=True)}

    def ask() -> Any:
        frame.go(header, start)
        run_block(frame, stops, started=True)
        answer = go_on.value
        capturing().journal.write(go_on, False)
        return answer

    return ask


_MOST_NESTED = 4  # Python can run a loop that cannot be staged; each iteration nested costs more than the last


def _note_unrolled(kind: str, context: Context) -> None:
    if context.iterations is not None:
        context.session.watch.decided(kind, sys._getframe(1), context.iterations)


def _body(frame: Frame, header: int, start: State, stops: Stops) -> Callable[..., Exit | None]:
    """One iteration, of a ``for`` loop with its item."""
    inner = {**stops, header: Stop(CONTINUE)}
    test = frame.prepared.flow.loop(header).test
    if test is not None:
        def after_test() -> Exit | None:
            frame.go(test.holds, start)
            return run_block(frame, inner)

        return after_test

    def body(*item: Any) -> Exit | None:
        frame.go(header, start)
        if item:
            frame.push(item[0])
            frame.next += 1
        return run_block(frame, inner, started=not item)

    return body


def behind(
    frame: Frame, exit: Exit | None, targets: Targets, stops: Stops, place: int
) -> tuple[bool, Exit | None]:
    """Go on behind a loop, unless it was left by what leaves the block around it as well."""
    outside = None if exit is None else replace(exit, broke=False, continued=False, ended=False)
    if outside is None or all(flag is False for flag in outside.flags):
        left = arrive(frame, targets, stops, place)
        return (False, None) if left is None else (True, left[0])
    if outside.certain:
        return True, outside

    def rest() -> Exit | None:
        left = arrive(frame, targets, stops, place)
        return run_block(frame, stops) if left is None else left[0]

    nodes = frozenset().union(*(frame.prepared.flow.reach(index, stops.keys()) for index, _ in targets))
    keeps, drops = places(frame, nodes, frozenset(stops), (), stops)
    return True, branch(capturing(), any_flag(outside), lambda: outside.taken, rest, keeps, drops)
