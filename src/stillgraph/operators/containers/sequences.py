"""What a ``for`` loop runs over: things with a length and an element at an index, so that a loop can be staged."""

from __future__ import annotations

import functools
import itertools
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.containers.indexed import Indexed
from stillgraph.operators.dispatch import if_, item
from stillgraph.operators.elements import lists
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.torch_rules.tensor_attributes import read_shape
from stillgraph.trace.values import entries
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.numbers import StagedNumber, is_number


class StagedRows(Indexed):
    """A tensor, along its first dimension."""

    __slots__ = ("tensor",)

    stageable = True

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__()
        self.tensor = tensor

    @property
    def shape(self) -> torch.Size:
        """That of the tensor."""
        capture = capturing()
        return read_shape(capture, self.tensor, capture.to_fake(self.tensor))

    def length(self) -> Any:
        shape = self.shape
        if not shape:
            raise TypeError("iteration over a 0-d tensor")
        return shape[0]

    def at(self, index: Any) -> Any:
        return self.tensor[index]


class StagedArrayRows(StagedRows):
    """An array of numpy's, along its first dimension."""

    __slots__ = ()

    def at(self, index: Any) -> Any:
        return StagedArray(self.tensor).row(index)


class Listed(Indexed):
    """A list, tuple or module list; stageable where it holds only numbers, or where only the run knows its length."""

    __slots__ = ("items",)

    def __init__(self, items: Any) -> None:
        super().__init__()
        self.items = items

    @property
    def stageable(self) -> bool:
        return lists.is_spread(self.items) or (bool(self.items) and all(is_number(item) for item in self.items))

    @property
    def pickable(self) -> bool:
        return len(self.items) > 0

    @property
    def may_change(self) -> bool:
        return type(self.items) is list and lists.is_spread(self.items)

    @property
    def may_grow(self) -> bool:
        return type(self.items) is list

    def length(self) -> Any:
        if not lists.is_spread(self.items):
            return len(self.items)
        capture = capturing()
        return lists.length(capture, self.items)

    def at(self, index: Any) -> Any:
        return item(self.items, index)


class _ListIterator(Listed):
    """``iter(items)``, of a list or tuple."""

    __slots__ = ()

    once = True

    def __length_hint__(self) -> int:
        return self._left()


class ListIterator(_ListIterator, kind=type(iter([]))):
    """As above, of a list."""

    __slots__ = ()


class TupleIterator(_ListIterator, kind=type(iter(()))):
    """As above, of a tuple."""

    __slots__ = ()


class TextIterator(_ListIterator, kind=type(iter(""))):
    """As above, of the letters of a text."""

    __slots__ = ()


class Sliced(Listed, kind=itertools.islice):
    """``itertools.islice(items, start, stop)``, of a list or tuple: that list may grow meanwhile."""

    __slots__ = ("_start", "_stop")

    once = True

    def __init__(self, items: Any, start: Any, stop: Any) -> None:
        super().__init__(items)
        self._start, self._stop = start, stop

    def length(self) -> Any:
        length = super().length()
        end = length if self._stop is None else minimum(length, self._stop)
        return end - minimum(self._start, end)

    def at(self, index: Any) -> Any:
        return super().at(self._start + index)


class Enumerated(Indexed, kind=enumerate):
    """``enumerate(inner, start)``."""

    __slots__ = ("_start", "inner")

    once = True

    def __init__(self, inner: Any, start: Any = 0) -> None:
        super().__init__()
        self.inner, self._start = inner, start

    @property
    def may_change(self) -> bool:
        return bool(self.inner.may_change)

    @property
    def may_grow(self) -> bool:
        return bool(self.inner.may_grow)

    @property
    def stageable(self) -> bool:
        return bool(self.inner.stageable)

    @property
    def pickable(self) -> bool:
        return bool(self.inner.pickable)

    def check(self, index: Any) -> None:
        self.inner.check(index)

    def length(self) -> Any:
        return self.inner.length()

    def at(self, index: Any) -> Any:
        position = index if isinstance(self._start, int) and self._start == 0 else self._start + index
        return (position, self.inner.at(index))


class Zipped(Indexed, kind=zip):
    """``zip(*inner)``."""

    __slots__ = ("inner",)

    once = True

    def __init__(self, inner: tuple[Any, ...]) -> None:
        super().__init__()
        self.inner = inner

    @property
    def may_change(self) -> bool:
        return any(sequence.may_change for sequence in self.inner)

    @property
    def may_grow(self) -> bool:
        return any(sequence.may_grow for sequence in self.inner)

    @property
    def stageable(self) -> bool:
        return all(sequence.stageable for sequence in self.inner)

    @property
    def pickable(self) -> bool:
        return all(sequence.pickable for sequence in self.inner)

    def check(self, index: Any) -> None:
        for number, sequence in enumerate(self.inner):
            if type(sequence).check is Indexed.check:
                continue
            if_(Zipped(self.inner[:number]).reaches(index), functools.partial(sequence.check, index))

    def reaches(self, index: Any) -> Any:
        """Whether every one has an element at an index: the next is asked for it only then."""
        return not self.inner or index < self.length()

    def length(self) -> Any:
        lengths = [sequence.length() for sequence in self.inner]
        shortest = lengths[0]
        for length in lengths[1:]:
            shortest = minimum(shortest, length)
        return shortest

    def at(self, index: Any) -> Any:
        return tuple(sequence.at(index) for sequence in self.inner)


class StagedReversed(Indexed):
    """``reversed(inner)``, of the length that it has at the beginning."""

    __slots__ = ("_held", "_length", "inner")

    once = True

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        self._length: Any = None
        self._held: list[Any] | None = None
        if isinstance(inner, Listed):
            self._held, self._length = [*inner.items], inner.length()

    @property
    def stageable(self) -> bool:
        return bool(self.inner.stageable)

    def check(self, index: Any) -> None:
        self.inner.check(index)

    def length(self) -> Any:
        if self._length is None:
            self._length = self.inner.length()
        return self._length

    def at(self, index: Any) -> Any:
        place = self.length() - 1 - index
        if self._held is not None:
            self._require_there(place)
        return self.inner.at(place)

    def _require_there(self, place: Any) -> None:
        """Refuse to go on where Python would end: the list has become shorter than it was; or may have, in the run."""
        items = self.inner.items
        if not isinstance(place, int) or any(map(lists.is_spread, (items, self._held))):
            is_there = [*map(id, items)] == [*map(id, self._held or ())]
        else:
            is_there = place < len(items)
        if not is_there:
            message = "a list that is run over from its end has been changed since that began"
            raise refuse("SG206", message, location=here(), hint="Run over a copy of it: reversed(values[:]).")

    def __length_hint__(self) -> int:
        return self._left()


class StagedEntries(Indexed):
    """A dict, a view of one, or a set, some of whose keys are there on some paths only."""

    __slots__ = ("container",)

    stageable = False

    def __init__(self, container: Any) -> None:
        super().__init__()
        self.container = container

    def length(self) -> Any:
        known = entries.container_of(self.container)
        capture = capturing()
        return len(self.container) if known is None else lists.entry_count(capture, known)

    def at(self, index: Any) -> Any:
        raise refuse_unknown("SG211", "which element comes at which position, only the run knows", self.container)

    def _refuse_use(self, *args: Any) -> NoReturn:
        message = "the keys or items of a dict that has a key on some paths only are used as a whole"
        raise refuse_unknown("SG211", message, self.container)

    __eq__ = __ne__ = __or__ = __ror__ = __and__ = __rand__ = __sub__ = __rsub__ = __le__ = __ge__ = _refuse_use
    __hash__ = object.__hash__

    def perhaps(self) -> list[tuple[Any, Any]]:
        """Whether each element is there, and the element."""
        return entries.elements(self.container)


def minimum(left: Any, right: Any) -> Any:
    """The smaller of two numbers, staged or not."""
    capture = session()
    if capture is None or not (isinstance(left, StagedNumber) or isinstance(right, StagedNumber)):
        return min(left, right)
    return capture.number_operation(min, (left, right))
