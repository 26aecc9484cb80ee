"""Effects of a capture: the writes that outlive the call, and those that a program need not repeat."""

from __future__ import annotations

import collections
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import class_member
from stillgraph.program.effects import (
    Advance,
    DeleteAttribute,
    Effect,
    ExtendContents,
    SetAttribute,
    SetCell,
    SetContents,
    SetGlobal,
    SetPersistence,
    SetSlot,
)
from stillgraph.program.facts.module_tables import is_behind_descriptor, past_class
from stillgraph.program.sources import Attribute, Cell, Global, Source, item_of
from stillgraph.trace.capture.results import Results
from stillgraph.trace.control_flow.joined.leaves import same_constant
from stillgraph.trace.control_flow.joined.stale import Stale
from stillgraph.trace.control_flow.tables import is_assigned
from stillgraph.trace.effects.context_variables import ContextPlace
from stillgraph.trace.effects.modules import makes_modules
from stillgraph.trace.effects.upcoming import Ahead
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.guards.argument_structure import is_constant
from stillgraph.trace.heap.journal import Write
from stillgraph.trace.heap.places import (
    MISSING,
    AttributePlace,
    CellPlace,
    ContentsPlace,
    GlobalPlace,
    PersistencePlace,
    Place,
)
from stillgraph.trace.sources.memory import HINT
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.lists import StagedSpread


class WrittenEffects:
    """Makes effects of the writes of a capture.

    Args:
        capture: the capture.
        finder: where objects are found from the call's roots.
        results: makes the templates of what is stored.

    Attributes:
        relied: what is left as it is, as it has to be found.
        absent: the globals that are left unset, likewise.
        place: what is being stored.
    """

    def __init__(self, capture: Recorder, finder: Finder, results: Results) -> None:
        self._capture, self._finder, self._results = capture, finder, results
        self.relied: list[tuple[Source, Any]] = []
        self.absent: list[tuple[dict[str, Any], str]] = []
        self.place: Place | None = None

    def of(self, written: list[Write], outer_cells: dict[int, str]) -> list[Effect]:
        """The writes that outlive the call."""
        result: list[Effect] = []
        for write in written:
            after = write.place.get()
            settled = self._changes_elsewhere(write.place)
            gone = after is MISSING and isinstance(write.place, AttributePlace)  # it may be there in another call
            unchanged = same_constant(write.before, after) and not isinstance(write.place, ContentsPlace)
            unchanged = unchanged and not self._capture.journal.is_input(write.place)
            if isinstance(write.place, AttributePlace):
                unchanged = unchanged and write.place.table == write.table
            if self._capture.values_compared:
                unchanged = unchanged and write.before is after  # an equal one is another one
            if isinstance(after, Stale):
                continue
            if unchanged and not settled and not gone:
                self._rely_on(write)
                continue
            if isinstance(write.place, ContextPlace):
                continue  # nothing of it is left in the end: `require_put_back`
            self.place = write.place
            self._results.to_be_stored(write.place)
            effect = self._effect(write, after, outer_cells)
            if effect is not None:
                result.append(effect)
        return result

    def _rely_on(self, write: Write) -> None:
        """Take down that nothing is to be written where another call might find something else."""
        if isinstance(write.place, GlobalPlace) and write.before is MISSING:
            self.absent.append((write.place.namespace, write.place.name))
        if isinstance(write.place, PersistencePlace):
            self._capture.relied.add(write.place)
        source = self._source(write.place)
        if source is not None and is_constant(write.before):
            self.relied.append((source, write.before))

    def _rely_on_contents(self, place: Place, target: Source) -> None:
        """The same, of a list that was changed into what it had been."""
        container = place.target if isinstance(place, ContentsPlace) else None
        if isinstance(container, (list, collections.deque)):
            kept = [(item_of(container, target, index), each) for index, each in enumerate(container)]
            itself = [(source, found) for found, source in self._finder.everything() if source == target]
            self.relied += [*itself, *(each for each in kept if is_constant(each[1]))]

    def _source(self, place: Place) -> Source | None:
        """Where a program finds a place; None where it does not, or the place is made anew by each call."""
        if isinstance(place, GlobalPlace):
            return Global(place.namespace["__name__"], place.name)
        if isinstance(place, CellPlace):
            return self._finder.cell_source(place.cell)
        if isinstance(place, AttributePlace) and isinstance(place.target, Ahead):
            return None
        owner = self._finder.find_owner(place.target) if isinstance(place, AttributePlace) else None
        return Attribute(owner, place.name) if owner is not None and isinstance(place, AttributePlace) else None

    def require_put_back(self, written: list[Write]) -> None:
        """Refuse a context variable that the code leaves set: a program does not set any.

        Raises:
            CaptureError: there is one.
        """
        for place in (write.place for write in written if write.place.get() is not write.before):
            if isinstance(place, ContextPlace):
                location = self._capture.memory.set_at(place.variable)
                raise refuse("SG305", f"{place} is left set", location=location, hint=HINT)

    def _changes_elsewhere(self, place: Place) -> bool:
        """Whether the program writes a place midway, or code that it calls may change it."""
        return place.key in self._capture.journal.midway.settled or self._capture.may_change(place)

    def _effect(self, write: Write, after: Any, outer_cells: dict[int, str]) -> Effect | None:
        place = write.place
        if isinstance(place, GlobalPlace):
            return SetGlobal(place.namespace["__name__"], place.name, self._results.template(after))
        if isinstance(place, CellPlace):
            owner = self._finder.find(place.cell)  # where it is an object that the call is given
            if owner is not None:
                return SetAttribute(owner, "cell_contents", self._results.template(after))
            if id(place.cell) not in outer_cells:
                return None
            if after is not MISSING:
                return SetCell(Cell(place.name, place.cell), self._results.template(after))
            if write.before is not MISSING:
                hint = f"Set it to None instead: {place.name} = None."
                raise refuse("SG305", f"'{place.name}', a variable of a function around, is left unset", hint=hint)
            return None
        if not isinstance(place, (AttributePlace, ContentsPlace, PersistencePlace)):
            return None
        target = self._finder.find_owner(place.target)
        if target is None:
            return None
        if isinstance(place, PersistencePlace):
            return SetPersistence(target, place.name, self._results.template(after))
        if isinstance(place, AttributePlace):
            return self._attribute_effect(write, place, target, after)
        if (
            not self._changes_elsewhere(place)
            and not self._capture.journal.is_input(place)
            and not isinstance(after, dict)
            and len(after) == len(write.before)
            and all(a is b for a, b in zip(after, write.before))
        ):
            self._rely_on_contents(place, target)
            return None
        return self._contents_effect(place, target, after)

    def _contents_effect(self, place: Place, target: Source, after: Any) -> Effect | None:
        grown = self._capture.grown.get(id(getattr(place, "target", None)))
        if grown is None or not after or after[0] is not grown or any(type(item) is StagedSpread for item in after[1:]):
            return SetContents(target, self._results.template(after))
        done = len(self._capture.journal.midway.settled.get(place.key, (grown,)))
        return ExtendContents(target, self._results.template(after[done:])) if len(after) > done else None

    def _attribute_effect(self, write: Write, place: AttributePlace, target: Source, after: Any) -> Effect:
        owner, name = place.target, place.name
        if isinstance(owner, Ahead):
            return Advance(target, self._results.template(owner.left_to_draw(after, self._capture.journal)))
        if after is MISSING:
            return DeleteAttribute(target, name, self._goes_past(owner, name, "__delattr__"))
        if isinstance(owner, torch.nn.Module) and self._finder.find(after) is None and makes_modules(after):
            raise refuse("SG308", f"{place} is made")
        value = self._results.attribute(after)
        if is_behind_descriptor(owner, name):
            return SetSlot(target, "__dict__", name, value)
        table = place.table
        if isinstance(owner, torch.nn.Module):
            own = type(owner).__setattr__ is not torch.nn.Module.__setattr__
            if is_assigned(self._capture.journal, place, after):
                return SetAttribute(target, name, value, past=own)
            hidden = table == "__dict__" and isinstance(after, (torch.nn.Module, torch.nn.Parameter))
            if own or hidden or table != (write.table or "__dict__"):
                return SetSlot(target, str(table), name, value)
            return SetAttribute(target, name, value)
        return SetAttribute(target, name, value, self._goes_past(owner, name, "__setattr__"))

    @staticmethod
    def _goes_past(owner: Any, name: str, special: str) -> bool:
        """Whether a class has a ``__setattr__``, ``__delattr__`` or descriptor of its own, which ran in the capture."""
        kind = type(owner)
        return is_behind_descriptor(owner, name) or class_member(kind, special) is not past_class(owner, special)
