"""One run over a dict, a set or a deque, as Python's iterators make it: they raise where that has changed since.

Python's own would look at what stands for the contents during a capture, which the paths of a branch exchange: that
says nothing of the run. So the elements are read by their position, and before each the run is asked for the size.
"""

from __future__ import annotations

import collections
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from stillgraph.core.lookup import is_exactly
from stillgraph.core.parcel import Parcel
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.containers.indexed import Indexed
from stillgraph.operators.containers.iterables import as_sequence
from stillgraph.operators.containers.sequences import StagedEntries
from stillgraph.operators.containers.table_methods import Items, Keys, Values
from stillgraph.operators.dispatch import if_, item
from stillgraph.operators.elements import lists
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.effects.iterators import Fresh, behind
from stillgraph.trace.heap.contents import kind_of_container
from stillgraph.trace.heap.places import Variable
from stillgraph.trace.values.entries import container_of, find, table_of
from stillgraph.trace.values.numbers import Staged, StagedNumber

_ORDERED: Any = collections.OrderedDict()
_DICTS: tuple[dict[Any, Any], ...] = ({}, _ORDERED)
_OF_DICTS = tuple(type(view) for each in _DICTS for view in (each.keys(), each.values(), each.items()))
_SAID = {
    collections.OrderedDict: "OrderedDict mutated during iteration",
    dict: "dictionary changed size during iteration",
    set: "Set changed size during iteration",
    collections.deque: "deque mutated during iteration",
}


class Watch:
    """What an iterator keeps to see that its container has changed.

    Attributes:
        container: the dict, set or deque.
        size: how many keys there were; of a deque, how often it had been changed.
        changes: how often a deque has been changed since.
        unsure: whether something was done since of which the size alone does not tell whether it matters.
    """

    def __init__(self, capture: Session, container: Any) -> None:
        self._capture = capture
        self.container = container
        self._kind = kind_of_container(container)
        self._keys = self._held()
        self.changes: Any = Variable("how often what is run over has changed", 0)
        self.unsure: Any = Variable("whether what is run over may have changed", False)
        self.size = self._size()
        capture.iterators.watches.add(self)

    @property
    def ends_first(self) -> bool:
        """Whether Python looks for a next element before it looks for changes."""
        return self._kind is collections.OrderedDict

    def _held(self) -> list[Any]:
        return [] if self._kind is collections.deque else list(self._kind.__iter__(self.container))

    def _size(self) -> Any:
        if self._kind is collections.deque:
            return self.changes.get()
        known = container_of(self.container)
        return len(self.container) if known is None else lists.entry_count(self._capture, known)

    def before(self, name: str, args: tuple[Any, ...]) -> None:
        """To be called before a method changes the container."""
        if self._kind is not collections.deque:
            if name not in _ADDING and not _finds_nothing(self.container, name, args):
                self._capture.journal.write(self.unsure, True)
        elif name not in _IN_PLACE:
            certain = _changes(self.container, name, args)
            if certain is None:
                self._capture.journal.write(self.unsure, True)
            elif certain:
                self._capture.journal.write(self.changes, self.changes.get() + 1)

    def check(self) -> None:
        """Raise what Python raises where the container has changed, in the run if only that knows.

        Raises:
            CaptureError: only Python's own iterator could tell what comes next.
        """
        size = self.size if self._is_untouched() else self._size()
        differs = False if size is self.size else size != self.size
        if isinstance(differs, StagedNumber):
            branch(self._capture, differs, self._fail, lambda: None, (), ())
        elif differs:
            raise RuntimeError(_SAID[self._kind])
        if self.unsure.get() is not False:
            raise refuse_unknown("SG211", "a dict, set or deque is changed while it is run over", self.container)

    def _is_untouched(self) -> bool:
        if self._kind is collections.deque:
            return self.changes.get() is self.size
        now = self._held()
        return len(now) == len(self._keys) and all(a is b for a, b in zip(now, self._keys))

    def _fail(self) -> NoReturn:
        emit_raise(self._capture, RuntimeError(_SAID[self._kind]))
        raise Diverged


def _finds_nothing(container: Any, name: str, args: tuple[Any, ...]) -> bool:
    """Whether a method would remove what is not there."""
    sought = name in ("pop", "discard") and len(args) > 0 and not isinstance(args[0], Staged)
    return sought and container_of(container) is None and args[0] not in container


_ADDING = frozenset({"add", "update", "setdefault", "__ior__", "__setitem__", "subtract"})
_IN_PLACE = frozenset({"__setitem__", "reverse"})
_ALWAYS = frozenset({"append", "appendleft"})
_IF_ANY = frozenset({"pop", "popleft", "clear"})


def _changes(target: collections.deque[Any], name: str, args: tuple[Any, ...]) -> bool | None:
    """Whether a method changes a deque of known length; None: that depends on more than is looked at here."""
    if name in _ALWAYS:
        return True
    if lists.is_spread(target):
        return None
    if name in _IF_ANY:
        return len(target) > 0
    if name == "rotate":
        return len(target) > 1
    if name in ("extend", "extendleft", "__iadd__") and args and is_exactly(args[0], (list, tuple, collections.deque)):
        return None if lists.is_spread(args[0]) else len(args[0]) > 0
    return None


def before_change(capture: Session, container: Any, method: Method | None) -> None:
    """To be called before a container is changed: somebody may run over it.

    Args:
        capture: the session.
        container: what is changed.
        method: which method does it, with what arguments; None: it only adds to a dict or set, or exchanges elements.

    Raises:
        CaptureError: Python itself runs over it, and would see that the capture changes it and puts it back.
    """
    keeps_order = isinstance(container, list) or (type(container) is dict and (method is None or method[0] in _ADDING))
    if not keeps_order and any(_is_run_over(container, value) for value, _ in capture.finder.arguments):
        raise refuse_unknown("SG211", "a dict, set or deque is changed while Python runs over it", container)
    if method is None:
        return
    for watch in [each for each in capture.iterators.watches if each.container is container]:
        watch.before(*method)


Method = tuple[str, tuple[Any, ...]]


def _is_run_over(container: Any, value: Any) -> bool:
    """Whether a value is on its way through a segment, and an iterator over a container."""
    if type(value) is not Parcel or not isinstance(value.value, Iterator):
        return False
    return any(part is container for each in behind(value.value) for part in gc.get_referents(each))


class Watching(Indexed):
    """One run over a container: its elements by their positions, if it has not changed since.

    Args:
        watch: on the container.
        length: how many elements there are.
        read: gives the one at a position.
        stageable: whether it takes a position of the run.
    """

    __slots__ = ("_length", "_read", "_stageable", "watch")

    def __init__(self, watch: Watch, length: Any, read: Callable[[Any], Any], stageable: bool) -> None:
        super().__init__()
        self.watch, self._length, self._read, self._stageable = watch, length, read, stageable

    @property
    def stageable(self) -> bool:
        return self._stageable

    def check(self, index: Any) -> None:
        goes_on: Any = index < _ENDED if self.may_grow else True
        if isinstance(index, StagedNumber):
            if_(goes_on, self.watch.check)
        elif goes_on and (not self.watch.ends_first or index < self._length):
            self.watch.check()

    def length(self) -> Any:
        return self._length

    def at(self, index: Any) -> Any:
        return self._read(index)


_ENDED = sys.maxsize  # the position of an iterator that has given its last element


class WatchingIterator(Watching, Fresh):
    """``iter(container)``."""

    __slots__ = ()

    once = True

    @property
    def may_grow(self) -> bool:
        """Whether Python's forgets its container at the end: that of a deque looks at it for ever."""
        return not isinstance(self.watch.container, collections.deque)

    def __length_hint__(self) -> int:
        return self._left()


def iterated(value: Any) -> Any:
    """What a function draws from that is given a value: for what Python would watch, an iterator that does so."""
    capture = session()
    found = None if capture is None or as_sequence(value) is not None else _watching(value, WatchingIterator)
    if found is None:
        return value
    assert capture is not None
    capture.iterators.made(found, value)
    return found


def run_over(iterable: Any) -> Any:
    """The sequence for one run over something, which sees changes as Python's iterators do; None for what has none."""
    known = as_sequence(iterable)
    if session() is None or isinstance(known, StagedEntries):
        return known
    watching = _watching(iterable, Watching)
    return known if watching is None else watching


def items_run_over(iterable: Any) -> Iterator[Any]:
    """The elements, as a loop over them sees them."""
    sequence = None if session() is None else run_over(iterable)
    return iter(iterable) if sequence is None else sequence.begin()


def watched_container(iterable: Any) -> Any:
    """The dict, set or deque which Python watches as something is run over; None for what it does not watch."""
    if isinstance(iterable, (Keys, Values)):
        return iterable.container
    if isinstance(iterable, Items):
        return iterable.container
    if isinstance(iterable, _OF_DICTS):
        return next(each for each in gc.get_referents(iterable) if isinstance(each, dict))
    if isinstance(iterable, (dict, set, collections.deque)) and method_of(iterable, "__iter__") is None:
        return iterable
    return None


def _watching(iterable: Any, kind: type[Watching]) -> Watching | None:
    container, capture = watched_container(iterable), session()
    if container is None or capture is None:
        return None
    watch = Watch(capture, container)
    if isinstance(container, collections.deque):
        spread = lists.is_spread(container)
        length = lists.length(capture, container) if spread else len(container)
        return kind(watch, length, lambda index: _in_deque(capture, container, index), spread)
    if table_of(container) is not None:
        made = {"values": Values, "items": Items}.get(_part(iterable), Keys)
        view: Any = iterable if isinstance(iterable, Indexed) else made(container)
        return kind(watch, view.length(), view.at, view.stageable)
    keys = list(kind_of_container(container).__iter__(container))
    part = _part(iterable)

    def read(index: Any) -> Any:
        if part == "keys":
            return item(keys, index)
        if isinstance(index, StagedNumber):
            raise refuse_unknown("SG211", "only the run knows which entry of a dict comes next", container)
        value = _value(container, keys[index], index)
        return value if part == "values" else (keys[index], value)

    return kind(watch, len(keys), read, False)


def _part(iterable: Any) -> str:
    """What a view of a dict shows."""
    name = type(iterable).__name__
    return "values" if name.endswith("values") else "items" if name.endswith("items") else "keys"


def _in_deque(capture: Session, container: Any, index: Any) -> Any:
    return (
        lists.at(capture, container, index)
        if lists.is_spread(container)
        else collections.deque.__getitem__(container, index)
    )


def _value(container: dict[Any, Any], key: Any, index: int) -> Any:
    """What a dict has now by the key that was at a position, and is there still."""
    if table_of(container) is not None:
        return Values(container).at(index)
    known = find(container, key)
    return kind_of_container(container).__getitem__(container, key if known is None else known)
