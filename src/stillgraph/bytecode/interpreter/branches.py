"""A jump that only the run decides: a branch with two arms.

They end where their ways meet again (`flow.py`), where the block that they are in ends, or with the function. A frame's
variables and its stack are the places that arms leave something in.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from types import CellType
from typing import Any

from stillgraph.bytecode.machine.frame import Frame, Stop, Stops
from stillgraph.bytecode.machine.parcels import is_opaque, read
from stillgraph.bytecode.machine.running import run_block
from stillgraph.bytecode.segments.breaks import Region
from stillgraph.bytecode.segments.failures import failed_in
from stillgraph.bytecode.segments.opening import before_joining
from stillgraph.core.parcel import Parcel
from stillgraph.operators.objects.booleans import not_
from stillgraph.operators.objects.strings import require
from stillgraph.trace.capture.session import capturing
from stillgraph.trace.control_flow.joined.join_errors import ON_STACK
from stillgraph.trace.control_flow.staging import branch, continue_
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import CellPlace, PassingPlace, Variable
from stillgraph.trace.values.callables import contents

Targets = Sequence[tuple[int, Variable | None]]
"""Where a frame may go on, each with what tells whether it is there; the last needs nothing that tells it."""

Left = tuple[Exit | None] | None
"""How a block was left, in a tuple; None where the frame goes on."""


def stopped(frame: Frame, index: int, stop: Stop) -> Exit | None:
    """The exit of a block that has come to one of its ends."""
    frame.states[index] = frame.state
    frame.clear()
    if stop.flag is not None:
        capturing().journal.write(stop.flag, True)
    return stop.exit


@contextlib.contextmanager
def inside(frame: Frame, index: int, *, is_loop: bool = False, is_try: bool = False) -> Iterator[None]:
    """In the body, a segment cannot end."""
    segment = frame.segment
    if segment is None:
        yield
        return
    region = Region(frame, index, is_loop, is_try)
    segment.regions.append(region)
    try:
        yield
    except BaseException as error:
        segment.regions.pop()
        failed_in(segment, region, error)
        raise
    segment.regions.pop()
    segment.staged(region)


def fork(frame: Frame, predicate: Any, if_true: int, if_false: int, stops: Stops) -> Left:
    """Go both ways from a jump."""
    if frame.segment is not None:
        frame.segment.before_fork(frame, if_true, if_false)
    with inside(frame, frame.next):
        return _fork(frame, predicate, if_true, if_false, stops)


def _fork(frame: Frame, predicate: Any, if_true: int, if_false: int, stops: Stops) -> Left:
    asked, opposite = stops.get(if_true), stops.get(if_false)
    if asked is not None and opposite is not None and asked.answers and opposite.answers:
        return _answer(frame, predicate, if_true, if_false, stops)
    checked = frame.prepared.flow.assertion(if_false)
    if checked is not None:
        return _assert(frame, predicate, if_true, if_false, checked, stops)
    capturing().watch.staged(frame.act(_here))
    frame.states[if_true] = frame.states[if_false] = frame.state
    return branch_between(frame, predicate, [(if_true, None)], [(if_false, None)], stops, "if")


def _here() -> Any:
    return sys._getframe(1)


def _assert(frame: Frame, predicate: Any, if_true: int, if_false: int, end: int, stops: Stops) -> Left:
    """An ``assert``: its message is what the instructions give that are run where it does not hold."""
    before, raising = frame.state, end == if_false + 1

    def message() -> Any:
        frame.go(if_false + 1, before)
        run_block(frame, {end: Stop()})
        frame.go(end)
        return frame.pop()

    asking = frame.prepared.flow.reach(if_false + 1, frozenset({end}))
    keeps, drops = places(frame, asking, frozenset({end}), (if_true,), stops)
    frame.act(require, predicate, None if raising else message, [*keeps, *drops])
    frame.go(if_true, before)
    return None


def _answer(frame: Frame, predicate: Any, if_true: int, if_false: int, stops: Stops) -> Left:
    """The condition of a loop ends with this jump: what it asks is the answer."""
    stops_true = stops[if_true].flag
    answer = stops_true or stops[if_false].flag
    assert answer is not None
    capturing().journal.write(answer, predicate if stops_true is not None else frame.act(not_, predicate))
    frame.states[if_true] = frame.states[if_false] = frame.state
    frame.clear()
    return (None,)


def branch_between(
    frame: Frame, predicate: Any, left: Targets, right: Targets, stops: Stops, written: str = ""
) -> Left:
    """Go on at one of some places or at one of some others, until their ways meet again."""
    capture, flow = capturing(), frame.prepared.flow
    starts = [index for index, _ in left], [index for index, _ in right]
    around = flow.loop_around([*starts[0], *starts[1]], stops.keys())
    meetings = flow.meetings(*starts, stops.keys() | around)
    meetings = (*meetings, *(around & flow.ends([*starts[0], *starts[1]], stops.keys() | around)))
    if meetings:  # an end of the block around is told from them, unless it is behind one of them
        reached = flow.ends([*starts[0], *starts[1]], stops.keys() | set(meetings)) - set(meetings)
        meetings = (*meetings, *(index for index in sorted(reached) if stops[index].exit is None))
    flags: Targets = [
        (index, Variable(f"whether it goes on at {index}", False) if number < len(meetings) - 1 else None)
        for number, index in enumerate(meetings)
    ]
    inner = {index: replace(stop, answers=False) for index, stop in stops.items()}
    inner.update({index: Stop(None, flag) for index, flag in flags})
    ends = frozenset(inner)
    nodes = frozenset().union(*(flow.reach(index, ends) for side in starts for index in side))
    leaving = _LEAVES if frame.emit is None else _LEAVES_INSIDE_OUT
    may_leave = flow.leaves([index for side in starts for index in side], set(meetings), stops.keys(), leaving)
    beyond = frozenset().union(*(flow.reach(index, stops.keys()) for index in meetings))
    if may_leave:  # then what comes behind the meetings is run in one of the arms
        nodes |= beyond
    keeps, drops = places(frame, nodes, ends, meetings, stops)
    keeps += [flag for _, flag in flags if flag is not None]
    here, before, states = frame.next, frame.state, frame.states

    def arm(targets: Targets) -> Callable[[], Exit | None]:
        def block() -> Exit | None:
            frame.next, frame.depth, frame.handled = here, before.depth, list(before.handled)
            return run_from(targets, inner)

        return block

    def run_from(targets: Targets, until: Stops) -> Exit | None:
        frame.states = dict(states)
        arrived = arrive(frame, targets, until, here)
        exit = run_block(frame, until) if arrived is None else arrived[0]
        states.update({index: state for index, state in frame.states.items() if index in until})
        return exit

    def rest() -> Exit | None:
        return run_from(flags, stops)

    behind = rest if may_leave and meetings else None
    exit = frame.act(branch, capture, predicate, arm(left), arm(right), keeps, drops, behind, written)
    frame.states = states
    if may_leave or not meetings:
        return (exit,)
    if exit is not None:  # the handler of what a call has raised has left it
        exit = continue_(capture, exit, rest, *places(frame, beyond, frozenset(stops), (), stops))
        frame.states = states
        return (exit,)
    return arrive(frame, flags, stops, here)


_LEAVES = frozenset({"RETURN_VALUE"})
_LEAVES_INSIDE_OUT = _LEAVES | {"YIELD_VALUE", "GET_YIELD_FROM_ITER"}  # its loop may be left there


def arrive(frame: Frame, targets: Targets, stops: Stops, place: int) -> Left:
    """Go on at the one of some places where the frame is; where only the run knows which, in a branch.

    Args:
        frame: of the function.
        targets: the places, with what says whether it is there.
        stops: of the block.
        place: an instruction that stands where the branch does: what a place begins, a ``try``, is not around that.
    """
    for number, (index, flag) in enumerate(targets):
        if flag is None or flag.value is True:
            frame.go(index)
            return None
        if flag.value is not False:
            others, frame.next = targets[number + 1 :], place
            return branch_between(frame, flag.value, [(index, None)], others, stops)
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
            open_written(frame, frame.slots[slot], value)
        place = CellPlace(frame.slots[slot], frame.name(slot))
        (keeps if slot in live or isinstance(contents(frame.slots[slot]), CellType) else drops).append(place)
    for slot in sorted(cells):
        cell = contents(frame.slots[slot])
        if isinstance(cell, CellType):
            keeps.append(CellPlace(cell, frame.name(slot)))
    with capturing().executed.paused():
        needed = frozenset().union(*(flow.needed.get(index, frozenset()) for index in behind))
        lowest = flow.lowest(nodes)
    for number, cell in enumerate(frame.stack):
        value = contents(cell)
        if type(value) is Parcel and lowest <= number < frame.depth and number in needed and not is_opaque(value.value):
            open_written(frame, cell, value)
        (keeps if number in needed else drops).append(PassingPlace(cell, f"{ON_STACK} ({number})"))
    return keeps, drops


def open_written(frame: Frame, cell: CellType, parcel: Parcel) -> None:
    """Open what a variable holds that a block writes: its ways are joined by what they leave there."""
    if frame.segment is not None:
        before_joining(frame.segment, parcel)
    cell.cell_contents = read(parcel)


@contextlib.contextmanager
def under_handlers(frame: Frame, index: int) -> Iterator[None]:
    """Run the blocks of the statement that begins at an instruction."""
    before = frame.outside
    frame.outside = before | frame.prepared.handlers_around(index)
    try:
        yield
    finally:
        frame.outside = before
