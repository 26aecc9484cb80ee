"""Memory that the journal does not see: numpy's arrays, buffers of bytes, context variables.

There are too many ways to write to these, most of them in C. So what they hold is compared with what they held before:
whatever has changed is put back, and the capture refused, for a program would not repeat the write.
"""

from __future__ import annotations

import abc
import array
import contextlib
import contextvars
import ctypes
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.program.facts.fingerprints import fingerprint
from stillgraph.program.sources import Source, has_memory
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.arrays.functions import is_array

BUFFERS = (bytearray, array.array)
_COPIED = 1 << 28  # bytes; of an array with more there is no copy: that it changes is seen, but cannot be put back
HINT = "Keep the state in a tensor, a buffer of the module, or a number; or change it outside the static function."


class Held(abc.ABC):
    """What was in a piece of memory at a time."""

    def __init__(self, value: Any, source: Source | None) -> None:
        self.value = value
        self.source = source

    @abc.abstractmethod
    def is_current(self) -> bool:
        """Whether it still holds that."""

    @abc.abstractmethod
    def put_back(self) -> None:
        """Let it hold that again."""

    def __str__(self) -> str:
        kind = type(self.value).__name__
        return f"the {kind} {self.source}" if self.source is not None else f"a {kind}"


class _Array(Held):
    """A numpy array, or the view of one."""

    def __init__(self, value: Any, source: Source | None) -> None:
        super().__init__(value, source)
        self._numpy: Any = sys.modules["numpy"]  # the array's; stillgraph does not need it
        self._array = self._numpy.asarray(value)  # without what a class of its own makes of it
        self._layout = self._read_layout()
        self._contents = self._read()

    def _read_layout(self) -> tuple[Any, ...]:
        return (self._array.dtype, self._array.shape, self._array.strides, self.value.flags.writeable)

    def _read(self) -> Any:
        """The elements: objects themselves, the bytes of others, and of too many only what tells them apart."""
        if self._array.dtype.hasobject:
            return [*self._array.flat]
        return self._array.tobytes() if self._array.nbytes <= _COPIED else fingerprint(self._array)

    def is_current(self) -> bool:
        if self._read_layout() != self._layout:
            return False
        now = self._read()
        return all(map(_is_same, now, self._contents)) if isinstance(now, list) else bool(now == self._contents)

    def put_back(self) -> None:
        if isinstance(self._contents, tuple) or self.is_current():
            return
        dtype, shape, _, writeable = self._layout
        if not self.value.flags.writeable:  # numpy does not set this where it does not know whose memory it is
            self.value.flags.writeable = True
        if self._array.nbytes != self._size():
            self._array.resize(shape, refcheck=False)
        if self._array.dtype != dtype:
            self._array.dtype = dtype
        if self._array.shape != shape:
            self._array.shape = shape
        if isinstance(self._contents, list):
            for position, item in enumerate(self._contents):
                self._array.flat[position] = item
        else:
            self._array[...] = self._numpy.frombuffer(self._contents, dtype).reshape(shape)
        if self.value.flags.writeable != writeable:
            self.value.flags.writeable = writeable

    def _size(self) -> int:
        dtype, shape, *_ = self._layout
        return int(math.prod(shape) * dtype.itemsize)


def _is_same(now: Any, before: Any) -> bool:
    return now is before or (type(now) is str and type(before) is str and now == before)  # numpy makes texts anew


class _Buffer(Held):
    """A ``bytearray`` or ``array.array``."""

    def __init__(self, value: Any, source: Source | None) -> None:
        super().__init__(value, source)
        self._copy = value[:]

    def is_current(self) -> bool:
        return memoryview(self.value).tobytes() == memoryview(self._copy).tobytes()

    def put_back(self) -> None:
        if not self.is_current():
            self.value[:] = self._copy


class _Variable(Held):
    """A ``ContextVar``; code that is not rewritten may set it."""

    def __init__(self, value: Any, source: Source | None) -> None:
        super().__init__(value, source)
        self._before = value.get(MISSING)

    def is_current(self) -> bool:
        return self.value.get(MISSING) is self._before

    def put_back(self) -> None:
        if self.is_current():
            return
        if self._before is not MISSING:
            self.value.set(self._before)


class Memory:
    """What the memory that a call reaches held before the capture.

    Attributes:
        watched: whether calls are looked at one by one, so as to find the line that writes.
        may_be_input: whether what is at a source may become an input, and is none yet.
        may_stage: whether the arrays that the function makes may be made by each run, and are not yet.
    """

    def __init__(
        self,
        watched: bool = False,
        may_be_input: Callable[[Source], bool] = lambda source: False,
        may_stage: Callable[[], bool] = lambda: False,
    ) -> None:
        self.watched = watched
        self.may_be_input = may_be_input
        self.may_stage = may_stage
        self._held: dict[int, Held] = {}
        self._set_at: dict[int, Location | None] = {}  # where the code last set a context variable
        self._unwritten: list[tuple[torch.Tensor, int]] = []  # fakes, with the versions that they have to keep
        self._shared: list[tuple[Held, Any, int]] = []  # arrays, the fakes of tensors of their memory, and the versions

    def note(self, value: Any, source: Source) -> None:
        """Remember what is in an object that has been found, if it is one of these."""
        held = _held(value, source)
        if held is not None:
            self._held.setdefault(id(value), held)

    def note_set(self, variable: Any, location: Location | None) -> None:
        """Told that the code sets a context variable: the journal knows what it held."""
        self._set_at[id(variable)] = location

    def set_at(self, variable: Any) -> Location | None:
        """Where the code last set a context variable."""
        return self._set_at.get(id(variable))

    def is_as_given(self, variable: Any) -> bool:
        """Whether a context variable holds what it held before the capture, and was there."""
        held = self._held.get(id(variable))
        return held is not None and held.is_current()

    def holds(self, value: Any) -> bool:
        """Whether a value is of this memory, or shares it: the view of an array."""
        while value is not None and id(value) not in self._held:
            value = value.base if is_array(value) else None
        return value is not None

    def overlaps(self, array: Any) -> bool:
        """Whether the memory of an array is that of one that was there before the call."""
        return any(overlap(held.value, array) for held in self._held.values() if isinstance(held, _Array))

    def become_input(self, array: Any) -> None:
        """Told that a program has to work on the memory of an array.

        Raises:
            Restart: an array from before the call has this memory, and is no input yet: it is to be one.
        """
        for held in self._held.values():
            shares = isinstance(held, _Array) and overlap(held.value, array)
            if shares and held.source is not None and self.may_be_input(held.source) and has_memory(held.value):
                raise Restart("promote", held.source)

    def write_in_run(self, array: Any) -> None:
        """Told that only the run can write to an array.

        Raises:
            Restart: it is to be an input, or to be made by each run.
        """
        self.become_input(array)
        if self.may_stage() and has_memory(array) and not self.overlaps(array):
            raise Restart("arrays", None)

    def share(self, array: Any, fake: Any) -> None:
        """Told that a tensor was made that has the memory of an array."""
        self._shared.append((_Array(array, None), fake, _writes_to(fake)))

    def keep_unwritten(self, fakes: Iterable[torch.Tensor]) -> None:
        """Told that tensors are not to be written from now on."""
        self._unwritten += [(fake, _writes_to(fake)) for fake in fakes]

    def require_apart(self) -> None:
        """Refuse a write to such a tensor or array, which the other would have to show.

        Raises:
            CaptureError: there was one.
            Restart: the array is to be one of the run's for this.
        """
        for fake, version in self._unwritten:
            if _writes_to(fake) != version:
                message = "a numpy array is changed of which the program has a copy where numpy has a view"
                raise refuse("SG305", message, hint="Copy it before: array[::-1].copy().")
        for held, fake, version in self._shared:
            if _writes_to(fake) != version or not held.is_current():
                self.write_in_run(held.value)
                hint = "Copy the array: torch.tensor(array)."
                raise refuse("SG305", "a numpy array or the tensor that shares its memory is changed", hint=hint)

    def require_not_written(self, read: Iterable[tuple[Any, Source]], written: Iterable[torch.Tensor]) -> None:
        """Refuse to read an array or buffer whose memory is that of a tensor from outside that the program writes.

        Args:
            read: arrays and buffers that the code reads, and where.
            written: the tensors.

        Raises:
            CaptureError: there is such an array.
            Restart: it is to be an input for this.
        """
        places = [(tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes()) for tensor in written]
        for value, source in read:
            start, size = _extent(value)
            if any(start < at + length and at < start + size for at, length in places):
                if self.may_be_input(source) and has_memory(value):
                    raise Restart("promote", source)
                what = f"the {type(value).__name__} {source} is read, whose memory is that of a tensor that is written"
                raise refuse("SG305", what, hint="Read the tensor itself, or do one of the two outside the function.")

    def put_back(self) -> None:
        """Let everything hold again what it held before the capture."""
        with contextlib.ExitStack() as back:  # where one cannot, the others do
            for held in self._held.values():
                back.callback(held.put_back)

    def as_now(self, values: Iterable[Any]) -> list[Held]:
        """What an arm has to leave as it is: all this memory, and those of some values that are such memory too.

        A context variable may have been set by then, for a block around the arm.
        """
        found = {id(value): _held(value, None) for value in values if not self.holds(value)}
        others = [held for held in found.values() if held is not None]
        known = self._held.values()
        return others + [_Variable(h.value, h.source) if isinstance(h, _Variable) else h for h in known]

    def require_unchanged(self, held: Iterable[Held] | None = None, location: Location | None = None) -> None:
        """Refuse what has changed of this memory, or of what ``held`` has kept.

        Raises:
            CaptureError: something has.
            Restart: something has, and it is not known yet which line does it.
        """
        kept = self._held.values() if held is None else held
        changed = next((each for each in kept if id(each.value) not in self._set_at and not each.is_current()), None)
        if changed is None:
            return
        if isinstance(changed, _Array):
            self.write_in_run(changed.value)
        if not self.watched:
            raise Restart("memory", None)
        raise refuse("SG305", f"{changed} is changed in place", location=location, hint=HINT)


def _held(value: Any, source: Source | None) -> Held | None:
    if is_array(value):
        return _Array(value, source) if _may_change(value) else None
    if issubclass(type(value), BUFFERS):
        return _Buffer(value, source)
    return _Variable(value, source) if type(value) is contextvars.ContextVar else None


def _extent(value: Any) -> tuple[int, int]:
    """Where the memory of an array or buffer begins, and how many bytes of it there may be to read."""
    if is_array(value):
        steps = [stride * (size - 1) for size, stride in zip(value.shape, value.strides)]
        start = int(value.ctypes.data) + sum(step for step in steps if step < 0)
        return start, (sum(map(abs, steps)) + value.itemsize) if value.size else 0
    size = len(memoryview(value).cast("B"))
    return (ctypes.addressof((ctypes.c_char * size).from_buffer(value)), size) if size else (0, 0)


def overlap(left: Any, right: Any) -> bool:
    """Whether two arrays may share memory."""
    (start, size), (at, length) = _extent(left), _extent(right)
    return start < at + length and at < start + size


def _may_change(value: Any) -> bool:
    """Whether an array, or what it is a view of, can be written to."""
    while is_array(value):
        if value.flags.writeable:
            return True
        value = value.base
    return False


def _writes_to(fake: torch.Tensor) -> int:
    with torch._C.DisableTorchFunction():  # nobody of the user's asks
        return fake._version
