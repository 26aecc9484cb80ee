"""What a segment hands out where it ends: its frames, and that each value in them can leave it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from stillgraph.bytecode.segments.breaks import Learned
from stillgraph.bytecode.segments.deciding import deciding, unset
from stillgraph.bytecode.segments.layouts import Layout, suspended
from stillgraph.bytecode.segments.leaving import attributes_of, inside, kind_of, stays
from stillgraph.bytecode.segments.marking import may_be_marked
from stillgraph.bytecode.segments.origins import is_foreign
from stillgraph.bytecode.segments.whys import Why, because, why_of
from stillgraph.core.diagnostics import refuse
from stillgraph.trace.capture.session import session
from stillgraph.trace.heap.places import CellPlace

if TYPE_CHECKING:
    from stillgraph.bytecode.segments.segments import Segment


def hand_out(segment: Segment) -> tuple[Layout, list[Any]]:
    """The frames as they are.

    Raises:
        Learned: something among what they hold has to be made by Python.
        CaptureError: only the run knows whether a variable has a value.
    """
    layout, values = suspended(segment.frames)
    require_set(segment, values)
    leaving = [*inside([*values, *_written(segment)], segment.made)]
    attributes = attributes_of(value for value, _ in leaving)
    for value, holder in leaving:
        is_pythons = stays(value) or id(value) in attributes or may_be_marked(value, segment.frames)
        if holder is not None and (is_pythons or is_foreign(segment, value)):
            _, frame, index = segment.made[holder]
            each = frame.prepared.decoded.instructions[index]
            made = "raised" if isinstance(value, BaseException) else "makes"
            makes = why_of("inside") if each.name == "BEFORE_WITH" else why_of(made, kind_of(value))
            segment.breaks.leave(frame.code, index, makes)
            raise Learned
    segment.require_closed()
    return layout, values


def require_set(segment: Segment, values: Iterable[Any] = ()) -> None:
    """To be called where a segment ends: no place that outlives it can be left without a value by the run alone.

    Args:
        values: what its frames hand on.

    Raises:
        Learned: the next attempt leaves to Python what decides that.
        CaptureError: what that is, is not known.
    """
    own = {id(cell) for frame in segment.frames for cell in frame.slots}  # what is needed of them is handed on
    found = unset(session(), [*values, *_written(segment, own)])
    if not found:
        return
    message = "only the run knows whether a variable has a value that is needed behind a segment"
    region, before = deciding(segment.decisions, found), segment.breaks.count
    if region is not None:
        segment.breaks.open(region, because("cut", Why(message, "SG306")))
    if segment.breaks.count > before:
        raise Learned
    raise refuse("SG306", message)


def _written(segment: Segment, without: Container[int] = ()) -> Iterator[Any]:
    """What has been stored in what may outlive the segment, but for the cells with some ids."""
    capture = session()
    for write in () if capture is None else capture.journal.written(0).values():
        cell = write.place.cell if isinstance(write.place, CellPlace) else None
        if cell is None or not (segment.has_made(cell) or id(cell) in without):
            yield write.place.get()
