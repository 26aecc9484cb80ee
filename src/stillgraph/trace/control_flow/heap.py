"""Which objects were there before an arm began: only writes to those outlive it."""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterable
from types import CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.core.files import is_ours, is_torch
from stillgraph.core.lookup import held_by_function, own_attributes
from stillgraph.core.rewritten import HELD, Holder, values_in
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.journal import Journal
from stillgraph.trace.heap.places import (
    AttributePlace,
    CellPlace,
    ContentsPlace,
    Place,
    Variable,
    VariablePlace,
    births,
)
from stillgraph.trace.torch_rules.gradients import GradientPlace, RequirePlace
from stillgraph.trace.values.entries import Entry
from stillgraph.trace.values.numbers import Staged

_ATOMS = (
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    type,
    ModuleType,
    torch.Tensor,
    torch.dtype,
    torch.device,
    range,
    slice,
    # These lead to everything that a capture keeps for itself, and to nothing of the user's.
    torch.SymInt,
    torch.SymFloat,
    torch.SymBool,
    Staged,
    Recorder,
    Region,
    Journal,
)


class OlderObjects:
    """The mutable objects that the frames around an arm can reach when it begins.

    Objects that were there before the whole capture are the recorder's to know (`Recorder.is_outer`); those made during
    the capture are found from the local variables of the frames on the stack. That walk is put off until an object is
    asked about, which may only be while the arm does not run: then what it wrote is undone, and the frames around it
    have not gone on.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._born = next(births)
        self._joined = recorder.identities.count  # what is joined later is not older
        self._freezings = len(recorder.identities.freezings)
        self._objects: dict[int, Any] | None = None

    def look(self) -> dict[int, Any]:
        """The objects by their ids; found now, unless that was done before."""
        if self._objects is None:
            # What was stored in an object from before the capture need not be in any variable.
            stored = (write.place.get() for write in self._recorder.journal.written(0).values())
            # Some change with what a variable leads to. Those that a loop's body is given have flags of that region.
            joined = self._recorder.identities.of_the_first(self._joined, self._recorder.region.holds)
            roots = (*locals_of_users(self._recorder), *self._recorder.shelf, *stored, *joined)
            with self._recorder.executed.paused():
                self._objects = self._walk(collections.deque(roots))
        return self._objects

    def _walk(self, queue: collections.deque[Any]) -> dict[int, Any]:
        found: dict[int, Any] = {}
        is_outer = self._recorder.is_outer
        while queue:
            value = queue.popleft()
            if id(value) in found or (isinstance(value, _ATOMS) and not _is_local_class(value)) or is_outer(value):
                continue
            found[id(value)] = value
            queue.extend(_children(value))
        return found

    def has(self, place: Place) -> bool:
        """Whether a place belongs to an object that is older than the arm."""
        if isinstance(place, CellPlace) and self._recorder.is_new(place.cell) is False:
            return True  # a variable of a frame that is gone on with, say, on whatever way it is written
        if isinstance(place, (Variable, VariablePlace)):
            return place.born < self._born
        if isinstance(place, CellPlace):
            target: Any = place.cell
        elif isinstance(place, (AttributePlace, ContentsPlace)):
            target = place.target
        elif isinstance(place, (GradientPlace, RequirePlace)):
            return self._recorder.region.holds(place.tensor)
        else:
            return True  # module-level names
        if (isinstance(target, type) and not _is_local_class(target)) or self.holds(target):
            return True
        # Python makes the dict of an object when somebody asks for it first, be that in the arm.
        return type(target) is dict and self._recorder.attributes_of(target) is not None

    def holds_mutable(self, value: Any) -> bool:
        """As `holds`, for a mutable object; whatever else a path makes anew is told from none by what is in it."""
        return not isinstance(value, (tuple, slice, Exit, Entry)) and self.holds(value)

    def frozen(self) -> list[Any]:
        """Those that have been frozen since the arm began, on whatever path."""
        return [*filter(self.holds_mutable, [*self._recorder.identities.freezings.values()][self._freezings :])]

    def holds(self, target: Any) -> bool:
        """Whether an object is older than the arm."""
        return self._recorder.is_outer(target) or id(target) in self.look()


def locals_of_users(recorder: Recorder) -> collections.deque[Any]:
    """What the user's frames of this capture, and those of rewritten code of torch's, have in their variables."""
    values: collections.deque[Any] = collections.deque()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if frame.f_code.co_qualname == "CaptureAttempt.run" and is_ours(file):
            break  # beyond the capture there are only objects that were there before it
        of_users = recorder.is_rewritten(frame.f_code) or not (is_torch(file) or is_ours(file))
        if of_users and not _only_hands_on(frame):
            values.extend(values_in(frame))
        frame = frame.f_back
    for held in recorder.resumed:
        values.extend(held.held())
    return values


def _only_hands_on(frame: FrameType) -> bool:
    """Whether a frame stands for the user's, and is given what the user's own is given: that may have let go of it."""
    is_entry = frame.f_globals.get("__name__") == _OF_ENTRIES and HELD not in frame.f_code.co_varnames
    return is_entry or frame.f_code.co_varnames[:3] == _OF_A_LINE


_OF_A_LINE = ("act", "args", "kwargs")  # see `bytecode/code/lines.py`
_OF_ENTRIES = "stillgraph.bytecode.entry.convert"


def is_held_by(roots: Iterable[Any], target: Any) -> bool:
    """Whether some values are an object, or lead to it by plain references."""
    queue, seen = collections.deque(roots), set[int]()
    kept = []  # what is made on the way, so that nothing else gets its id
    while queue:
        value = queue.popleft()
        if value is target:
            return True
        if id(value) in seen or (isinstance(value, _ATOMS) and not _is_local_class(value)):
            continue
        seen.add(id(value))
        kept.append(value)
        queue.extend(_children(value))
    return False


def _is_local_class(value: Any) -> bool:
    """Whether a value is a class made in a function: its methods lead to that function's variables."""
    return isinstance(value, type) and "<locals>" in value.__qualname__


def _children(value: Any) -> list[Any]:
    if _is_local_class(value):
        return [*vars(value).values(), *value.__bases__]
    if isinstance(value, Holder):
        return value.held()
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, (list, tuple, set, collections.deque)):
        return list(value)
    if isinstance(value, FunctionType):
        return held_by_function(value)
    if isinstance(value, CellType):
        try:
            return [value.cell_contents]
        except ValueError:
            return []
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    return _instance_state(value)


def _instance_state(value: Any) -> list[Any]:
    """What an instance of a user's class holds, in its ``__dict__`` or in slots."""
    state = own_attributes(value)
    held = [type(value), *([state, *state.values()] if isinstance(state, dict) else [])]
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                held.append(getattr(value, name, None))
    return held
