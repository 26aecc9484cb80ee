"""What frames hold between two segments: where each one is, and its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from stillgraph.bytecode.code.prepared import prepared
from stillgraph.bytecode.code.tries import is_with, only_reraises
from stillgraph.bytecode.machine.frame import NULL, Frame
from stillgraph.bytecode.machine.iteration import Iteration
from stillgraph.bytecode.machine.parcels import is_plain, passes_exceptions
from stillgraph.bytecode.segments.lifetimes import held_by, is_missed, referred_to
from stillgraph.core.lookup import is_exactly
from stillgraph.core.parcel import Parcel, opened, parcel
from stillgraph.trace.capture.session import session
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.callables import contents


@dataclass(frozen=True)
class FrameLayout:
    """Where a frame is, and where its values come among those of a layout.

    Attributes:
        code: of the function.
        index: of the instruction that is to be run; in an outer frame, of the call that is going on.
        slots: those that hold something which is needed from there on, or whose end somebody could tell.
        stack: of each place on the stack, what kind of value is there: one of `COUNTS`.
        handled: how many exceptions are being handled.
    """

    code: CodeType
    index: int
    slots: tuple[int, ...]
    stack: tuple[str, ...]
    handled: int

    @property
    def count(self) -> int:
        """How many values it has."""
        return 1 + len(self.slots) + sum(COUNTS[kind] for kind in self.stack) + self.handled


Layout = tuple[FrameLayout, ...]


def suspended(frames: list[Frame]) -> tuple[Layout, list[Any]]:
    """The layout of frames, and their values in its order."""
    values: list[Any] = []
    parts = []
    needed = _needed(frames)
    for frame, slots in zip(frames, needed):
        values.append(frame.function)
        values += (frame.slots[slot].cell_contents for slot in slots)
        kinds = []
        for cell in frame.stack[: frame.depth]:
            value = cell.cell_contents
            kind = _kind_of(value)
            kinds.append(kind)
            if COUNTS[kind] == 1:
                values.append(value)
            elif kind == "iteration":
                values += (opened(value).values, opened(value).index)
        values += frame.handled
        parts.append(FrameLayout(frame.code, frame.next, slots, tuple(kinds), len(frame.handled)))
    return tuple(parts), values


def _needed(frames: list[Frame]) -> list[tuple[int, ...]]:
    """Of each frame the slots that are read from there on, and those that hold what somebody could tell to be gone."""
    found: list[tuple[int, ...]] = []
    read = [each for frame in frames for each in frame.values(frame.prepared.flow.live[frame.next])]
    known = referred_to(read)
    if session() is not None:
        known |= held_by([*read, *_written()])
    for frame in frames:
        live = frame.prepared.flow.live[frame.next]
        held = [(slot, contents(cell)) for slot, cell in enumerate(frame.slots)]
        given = [(slot, value) for slot, value in held if value is not MISSING]
        found.append(tuple([slot for slot, value in given if slot in live or is_missed(value, known)]))
    return found


def _written() -> list[Any]:
    """What the capture has stored."""
    capture = session()
    return [] if capture is None else [write.place.get() for write in capture.journal.written(0).values()]


def _kind_of(value: Any) -> str:
    if value is NULL:
        return "null"
    if _waits(value):
        return "iteration"
    return "leaving" if passes_exceptions(opened(value)) else "value"


def _waits(value: Any) -> bool:
    """Whether a loop's place on the stack can be handed out; in a segment that begins in the loop, it is in parcels."""
    value = opened(value)
    return isinstance(value, Iteration) and (value.can_wait or type(value.values) is Parcel)


def restored(layout: Layout, values: list[Any]) -> list[Frame]:
    """The frames of a layout."""
    given = iter(values)
    frames = []
    for each in layout:
        function = next(given)
        frame = Frame(opened(function), next=each.index)
        for slot in each.slots:
            frame.slots[slot].cell_contents = next(given)
        for kind in each.stack:
            if kind == "null":
                frame.push(NULL)
            elif kind == "iteration":
                iteration = Iteration(next(given), next(given))
                frame.push(iteration if iteration.can_wait else Parcel("iteration", iteration))
            else:
                frame.push(next(given))
        frame.handled = [opened(next(given)) for _ in range(each.handled)]
        frames.append(frame)
    return frames


def unread(layout: Layout) -> frozenset[int]:
    """The positions among a layout's values of those that no code reads any more."""
    found = set()
    position = 0
    for each in layout:
        live = prepared(each.code).flow.live[each.index]
        found |= {position + 1 + number for number, slot in enumerate(each.slots) if slot not in live}
        position += each.count
    return frozenset(found)


def variables(layout: Layout) -> dict[str, tuple[CodeType, int]]:
    """The variables of a layout, each as its code and slot, by the names of their parcels."""
    found = {}
    position = 0
    for each in layout:
        numbers = enumerate(each.slots, position + 1)
        found.update({parcel(number, None).name: (each.code, slot) for number, slot in numbers})
        position += each.count
    return found


def left_by_raising(layout: Layout) -> tuple[int, ...] | None:
    """The blocks that an exception leaves which a program raises that begins with a layout.

    Returns:
        Among the layout's values the positions of the methods that leave the managers, the innermost first. None where
        anything else learns of the exception: a handler of the user's, or a manager that sees it.
    """
    found = []
    position = sum(each.count for each in layout)
    for each in reversed(layout):
        position -= each.count
        decoded = prepared(each.code).decoded
        handler = decoded.handler(each.index)
        while handler is not None:
            if is_with(decoded, handler.target):
                if each.stack[handler.depth - 1] != "leaving":
                    return None
                before = sum(COUNTS[kind] for kind in each.stack[: handler.depth - 1])
                found.append(position + 1 + len(each.slots) + before)
            elif not only_reraises(decoded, handler.target):
                return None
            handler = decoded.handler(handler.target)
    return tuple(found)


COUNTS = {"null": 0, "value": 1, "leaving": 1, "iteration": 2}
"""How many values there are for each kind of what is on the stack. ``"leaving"``: see `parcels.passes_exceptions`."""


def packed(values: Sequence[Any], closed: frozenset[int] = frozenset()) -> list[Any]:
    """Values as a segment takes them: tensors as they are, anything else so that it is guarded where it is read.

    Args:
        values: those of a layout.
        closed: the positions of those that it does not read.
    """
    known: dict[int, Parcel] = {}

    def pack(number: int, value: Any) -> Any:
        made = parcel(number, value)
        return made if is_exactly(value, _DATA) else known.setdefault(id(value), made)

    return [
        value if is_plain(value) and number not in closed else pack(number, value)
        for number, value in enumerate(values)
    ]


_DATA = frozenset({int, float, complex, str, bytes})  # of which Python shares what it likes
