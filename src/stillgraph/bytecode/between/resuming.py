"""Running frames for a segment: from the beginning of a function, or from where another segment has ended.

Outside of a capture the same is done by Python's own hand: one instruction (`step`), or all that is left (`run_on`).
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import BuiltinMethodType
from typing import Any

from stillgraph.bytecode.between.way import Done, Passed
from stillgraph.bytecode.interpreter.interpreter import carry_out, finished, go_on, is_handled, run, run_under, under
from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.machine.parcels import is_opaque
from stillgraph.bytecode.machine.table import MOVES, taken
from stillgraph.bytecode.machine.tracebacks import raise_again, unchanged
from stillgraph.bytecode.segments.breaks import Breaks, Ended
from stillgraph.bytecode.segments.called import called
from stillgraph.bytecode.segments.failures import caught, failed
from stillgraph.bytecode.segments.handing_out import hand_out, require_set
from stillgraph.bytecode.segments.segments import Segment
from stillgraph.core.lookup import is_exactly
from stillgraph.trace.capture.session import capturing, session


def suspended() -> None:
    """The first element of what a segment gives that has not come to the end of the call: an object like no other."""


SUSPENDED = suspended


def run_in(segment: Segment, frame: Frame) -> Any:
    """Run a frame for a segment; the outermost one gives what is to be gone on with where the segment ends."""
    segment.enter(frame)
    try:
        value = finished(run(frame))
        frame.let_go()
        if frame is segment.frames[0]:
            segment.require_closed()
            capture = session()
            if capture is None or capture.may_end:  # otherwise it holds the whole call, as with a full graph
                require_set(segment)
    except Ended:
        if frame is not segment.frames[0]:
            raise  # and stay among the frames that are handed out
        return _handed_out(segment)
    except BaseException:
        segment.leave(frame)
        raise
    segment.leave(frame)
    return value


def resume(segment: Segment, frames: list[Frame], is_left: bool) -> Any:
    """Run frames on for a segment.

    Args:
        segment: the attempt at it.
        frames: those of the call.
        is_left: whether what the program raises leaves them all, see `layouts.left_by_raising`.
    """
    capture = capturing()
    segment.begin(capture)
    for frame in frames:
        frame.segment, frame.transparent = segment, True
        around = frame.prepared.around(frame.next)
        entered = frozenset(target for target in around if frame.prepared.is_with(target))
        frame.entered, frame.beyond = (frozenset(), entered) if is_left else (entered, frozenset())
        capture.conversion.resumes(frame.code, frame.globals)
        capture.reads.followed.setdefault(frame.code, set())
    segment.frames[:] = frames
    capture.resumed = segment.frames
    capture.handlers.handled_before = [error for frame in frames for error in frame.handled]
    with unchanged(capture.handlers.handled_before):
        try:
            value = _run_through(frames, 0, lambda: go_on(frames[-1]))
            segment.require_closed()
            require_set(segment)
            return value
        except Ended:
            return _handed_out(segment)
        finally:
            segment.frames.clear()


def _handed_out(segment: Segment) -> tuple[Any, ...]:
    try:
        layout, values = hand_out(segment)
    finally:
        segment.frames.clear()  # the capture may begin anew
    return (SUSPENDED, segment.number(layout), *values)


def _run_through(frames: list[Frame], position: int, innermost: Callable[[], Any]) -> Any:
    """What a frame returns that waits for the ones above it; ``innermost`` goes on in the last."""
    frame = frames[position]
    if position == len(frames) - 1:
        return _ended(frame, run_under(frame, innermost))

    def go_on_behind_call() -> Any:
        at = frame.next
        try:
            value = frame.act(_run_through, frames, position + 1, innermost)
        except Ended:
            raise  # the frames above are handed out too
        except BaseException as error:
            if frame.segment is not None:
                frame.segment.leave_all_above(frame)
            if not is_handled(frame, at, error):
                if frame.segment is not None:
                    failed(frame.segment, frame, at, error)
                raise
            if frame.segment is not None:
                caught(frame.segment, frame, at, error)
        else:
            if frame.segment is not None:
                frame.segment.leave_all_above(frame)
            frame.push(value)
            frame.next += 1
        return go_on(frame)

    return _ended(frame, run_under(frame, go_on_behind_call))


def _ended(frame: Frame, outcome: Any) -> Any:
    """What a frame gives that has run to its end; nothing of ours is to hold its variables any longer."""
    value = finished(outcome)
    frame.let_go()
    return value


def run_on(frames: list[Frame]) -> Any:
    """Run frames to the end of the call, in Python."""
    return _run_through(frames, 0, lambda: go_on(frames[-1]))


# ---- by Python's own hand
def step(frames: list[Frame]) -> None:
    """Carry out one instruction; behind it, ``frames`` are those that are left.

    Raises:
        Exception: the instruction does, and no handler of the user's gets it.
    """
    _step(frames, 0)


def _step(frames: list[Frame], position: int) -> None:
    under(frames[position], functools.partial(_one, frames, position))  # what has ended keeps its closure


def _one(frames: list[Frame], position: int) -> None:
    frame = frames[position]
    index = frame.next
    try:
        if position < len(frames) - 1:
            frame.act(_step, frames, position + 1)
        else:
            carry_out(frame)
    except BaseException as error:
        if not is_handled(frame, index, error):
            raise
        del frames[position + 1 :]


class Astray(BaseException):
    """Something of ours has failed between two instructions: the frames are as the last one has left them.

    No `Exception`, so that it is none of the user's code.

    Attributes:
        error: what was raised.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


@dataclass
class Hand:
    """Python's own hand: carries out instructions on the frames of a call, with the real values.

    Attributes:
        frames: those of the call, behind what was done.
        breaks: which instructions are Python's.
        way: all instructions that were carried out.
        done: those that count: not the first, nor what Python does by the way.
    """

    frames: list[Frame]
    breaks: Breaks
    way: list[Passed] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)

    def go(self) -> tuple[Any] | None:
        """Carry out the instruction that the frames are at, which is Python's, and what is Python's behind it.

        Moves between variables and the stack are done on the way, and jumps on what is known.

        Returns:
            What the call gives, in a tuple, where it came to its end.

        Raises:
            Exception: an instruction does, and no handler of the user's gets it.
            Astray: what is to be done next cannot be told.
        """
        if self.frames[-1].instruction.name != "RETURN_VALUE":
            self._step()
        return self.go_on()

    def go_on(self) -> tuple[Any] | None:
        """The same, where the instruction that the frames are at may be the next segment's."""
        while True:
            frame = self.frames[-1]
            if frame.instruction.name == "RETURN_VALUE":
                self.way.append(Passed(len(self.frames) - 1, frame.next, 0))
                value = frame.pop()
                self.frames.pop().let_go()
                if not self.frames:
                    return (value,)
                self.frames[-1].push(value)
                self.frames[-1].next += 1
                continue
            try:
                goes_on = self._is_next_by_hand(frame)
            except Exception as error:  # of any kind: nothing of the user's is carried out for this
                raise Astray(error) from None
            if not goes_on:
                return None
            if frame.instruction.name != "RETURN_VALUE":
                self._step()

    def _is_next_by_hand(self, frame: Frame) -> bool:
        """Whether Python carries out the instruction that a frame is at; what it loads may be on the stack then."""
        if frame.instruction.name in _LOADS and frame.next not in self.breaks.residual.get(frame.code, ()):
            try:
                if not self._leads_to_more(frame):
                    return False
            except NameError:  # raised anew, where its handlers get it
                return True
        each = frame.instruction
        if _returns(frame):
            return True
        if not _is_by_hand(frame, self.breaks):
            return False
        if each.name not in MOVES and each.name not in _BY_THE_WAY:
            self.done.append((frame.code, frame.next))
        return True

    def _step(self) -> None:
        position, index = len(self.frames) - 1, self.frames[-1].next
        step(self.frames)
        self.way.append(Passed(position, index, self.frames[-1].next))

    def _leads_to_more(self, frame: Frame) -> bool:
        """Put on the stack what comes next, if Python is to do something with it: otherwise that is a segment's."""
        depth, index, before = frame.depth, frame.next, len(self.way)
        more = False
        try:
            while frame.instruction.name in _LOADS:
                self.way.append(Passed(len(self.frames) - 1, frame.next, frame.next + 1))
                carry_out(frame)
            more = _returns(frame) or _is_by_hand(frame, self.breaks)
        finally:
            if not more:
                del self.way[before:]
                frame.cut(depth)
                frame.next = index
        return more


def rethrow(frames: list[Frame], error: BaseException) -> None:
    """Let the handler get an exception that the innermost frame's instruction has raised.

    Raises:
        BaseException: it, where there is none.
    """
    while not is_handled(frames[-1], frames[-1].next, error):
        frames.pop()
        if not frames:
            raise_again(error)


_LOADS = frozenset({"LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "PUSH_NULL", "COPY"})
_DATA = (bool, int, float, complex, str, bytes, type(None))
_PLAIN = frozenset(
    {
        *("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "UNARY_OP", "BINARY_OP"),
        *("COMPARE_OP", "IS_OP", "CONVERT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "BUILD_STRING"),
    }
)
"""Instructions that Python does by the way where nothing but numbers and texts are at hand."""

_DISPLAYS = frozenset({"BUILD_TUPLE", "BUILD_LIST"})


_BY_THE_WAY = _PLAIN | _DISPLAYS
_BUILT_IN = (list, dict, set, collections.deque, str, bytes)


def _returns(frame: Frame) -> bool:
    """Whether a frame returns at once, be it a new tuple of what it has."""
    instructions = frame.prepared.decoded.instructions
    index = frame.next + (frame.instruction.name in _DISPLAYS)
    return instructions[index].name == "RETURN_VALUE"


def _is_by_hand(frame: Frame, breaks: Breaks) -> bool:
    each = frame.instruction
    if each.name in MOVES or each.name == "SET_FUNCTION_ATTRIBUTE" or frame.next in breaks.residual.get(frame.code, ()):
        return True
    operands = [cell.cell_contents for cell in frame.stack[frame.depth - taken(each) : frame.depth]]
    if each.name in _PLAIN and all(is_exactly(value, _DATA) for value in operands):
        return True
    if each.name == "CALL" and _is_of_data(called(frame, each)):
        given = operands[-each.argument :] if each.argument else []
        return all(is_exactly(value, _DATA) for value in given)
    return any(is_opaque(value) for value in operands)


def _is_of_data(function: Any) -> bool:
    """Whether something called is a method of a list, a text or the like."""
    return isinstance(function, BuiltinMethodType) and is_exactly(function.__self__, _BUILT_IN)
