"""Exceptions that leave an instruction of a segment: Python carries out in the next attempt what has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.segments.breaks import Learned, Region, reason_of, sees_frames, told
from stillgraph.core.diagnostics import CaptureError
from stillgraph.core.faults import is_fault
from stillgraph.trace.capture.session import session

if TYPE_CHECKING:
    from stillgraph.bytecode.segments.segments import Segment


def failed(segment: Segment, frame: Frame, index: int, error: BaseException) -> None:
    """To be called with an exception that leaves a frame's instruction, and no handler of the user's gets.

    Raises:
        Learned: Python carries out the instruction in the next attempt.
    """
    capture = session()
    failure = told(error)
    if failure is not None and capture is not None and capture.executed.refused is not None:
        failure = told(capture.executed.refused)  # of which the code that was refused may have made the other
    if failure is None or is_fault(failure) or sees_frames(failure):
        return
    innermost = segment.culprits.setdefault(id(failure), (failure, frame, index))[1:]
    is_users = not isinstance(failure, CaptureError)
    if segment.regions or (is_users and frame is not segment.frames[0]):
        return  # an operator may know another way; a frame below may handle it
    frame, index = innermost if innermost[0] in segment.frames else (frame, index)
    frame, index = segment.seen_by_python(frame, index, reason_of(failure))
    if index in segment.breaks.residual.get(frame.code, ()):
        return
    segment.breaks.leave(frame.code, index, reason_of(failure))
    raise Learned from None


def caught(segment: Segment, frame: Frame, index: int, error: BaseException) -> None:
    """To be called with an exception that a handler of the user's gets: what has raised it has made it."""
    _, maker, at = segment.culprits.get(id(error), (error, frame, index))
    segment.made.setdefault(id(error), (error, maker, at))


def failed_in(segment: Segment, region: Region, error: BaseException) -> None:
    """To be called with an exception that leaves a branch or loop, which may itself be what has failed.

    Raises:
        Learned: the loop is run by its jumps in the next attempt, or the jump is Python's.
    """
    failure = told(error)
    if failure is None or is_fault(failure) or sees_frames(failure):
        return
    if id(failure) not in segment.culprits and isinstance(failure, CaptureError) and not segment.regions:
        segment.breaks.open(region, reason_of(failure))
        raise Learned from None
    failed(segment, region.frame, region.index, error)
