"""Origins of objects: which instruction of a segment has made each, and which may have been there before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.machine.parcels import is_bound
from stillgraph.bytecode.machine.table import MOVES
from stillgraph.bytecode.segments import instructions
from stillgraph.bytecode.segments.breaks import Learned
from stillgraph.bytecode.segments.leaving import may_be_from_before
from stillgraph.bytecode.segments.lifetimes import may_end_unseen, while_there_is
from stillgraph.bytecode.segments.needs_python import CALLS
from stillgraph.bytecode.segments.showing import meet
from stillgraph.bytecode.segments.whys import why_of
from stillgraph.core.files import is_users
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.code.thread_objects import is_for_threads
from stillgraph.trace.sources.kinds_of_objects import is_machinery
from stillgraph.trace.values.numbers import Staged

if TYPE_CHECKING:
    from stillgraph.bytecode.segments.segments import Segment


def note_met(frame: Frame, each: Instruction) -> None:
    """Note an object from outside that an instruction has got hold of."""
    if each.name in instructions.MEETING:
        value = frame.peek(2 if each.name == "LOAD_METHOD" else 1)
        meet(value)
        _note_unlooked_for(value)
    elif each.name == "BINARY_SUBSCR":
        meet(frame.peek())


def _note_unlooked_for(value: Any) -> None:
    """Note an object that a capture does not look for: a logger, one of torch's, a semaphore."""
    capture = session()
    if capture is None:
        return
    if is_bound(value):
        value = value.__self__
    is_waited_for = is_for_threads(type(value)) and capture.elsewhere.was_there(value)
    if is_waited_for or (is_machinery(type(value)) and not isinstance(value, Staged)):
        capture.met[id(value)] = value


def note_made(segment: Segment, frame: Frame, index: int, each: Instruction) -> None:
    """Note what an instruction has made.

    Raises:
        Learned: a generator, say, whose end nobody sees. In the next attempt, Python carries out the instruction.
    """
    if each.name == "MAKE_CELL":
        made = frame.slots[each.argument]
    elif each.name in MOVES or not frame.depth:
        return
    else:
        made = frame.stack[frame.depth - (2 if each.name in instructions.WITH_ANOTHER else 1)]
    value = made.cell_contents
    if isinstance(value, _ATOMS):
        return
    known = segment.made.get(id(value))
    if known is None or (not is_users(known[1].code.co_filename) and is_users(frame.code.co_filename)):
        held = while_there_is(value, segment.made)  # a library's function is better called by Python as a whole
        segment.made[id(value)] = held, frame, index
    if may_end_unseen(value) and (each.name in CALLS or each.name == "GET_ITER"):
        segment.breaks.leave(frame.code, index, why_of("closing"))
        raise Learned
    if each.name not in instructions.MAKING and may_be_from_before(value):
        segment.foreign.add(id(value))


def is_foreign(segment: Segment, value: Any) -> bool:
    """Whether an object was there before, and Python has to get hold of it: the capture knows no path to it."""
    capture = capturing()
    return id(value) in segment.foreign and (type(value) is not dict or capture.is_from_before(value))


_ATOMS = (type(None), bool, int, float, complex, str, bytes, torch.Tensor)
