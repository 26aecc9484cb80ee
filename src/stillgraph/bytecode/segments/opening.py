"""Parcels that a segment opens: what instructions take, move, or join needs the values inside."""

from __future__ import annotations

from types import CellType
from typing import TYPE_CHECKING, Any

from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.machine.parcels import is_opaque, read
from stillgraph.bytecode.segments import instructions
from stillgraph.bytecode.segments.breaks import Learned
from stillgraph.bytecode.segments.leaving import why_differing
from stillgraph.bytecode.segments.needs_python import only_python
from stillgraph.bytecode.segments.showing import look_into
from stillgraph.core.parcel import Parcel
from stillgraph.trace.values.callables import contents

if TYPE_CHECKING:
    from stillgraph.bytecode.segments.segments import Segment


def open_operands(segment: Segment, frame: Frame, index: int, operands: list[CellType]) -> list[Any]:
    """The operands of an instruction, none of them a parcel."""
    for cell in operands:
        value = cell.cell_contents
        if type(value) is Parcel:
            if is_opaque(value.value):
                segment.end(frame, index, only_python(value.value))
            _open_parcel(segment, frame, index, cell, value)
    return [cell.cell_contents for cell in operands]


def open_moved(segment: Segment, frame: Frame, index: int, each: Instruction) -> None:
    """Open what an instruction moves in a branch or loop: its ways are joined by the values that they leave."""
    cells = [frame.slots[each.argument]] if each.name in instructions.OF_SLOTS else []
    if each.name in instructions.OF_STACK:
        cells.append(frame.stack[frame.depth - 1])
    if each.name in ("COPY", "SWAP"):
        cells.append(frame.stack[frame.depth - each.argument])
    for cell in cells:
        value = contents(cell)
        if type(value) is Parcel and not is_opaque(value.value):
            _open_parcel(segment, frame, index, cell, value)
            look_into(value.value)


def before_joining(segment: Segment, parcel: Parcel) -> None:
    """To be called before a branch or loop is staged that writes a variable with a parcel in it.

    Raises:
        Learned: what is in it is another in each call. The next attempt runs what writes it by its jumps.
    """
    if parcel.name in segment.closed and segment.regions:
        why = why_differing(parcel.value, joined=True)
        for region in segment.regions:
            segment.breaks.open(region, why)
        raise Learned


def _open_parcel(segment: Segment, frame: Frame, index: int, cell: CellType, parcel: Parcel) -> None:
    if parcel.name in segment.closed:
        segment.end(frame, index, why_differing(parcel.value))
    cell.cell_contents = read(parcel)
