"""Which objects were there before an arm began: only writes to those outlive it."""

from __future__ import annotations

import collections
import sys
from types import CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.trace.frames import is_ours, is_torch
from stillgraph.trace.journal import AttributePlace, CellPlace, ContentsPlace, Place
from stillgraph.trace.recorder import Recorder

_LIMIT = 20_000
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
    torch.nn.Module,
    range,
    slice,
)


class OlderObjects:
    """The mutable objects that the frames around an arm can reach when it begins.

    Objects that were there before the whole capture are the recorder's to know (`Recorder.is_outer`); those made during
    the capture are found from the local variables of the frames on the stack.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._found: dict[int, Any] = {}
        queue: collections.deque[Any] = collections.deque()
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if frame.f_code.co_name == "run" and file.endswith("capture.py") and is_ours(file):
                break  # beyond the capture there are only objects that were there before it
            if not is_torch(file) and not is_ours(file):
                queue.extend(frame.f_locals.values())
            frame = frame.f_back
        self._walk(queue)

    def _walk(self, queue: collections.deque[Any]) -> None:
        while queue and len(self._found) < _LIMIT:
            value = queue.popleft()
            if isinstance(value, _ATOMS) or id(value) in self._found or self._recorder.is_outer(value):
                continue
            self._found[id(value)] = value
            queue.extend(_children(value))

    def has(self, place: Place) -> bool:
        """Whether a place belongs to an object that is older than the arm."""
        if isinstance(place, CellPlace):
            target: Any = place.cell
        elif isinstance(place, (AttributePlace, ContentsPlace)):
            target = place.target
        else:
            return True  # module-level names, and the places that loops keep to themselves
        return isinstance(target, torch.nn.Module) or self.holds(target)

    def holds(self, target: Any) -> bool:
        """Whether an object is older than the arm."""
        return id(target) in self._found or self._recorder.is_outer(target)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple, set, collections.deque)):
        return list(value)
    if isinstance(value, FunctionType):
        return [*(value.__closure__ or ()), *(value.__defaults__ or ())]
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
    state = getattr(value, "__dict__", None)
    held = list(state.values()) if isinstance(state, dict) else []
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                held.append(getattr(value, name, None))
    return held
