"""Iterators from outside the function that it advances: an input with state.

What one gives is read ahead, and guarded, or an input of the program; it is advanced when the program has run, by as
many items as were drawn (docs/decisions/0066-iterators-from-outside.md).
"""

from __future__ import annotations

import io
from collections.abc import Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from stillgraph.core.diagnostics import refuse
from stillgraph.program.effects import Effect, ExtendContents, SetContents
from stillgraph.program.guards import Guard, SeparateGuard
from stillgraph.program.sources import Source, Upcoming
from stillgraph.program.upcoming import KINDS, CannotLookError, End, LookAhead, are_separate, state_of
from stillgraph.trace.code.frames import here
from stillgraph.trace.heap.journal import Journal
from stillgraph.trace.heap.places import MISSING, AttributePlace

if TYPE_CHECKING:
    from stillgraph.core.location import Location
    from stillgraph.trace.capture.session import Session

ADVANCE_OUTSIDE = "Advance it outside, with next(...), and pass what it gives as an argument."
AS_LIST = "Make a list of it first, with list(...), and loop over parts of that."
_ONE_EACH = "Draw from one of them, and pass what it gives; or give each an iterator of its own."
_ONE = "Do one of the two outside."
_CHANGED = "Change the list, dict or set outside the static function, or draw from a copy of it."


class Ahead(Iterator[Any]):
    """Stands for an iterator from outside in one capture.

    How far it is, is an attribute like any other: arms and loops put it back, and join it. So are its items, of which
    some are inputs of the program.

    Attributes:
        session: the capture.
        iterator: what it stands for.
        source: where that is.
        location: where it was drawn from first.
        drawn: how many items were drawn, the end included; a staged number where only the run knows.
    """

    drawn: Any

    def __init__(self, session: Session, iterator: Any, source: Source) -> None:
        self.session, self.iterator, self.source = session, iterator, source
        self.location: Location | None = here()
        self.drawn = 0
        self._items = LookAhead(iterator)
        self._read: set[int] = set()
        self._stood = state_of(iterator)

    @property
    def count(self) -> AttributePlace:
        """The place of how much was drawn."""
        return AttributePlace(self, "drawn")

    def place(self, position: int) -> AttributePlace:
        """Where an item is."""
        place = AttributePlace(self, f"item {position}")
        if place.get() is MISSING:
            place.set(self._item(position))
        return place

    def _item(self, position: int) -> Any:
        try:
            return self._items[position]
        except (RuntimeError, ValueError):  # of a dict that was changed since; of ``zip(..., strict=True)``
            raise refuse_outer(self.iterator) from None

    def __next__(self) -> Any:
        position = self.drawn
        if not isinstance(position, int):
            message = "an iterator is used again of which only the run knows how far it was advanced"
            raise refuse("SG305", message, location=here(), hint=AS_LIST)
        self.session.settling.require_current(self.iterator)
        if position not in self._read:
            self.require_unchanged()
            self._rely_on(position)
        self.session.journal.write(self.count, position + 1)
        item = self.place(position).get()
        if item is End.END:
            raise StopIteration
        return item

    def left_to_draw(self, drawn: Any, journal: Journal) -> Any:
        """How much is to be drawn in the end, if ``drawn`` is in all: the program has drawn some midway, maybe.

        Raises:
            CaptureError: only the run knows how much that was.
        """
        key = self.count.key
        if key not in journal.midway.settled:
            return drawn
        before = journal.midway.left.get(key)
        if not (isinstance(before, int) and isinstance(drawn, int)):
            message = "an iterator from outside the function is advanced, and code that is called there may look at it"
            raise refuse("SG305", message, location=self.location, hint=_ONE)
        return drawn - before

    def _rely_on(self, position: int) -> None:
        self._read.add(position)
        item, source = self._item(position), Upcoming(self.source, position)
        self.session.reads.same.append((source, item))
        with self.session.executed.paused():
            self.session.finder.add(item, source)
            self.session.finder.complete()

    def require_unchanged(self) -> None:
        """To be called before it is drawn from, and at the end.

        Raises:
            CaptureError: the code has changed what it runs over; or code that nobody sees has drawn from it.
        """
        if state_of(self.iterator) != self._stood:
            message = "an iterator from outside the function is advanced, by code that is not rewritten too"
            raise refuse("SG305", message, location=self.location, hint=_ONE)
        written = self.session.journal.written(0)
        if any(("contents", key) in written for key in self._items.behind):
            raise _refuse_changed(here())


class Outside:
    """The iterators from outside that a capture draws from."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[int, Ahead] = {}

    def ahead(self, iterator: Any) -> Any:
        """What stands for an iterator from outside.

        Returns:
            None for what was not there before the capture, or is of no kind into which one can look.

        Raises:
            CannotLookError: to give its items, something that it draws from does something.
            CaptureError: it and another one that was drawn from depend on each other.
        """
        known = iterator if isinstance(iterator, Ahead) else self._known.get(id(iterator))
        source = None if known is not None or type(iterator) not in KINDS else self._session.finder.find(iterator)
        if source is None:
            return known
        made = Ahead(self._session, iterator, source)
        if not are_separate([iterator, *(each.iterator for each in self._known.values())], ()):
            message = "two iterators from outside the function are advanced, and both draw from one"
            raise refuse("SG305", message, location=here(), hint=_ONE_EACH)
        self._known[id(iterator)] = made
        self._session.reads.drawn[id(iterator)] = iterator
        self._session.finder.stand_in(made, source, iterator)
        return made

    def keys(self, iterators: Iterable[Any]) -> set[Hashable]:
        """The keys of the places that say how much was drawn from some iterators."""
        known = (self._known.get(id(each)) for each in iterators)
        return {each.count.key for each in known if each is not None}

    def item(self, iterator: Any, position: int) -> AttributePlace:
        """The place of an item."""
        made: Ahead = self.ahead(iterator)
        return made.place(position)

    def guards(self, effects: Iterable[Effect]) -> list[Guard]:
        """That the iterators have nothing to do with each other, or with a container that the program changes.

        Raises:
            CaptureError: one runs over such a container.
        """
        containers = dict.fromkeys(each.target for each in effects if isinstance(each, (SetContents, ExtendContents)))
        aheads = [*self._known.values()]
        for each in aheads:
            each.require_unchanged()
        if not aheads or len(aheads) + len(containers) < 2:
            return []
        changed = self._session.finder.values_at([*containers])
        if not are_separate([each.iterator for each in aheads], changed):
            raise _refuse_changed(aheads[0].location)
        return [SeparateGuard(tuple(each.source for each in aheads), tuple(containers))]

    def forget(self) -> None:
        """Let go of the user's objects."""
        self._known.clear()


def refuse_outer(iterator: Any) -> BaseException:
    """What to raise where an iterator from outside is advanced into which nobody can look."""
    kind = type(iterator)
    try:
        LookAhead(iterator)
    except CannotLookError as error:
        kind = error.kind
    except RuntimeError:  # of a dict or set that was changed since
        pass
    message = f"an iterator from outside the function is advanced: what a {kind.__name__} gives, only drawing tells"
    if isinstance(iterator, io.IOBase):
        message = f"a {kind.__name__} from outside the function is read"
    return refuse("SG305", message, location=here(), hint=ADVANCE_OUTSIDE)


def _refuse_changed(location: Location | None) -> BaseException:
    message = "an iterator from outside the function is advanced, and what it runs over is changed"
    return refuse("SG305", message, location=location, hint=_CHANGED)
