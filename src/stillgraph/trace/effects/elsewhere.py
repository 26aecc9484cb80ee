"""Objects from before a capture that it comes by on ways that it does not follow: through torch's own, say.

What the code writes to these, a program could not repeat: it knows no path to them. So they are told from what the
capture itself makes, and a write to one is refused.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.faults import ends_capture
from stillgraph.core.location import Location
from stillgraph.core.lookup import own_attributes
from stillgraph.program.facts.module_tables import MODULE_INTERNALS
from stillgraph.program.sources import Attribute, Source
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.heap.births import Births
from stillgraph.trace.heap.contents import is_same
from stillgraph.trace.heap.journal import Journal
from stillgraph.trace.heap.places import AttributePlace, CellPlace, ContentsPlace, GlobalPlace, Place, tables_of
from stillgraph.trace.sources.sources import Finder

FOLLOWED = (
    "Keep it where the function finds it by names of your own: in a global, an attribute of your module, an argument; "
    "or change it outside the static function."
)


@dataclass(frozen=True, eq=False)
class _Noted:
    """A place that was noted: what it held, and where that was.

    Attributes:
        old: whether it is of an object from before the capture; None for what only `Elsewhere.settle` can tell.
    """

    place: AttributePlace | ContentsPlace
    before: Any
    location: Location | None
    old: bool | None

    @property
    def is_changed(self) -> bool:
        return not is_same(self.place.get(), self.before)


class Elsewhere:
    """Tells such objects from others, as a capture writes to them.

    Args:
        journal: of the capture.
        finder: where objects are found from the call's roots.
        known: by id, objects of which an earlier attempt has found out that they are such, and are changed.
    """

    def __init__(self, journal: Journal, finder: Finder, known: dict[int, Any]) -> None:
        self.births = Births()
        self._journal = journal
        self._finder = finder
        self._known = known
        self._new: set[int] = set()
        self._noted: dict[Hashable, _Noted] = {}
        self._old: set[int] = set()
        self._asked: dict[int, tuple[Any, bool]] = {}  # objects, and whether they were there before
        self._owners: dict[int, tuple[Any, str]] = {}  # by the ids of dictionaries of attributes
        self._indexed = 0  # so many of the objects that were found are in `_owners`

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """In the body the code runs: what it makes there is new."""
        with self.births.watched():
            self._journal.before = self._before_write
            try:
                yield
            except BaseException as error:
                self.settle(is_over=ends_capture(error))
                raise
            finally:
                self._journal.before = None

    def _before_write(self, place: Place, certain: bool) -> None:
        """To be called before a place is written, or may be, if that is not ``certain``.

        Raises:
            CaptureError: it is of such an object.
        """
        if not isinstance(place, (AttributePlace, ContentsPlace)):
            return
        target = place.target
        if id(target) in self._new or isinstance(target, (type, torch.Tensor)) or self._finder.find(target) is not None:
            return
        new = self.births.is_new(target)
        if new or (new is False and self.attributes_of(target) is not None):  # `ModuleTables` follows those
            self._new.add(id(target))
            return
        if id(target) in self._known or (new is False and certain):
            raise refuse("SG305", f"{_named(place)} is changed, which {_WAY}", location=here(), hint=FOLLOWED)
        if place.key not in self._noted:
            self._noted[place.key] = _Noted(place, place.get(), here(), None if new is None else True)
            if new is False:
                self._old.add(id(target))

    def is_old(self, target: Any) -> bool:
        """Whether an object is one of these, as far as is known by now."""
        return id(target) in self._old

    def is_from_before(self, value: Any) -> bool:
        """Whether something that can be changed was there before, and no path to it is known."""
        if self._finder.find(value) is not None:
            return False
        new = self.births.is_new(value)
        if new is None and self._held_by_others({id(value): value}):
            return True
        return new is False or self.attributes_of(value) is not None

    def was_there(self, value: Any) -> bool:
        """Whether an object was there before the capture, be a path to it known or not."""
        known = self._asked.get(id(value))
        if known is None:
            new = self.births.is_new(value)
            if new is None:
                new = not self._finder.holds(value) and not self._held_by_others({id(value): value})
            known = self._asked[id(value)] = value, not new
        return known[1]

    def may_be_from_before(self, value: Any) -> bool:
        """The same, quickly: of dictionaries, all that no path is known to may be."""
        return self._finder.find(value) is None and (type(value) is dict or not self.births.is_new(value))

    def forget(self) -> None:
        """Let go of the user's objects: a capture that has ended lives until Python looks for cycles."""
        self._noted.clear()
        self._new.clear()
        self._old.clear()
        self._asked.clear()
        self._owners.clear()

    def settle(self, is_over: bool) -> None:
        """Find out about the objects of which there was no telling; to be called when the code has run.

        Args:
            is_over: whether nobody is going to look at what the code has made: then all of it may be undone.
        """
        unknown = [each for each in self._noted.values() if each.old is None and id(each.place.target) not in self._old]
        if is_over:
            self._old.update(id(each.place.target) for each in unknown)
            return
        targets = {id(each.place.target): each.place.target for each in unknown if self._is_held(each)}
        if targets:
            self._old.update(self._held_by_others(targets))

    def require_unchanged(self) -> None:
        """Begin anew if such an object was changed: the line that does it is refused then.

        Raises:
            Restart: there is one.
        """
        changed = {id(e.place.target): e.place.target for e in self._noted.values() if self._is_old_and_changed(e)}
        if changed:
            raise Restart("written_elsewhere", changed)

    def _is_old_and_changed(self, noted: _Noted) -> bool:
        return id(noted.place.target) in self._old and noted.is_changed

    def _is_held(self, noted: _Noted) -> bool:
        """Whether anything else holds an object than what is noted of it."""
        places = {id(w.place) for w in self._journal.log if getattr(w.place, "target", None) is noted.place.target}
        places |= {id(e.place) for e in self._noted.values() if e.place.target is noted.place.target}
        return _references(noted.place) - len(places) > _references(ContentsPlace({})) - 1

    def _held_by_others(self, targets: dict[int, Any]) -> set[int]:
        """The ids of the objects that something from before the capture leads to, past what the journal knows of."""
        if gc.get_freeze_count() > _FROZEN_BY_PYTHON:
            return set(targets)  # what holds them cannot be told
        own = {id(targets), *(id(holder) for write in self._journal.log for holder in _holders(write.place))}
        holders = gc.get_referrers(*targets.values())
        try:
            new = self.births.new_ones(holders) | own
            old = [each for each in holders if id(each) not in new and self._finder.find(each) is None]
            old += self._made_of_old([each for each in holders if id(each) in new - own and type(each) is dict])
            return {id(held) for each in old for held in gc.get_referents(each)} & targets.keys()
        finally:
            holders.clear()  # it may be in a cycle

    def _made_of_old(self, made: list[Any]) -> list[Any]:
        """Those of new dictionaries that are of the attributes of old objects: Python makes them when asked for."""
        if not made:
            return []
        owners = gc.get_referrers(*made)
        try:
            new = self.births.new_ones(owners)
            old = [each for each in owners if id(each) not in new and self._finder.find(each) is None]
            return [each for each in made if any(own_attributes(owner) is each for owner in old)]
        finally:
            owners.clear()

    def attributes_of(self, value: Any) -> Source | None:
        """The path to a dictionary of attributes, where the object that has them was found."""
        if not isinstance(value, dict):
            return None
        new = self._finder.reached_since(self._indexed)
        self._indexed += len(new)
        for owner in new:
            self._owners.update((id(held), (owner, name)) for name, held in _dictionaries(owner))
        owner, name = self._owners.get(id(value), (None, ""))
        source = self._finder.find(owner) if owner is not None and self._finder.was_there(owner) else None
        if source is None or not any(held is value for _, held in _dictionaries(owner)):
            return None
        return Attribute(source, name)


def _dictionaries(owner: Any) -> Iterator[tuple[str, Any]]:
    """The dictionaries that an object keeps its attributes in, by the names of the attributes that these are."""
    own = own_attributes(owner)
    if own is not None:
        yield "__dict__", own
        if isinstance(owner, torch.nn.Module):
            yield from ((name, own[name]) for name in MODULE_INTERNALS if name in own)


_FROZEN_BY_PYTHON = 1000  # Python 3.12 begins with some hundred objects that the collector passes by (`gc.freeze`)
_WAY = "was there before the call, and which the capture does not look for where the code finds it"


def _references(place: AttributePlace | ContentsPlace) -> int:
    return sys.getrefcount(place.target)


def _named(place: AttributePlace | ContentsPlace) -> str:
    return f"{place}" if isinstance(place, ContentsPlace) else f"'{place}'"


def _holders(place: Place) -> Iterator[Any]:
    """What holds what a place holds."""
    if isinstance(place, GlobalPlace):
        yield place.namespace
    elif isinstance(place, CellPlace):
        yield place.cell
    elif isinstance(place, ContentsPlace):
        yield place.target
    elif isinstance(place, AttributePlace):
        yield place.target
        if isinstance(place.target, type):
            yield from gc.get_referents(vars(place.target))
        yield own_attributes(place.target)
        yield from tables_of(place.target)
