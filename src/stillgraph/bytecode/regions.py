"""Branches and loops of the program: what a frame does under a condition that only the run knows.

A jump gives a branch with two arms, which end where their ways meet again (`flow.py`), where the block that they are in
ends, or with the function. A loop is a block that is run again and again by the operator for loops, which unrolls it or
makes it a loop of the program. A frame's variables and its stack are the places that arms leave something in.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from types import CellType
from typing import Any

from stillgraph.bytecode.frame import Frame, State, Stop, Stops, contents
from stillgraph.bytecode.iteration import Iteration
from stillgraph.bytecode.parcels import is_opaque, read
from stillgraph.bytecode.segments import Region
from stillgraph.core.diagnostics import StillgraphError
from stillgraph.core.files import is_our_module
from stillgraph.core.parcel import Parcel
from stillgraph.operators.booleans import not_
from stillgraph.operators.calls import call
from stillgraph.operators.loops import Context, capture_for, capture_while
from stillgraph.operators.protected import is_signal
from stillgraph.operators.strings import assert_
from stillgraph.trace.exits import BREAK, CONTINUE, Exit, Return
from stillgraph.trace.journal import CellPlace, PassingPlace, Variable
from stillgraph.trace.session import Session, session
from stillgraph.trace.staging import any_flag, branch, continue_

Targets = Sequence[tuple[int, Variable | None]]
"""Where a frame may go on, each with what tells whether it is there; the last needs nothing that tells it."""

Left = tuple[Exit | None] | None
"""How a block was left, in a tuple; None where the frame goes on."""


def _capture() -> Session:
    capture = session()
    assert capture is not None
    return capture


def stopped(frame: Frame, index: int, stop: Stop) -> Exit | None:
    """The exit of a block that has come to one of its ends."""
    frame.states[index] = frame.state
    frame.clear()
    if stop.flag is not None:
        _capture().journal.write(stop.flag, True)
    return stop.exit


@contextlib.contextmanager
def inside(frame: Frame, index: int, is_loop: bool) -> Iterator[None]:
    """In the body, a segment cannot end."""
    segment = frame.segment
    if segment is None:
        yield
        return
    region = Region(frame, index, is_loop)
    segment.regions.append(region)
    try:
        yield
    except BaseException as error:
        segment.regions.pop()
        segment.failed_in(region, error)
        raise
    segment.regions.pop()


# ---- branches
def fork(frame: Frame, predicate: Any, if_true: int, if_false: int, stops: Stops) -> Left:
    """Go both ways from a jump."""
    if frame.segment is not None:
        frame.segment.before_fork(frame, if_true, if_false)
    with inside(frame, frame.next, is_loop=False):
        return _fork(frame, predicate, if_true, if_false, stops)


def _fork(frame: Frame, predicate: Any, if_true: int, if_false: int, stops: Stops) -> Left:
    asked, opposite = stops.get(if_true), stops.get(if_false)
    if asked is not None and opposite is not None and asked.answers and opposite.answers:
        return _answer(frame, predicate, if_true, if_false, stops)
    checked = frame.prepared.flow.assertion(if_false)
    if checked is not None:
        return _assert(frame, predicate, if_true, if_false, checked)
    _capture().watch.staged(frame.act(_here))
    frame.states[if_true] = frame.states[if_false] = frame.state
    return _branch(frame, predicate, [(if_true, None)], [(if_false, None)], stops, "if")


def _here() -> Any:
    return sys._getframe(1)


def _assert(frame: Frame, predicate: Any, if_true: int, if_false: int, end: int) -> Left:
    """An ``assert``: its message is what the instructions give that are run where it does not hold."""
    from stillgraph.bytecode.interpreter import run_block

    before, raising = frame.state, end == if_false + 1

    def message() -> Any:
        frame.go(if_false + 1, before)
        run_block(frame, {end: Stop()})
        frame.go(end)
        return frame.pop()

    frame.act(assert_, predicate, None if raising else message)
    frame.go(if_true, before)
    return None


def _answer(frame: Frame, predicate: Any, if_true: int, if_false: int, stops: Stops) -> Left:
    """The condition of a loop ends with this jump: what it asks is the answer."""
    stops_true = stops[if_true].flag
    answer = stops_true or stops[if_false].flag
    assert answer is not None
    _capture().journal.write(answer, predicate if stops_true is not None else frame.act(not_, predicate))
    frame.states[if_true] = frame.states[if_false] = frame.state
    frame.clear()
    return (None,)


def _branch(frame: Frame, predicate: Any, left: Targets, right: Targets, stops: Stops, written: str = "") -> Left:
    from stillgraph.bytecode.interpreter import run_block

    capture, flow = _capture(), frame.prepared.flow
    starts = [index for index, _ in left], [index for index, _ in right]
    around = flow.loop_around([*starts[0], *starts[1]], stops.keys())
    meetings = flow.meetings(*starts, stops.keys() | around)
    meetings = (*meetings, *(around & flow.ends([*starts[0], *starts[1]], stops.keys() | around)))
    if meetings:  # an end of the block around is told from them
        reached = flow.ends([*starts[0], *starts[1]], stops.keys())
        meetings = (*meetings, *(index for index in sorted(reached) if stops[index].exit is None))
    flags: Targets = [
        (index, Variable(f"whether it goes on at {index}", False) if number < len(meetings) - 1 else None)
        for number, index in enumerate(meetings)
    ]
    inner = {index: replace(stop, answers=False) for index, stop in stops.items()}
    inner.update({index: Stop(None, flag) for index, flag in flags})
    ends = frozenset(inner)
    nodes = frozenset().union(*(flow.reach(index, ends) for side in starts for index in side))
    keeps, drops = places(frame, nodes, ends, meetings, stops)
    keeps += [flag for _, flag in flags if flag is not None]
    here, before, states = frame.next, frame.state, frame.states

    def arm(targets: Targets) -> Callable[[], Exit | None]:
        def block() -> Exit | None:
            frame.states = dict(states)
            frame.next, frame.depth, frame.handled = here, before.depth, list(before.handled)
            arrived = _arrive(frame, targets, inner)
            exit = run_block(frame, inner) if arrived is None else arrived[0]
            states.update({index: state for index, state in frame.states.items() if index in inner})
            return exit

        return block

    def rest() -> Exit | None:
        arrived = _arrive(frame, flags, stops)
        return run_block(frame, stops) if arrived is None else arrived[0]

    may_leave = flow.leaves([index for side in starts for index in side], set(meetings), stops.keys())
    behind = rest if may_leave and meetings else None
    exit = frame.act(branch, capture, predicate, arm(left), arm(right), keeps, drops, behind, written)
    frame.states = states
    if may_leave or not meetings:
        return (exit,)
    return _arrive(frame, flags, stops)


def _arrive(frame: Frame, targets: Targets, stops: Stops) -> Left:
    """Go on at the one of some places where the frame is; where only the run knows which, in a branch."""
    for number, (index, flag) in enumerate(targets):
        if flag is None or flag.value is True:
            frame.go(index)
            return None
        if flag.value is not False:
            others = targets[number + 1 :]
            return _branch(frame, flag.value, [(index, None)], others, stops)
    raise AssertionError("a block ended at none of its ends")


def places(
    frame: Frame, nodes: AbstractSet[int], ends: AbstractSet[int], meetings: Iterable[int], stops: Iterable[int]
) -> tuple[list[Any], list[Any]]:
    """What instructions may write: places that are needed behind them, and others."""
    flow = frame.prepared.flow
    slots, cells = flow.written(flow.with_handlers(nodes, ends))
    behind = (*meetings, *stops)
    live = frozenset().union(*(flow.live[index] for index in behind))
    keeps: list[Any] = []
    drops: list[Any] = []
    for slot in sorted(slots):
        value = contents(frame.slots[slot])
        if type(value) is Parcel and not is_opaque(value.value):
            frame.slots[slot].cell_contents = read(value)
        place = CellPlace(frame.slots[slot], frame.name(slot))
        (keeps if slot in live or isinstance(contents(frame.slots[slot]), CellType) else drops).append(place)
    for slot in sorted(cells):
        cell = contents(frame.slots[slot])
        if isinstance(cell, CellType):
            keeps.append(CellPlace(cell, frame.name(slot)))
    needed = frozenset().union(*(flow.needed.get(index, frozenset()) for index in behind))
    for number, cell in enumerate(frame.stack):
        (keeps if number in needed else drops).append(PassingPlace(cell, f"a value on the stack ({number})"))
    return keeps, drops


# ---- loops
Structure = Callable[[Frame, int, Stops], tuple[bool, "Exit | None"]]


def structure_at(frame: Frame, index: int) -> Structure | None:
    """What runs the statement that begins at an instruction as a whole, rather than by its jumps."""
    if frame.is_generator or (frame.segment is not None and index in frame.segment.breaks.plain[frame.code]):
        return None
    flow = frame.prepared.flow
    name = frame.prepared.decoded.instructions[index].name
    if index in flow.loops:
        is_begun = name == "FOR_ITER" and not (isinstance(frame.peek(), Iteration) and not frame.peek().begun)
        return None if is_begun else loop
    if frame.segment is not None:
        return None  # a segment may end inside of a ``with``
    return with_ if name == "BEFORE_WITH" and index in flow.withs else None


@contextlib.contextmanager
def _inside(frame: Frame, index: int) -> Iterator[None]:
    """Run the blocks of the statement that begins at an instruction."""
    before = frame.outside
    frame.outside = before | frame.prepared.handlers_around(index)
    try:
        yield
    finally:
        frame.outside = before


def loop(frame: Frame, header: int, stops: Stops) -> tuple[bool, Exit | None]:
    """Run a loop; whether the block was left in it, and how."""
    with inside(frame, header, is_loop=True):
        return _loop(frame, header, stops)


def _loop(frame: Frame, header: int, stops: Stops) -> tuple[bool, Exit | None]:
    found = frame.prepared.flow.loops[header]
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
    context = Context(_capture(), keeps, drops, nested=None if frame.segment is None else _MOST_NESTED)
    start = frame.state
    if is_for:
        iteration: Iteration = frame.peek()
        with _inside(frame, header):
            exit = frame.act(capture_for, context, iteration.values, _body(frame, header, start, inner))
        frame.states[each.argument] = replace(start, depth=start.depth - 1)
        ordered.append((each.argument, None))
    else:
        go_on = Variable("whether the loop goes on", False)
        context.keeps.append(go_on)
        test, body = _asking(frame, header, start, go_on), _body(frame, header, start, inner)
        with _inside(frame, header):
            exit = frame.act(capture_while, context, test, body)
        if ends is not None:
            frame.states[ends] = start
    frame.line("call", header)(_note_unrolled, ("for" if is_for else "while", context), {})
    return _behind(frame, exit, ordered, stops)


def _asking(frame: Frame, header: int, start: State, go_on: Variable) -> Callable[[], Any]:
    """The condition of a ``while`` loop; it always holds where the loop does not begin with one."""
    from stillgraph.bytecode.interpreter import run_block

    test = frame.prepared.flow.loops[header].test
    if test is None:
        return lambda: True
    stops = {test.holds: Stop(None, go_on, answers=True), test.ends: Stop(None, None, answers=True)}

    def ask() -> Any:
        frame.go(header, start)
        run_block(frame, stops, started=True)
        answer = go_on.value
        _capture().journal.write(go_on, False)
        return answer

    return ask


_MOST_NESTED = 4  # Python can run a loop that cannot be staged; each iteration nested costs more than the last


def _note_unrolled(kind: str, context: Context) -> None:
    if context.iterations is not None:
        context.session.watch.decided(kind, sys._getframe(1), context.iterations)


def _body(frame: Frame, header: int, start: State, stops: Stops) -> Callable[..., Exit | None]:
    """One iteration, of a ``for`` loop with its item."""
    from stillgraph.bytecode.interpreter import run_block

    inner = {**stops, header: Stop(CONTINUE)}
    test = frame.prepared.flow.loops[header].test
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


def _behind(frame: Frame, exit: Exit | None, targets: Targets, stops: Stops) -> tuple[bool, Exit | None]:
    """Go on behind a loop, unless it was left by what leaves the block around it as well."""
    from stillgraph.bytecode.interpreter import run_block

    outside = None if exit is None else replace(exit, broke=False, continued=False, ended=False)
    if outside is None or all(flag is False for flag in outside.flags):
        left = _arrive(frame, targets, stops)
        return (False, None) if left is None else (True, left[0])
    if outside.certain:
        return True, outside

    def rest() -> Exit | None:
        left = _arrive(frame, targets, stops)
        return run_block(frame, stops) if left is None else left[0]

    nodes = frozenset().union(*(frame.prepared.flow.reach(index, stops.keys()) for index, _ in targets))
    keeps, drops = places(frame, nodes, frozenset(stops), (), stops)
    return True, branch(_capture(), any_flag(outside), lambda: outside.taken, rest, keeps, drops)


# ---- with
def with_(frame: Frame, index: int, stops: Stops) -> tuple[bool, Exit | None]:
    """Run a ``with``: its manager is left once, whichever way the run takes out of its body."""
    from stillgraph.bytecode.interpreter import run_block
    from stillgraph.bytecode.table import HANDLERS

    found, line = frame.prepared.flow.withs[index], frame.line("call")
    HANDLERS["BEFORE_WITH"](frame, None)
    frame.next = index + 1
    manager = frame.stack[frame.depth - 2]
    owner = getattr(manager.cell_contents, "__self__", None)
    if is_our_module(type(owner).__module__):
        return False, None  # it sees exceptions, which those know that stand for it
    ends = [*found.ends, *(() if found.swallowed is None else (found.swallowed,))]
    flags = {end: Variable(f"whether it goes on at {end}", False) for end in ends}
    try:
        with _inside(frame, index):
            exit = run_block(frame, {end: Stop(None, flag) for end, flag in flags.items()})
    except BaseException as error:
        if is_signal(error) or isinstance(error, StillgraphError):  # the capture ends here, or begins anew
            manager.cell_contents(type(error), error, error.__traceback__)
        raise
    assert exit is None, "a body ends where its manager is left"
    if not any(flag.value is True for flag in flags.values()):
        line(call, (manager.cell_contents, None, None, None), {})
        manager.cell_contents = _left_before
    left = _arrive(frame, list(flags.items()), stops)
    return (False, None) if left is None else (True, left[0])


def _left_before(*_: Any) -> None:
    """Stands for the ``__exit__`` of a manager that has been left already."""


# ---- generators turned inside out
def give_out(frame: Frame, emit: Callable[[Any], Any], value: Any, stops: Stops) -> Left:
    """Hand out what a generator yields. It ends where the loop over it was left."""
    from stillgraph.bytecode.interpreter import run_block

    left = frame.act(emit, value)
    frame.next += 1
    if left is True:
        return (Return(None),)
    frame.push(None)
    if left is False:
        return None
    state, index = frame.state, frame.next

    def rest() -> Exit | None:
        frame.go(index, state)
        return run_block(frame, stops)

    nodes = frame.prepared.flow.reach(index, stops.keys())
    keeps, drops = places(frame, nodes, frozenset(stops), (), stops)
    return (continue_(_capture(), Exit(returned=left, value=None), rest, keeps, drops),)

