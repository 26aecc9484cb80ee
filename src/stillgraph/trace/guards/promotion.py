"""Numbers and lists outside the call that become inputs of the program: put where the code will read them.

Tensors of open sizes become inputs as well. They stay where they are: what the code does with them goes to the input.
"""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import own_attributes
from stillgraph.program.sources import (
    Argument,
    Attribute,
    Cell,
    Global,
    Held,
    Item,
    Memory,
    Slot,
    Source,
    Upcoming,
    has_memory,
)
from stillgraph.trace.guards.inputs import Inputs
from stillgraph.trace.guards.knowledge import Knowledge
from stillgraph.trace.heap.contents import kind_of_container
from stillgraph.trace.heap.journal import Journal
from stillgraph.trace.heap.places import AttributePlace, CellPlace, ContentsPlace, GlobalPlace, Place
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.containers import split


@dataclass
class Promotion:
    """Makes inputs of what earlier attempts, or calls, have found to change.

    Attributes:
        finder, inputs, journal: of the attempt.
        knowledge: of the capture.
        places: keys of the places whose numbers are inputs of the program, not guards.
        sources: where those are.
        promoted: where the numbers are, by the names of their inputs.
        item: gives the place of an item of an iterator.
        grown: what stands for the lists that the call makes longer, by the ids of those.
        put: keys of the places where inputs were put before the code ran.
        only_put: those that the code has not written.
    """

    finder: Finder
    inputs: Inputs
    journal: Journal
    knowledge: Knowledge
    promoted: dict[str, Source]
    grown: dict[int, Any]
    item: Callable[[Any, int], Place]
    places: set[Any] = field(default_factory=set)
    sources: set[Source] = field(default_factory=set)
    put: set[Any] = field(default_factory=set)
    only_put: set[Any] = field(default_factory=set)

    def argument(self, value: float, source: Source) -> Any:
        """What the function gets in place of a number that differs from call to call."""
        self.sources.add(source)
        return self.state(value, source)

    def state(self, value: Any, source: Source) -> Any:
        """The input for a number."""
        number = self.inputs.state(value, source)
        self.promoted[self.inputs.nodes[-1].name] = source
        return number

    def run(self) -> None:
        """Put the inputs in place of the numbers and of the lists."""
        for source in sorted(self.knowledge.promote, key=str):
            if isinstance(source, Argument):
                continue  # handed over already, see `argument`
            if source in self.knowledge.changing and not self._may_be_input(source):
                self.knowledge.promote.discard(source)  # until it turns out to be written
                self.knowledge.changing.discard(source)
                continue
            if not self._is_there(source):
                self.knowledge.promote.discard(source)
                self.knowledge.keep.add(source)  # the call itself puts it there before it changes it
                continue
            self._give(source, self.state(self._at(source), source))

        for source in [*self.knowledge.open_sizes]:
            if not (isinstance(source, Memory) or self._is_argument(source)):
                self._open(source)

        for source, element in self.knowledge.lists.items():
            grown: list[Any] = self.finder.value_at(source)
            spread = self.inputs.list_of(element, source)
            self.grown[id(grown)] = spread
            self.journal.write(ContentsPlace(grown), [spread])
        self.journal.begin()

    @staticmethod
    def _is_argument(source: Source) -> bool:
        """Whether something is handed over, or in what is."""
        while isinstance(source, (Item, Attribute)):
            source = source.base
        return isinstance(source, Argument)

    def _open(self, source: Source) -> None:
        """Let the sizes of a tensor be open, wherever the code meets it."""
        value = self._at(source) if self._can_put(source) else None
        if type(value) is not torch.Tensor:
            del self.knowledge.open_sizes[source]
            return
        self.inputs.as_they_are |= {id(value)}
        self.inputs.argument(value, source)

    def _give(self, source: Source, value: Any) -> None:
        """Let the code find an input at a source."""
        if not isinstance(source, Item):
            self.places.add(self._place(source).key)
        self._put(source, value)
        self.sources.add(source)

    def _may_be_input(self, source: Source) -> bool:
        """Whether there is such a value at a source in this call too, where another can be put in its place."""
        try:
            return self._can_put(source) and may_be_input(self._at(source))
        except Exception:  # of any kind: reading an attribute may run the user's code
            return False

    def _is_there(self, source: Source) -> bool:
        """Whether an input is there when the call begins."""
        try:
            value = self._at(source)
            return type(value) is bool or may_be_input(value)
        except LookupError:
            return False

    def _can_put(self, source: Source) -> bool:
        match source:
            case Item(base=base):
                container = self._container(base)
                if isinstance(container, tuple):
                    return split(container) is not None and self._can_put(base)
                if isinstance(container, dict) and "__builtins__" in container:
                    return False
                return isinstance(container, (list, dict, collections.deque)) and source.kind is None
            case Attribute(base=base, name=name):
                owner = self.finder.value_at(base)
                if type(owner) is CellType:
                    return True
                return name in (own_attributes(owner) or ()) and not isinstance(owner, FunctionType)
            case Slot(table=table):
                return table in ("__dict__", "_buffers")
        return isinstance(source, (Global, Cell, Upcoming))

    def _place(self, source: Source) -> Place:
        """The place of a number that is read and written."""
        match source:
            case Global(module=module, name=name):
                return GlobalPlace(sys.modules[module].__dict__, name)
            case Attribute(base=base, name=name):
                owner = self.finder.value_at(base)
                return CellPlace(owner, name) if type(owner) is CellType else AttributePlace(owner, name)
            case Slot(base=base, name=name):
                return AttributePlace(self.finder.value_at(base), name)
            case Cell(name=name, cell=cell):
                return CellPlace(cell, name)
            case Upcoming(base=base, position=position):
                return self.item(self.finder.value_at(base), position)
        raise refuse("SG305", f"{source} is read and written")

    def _at(self, source: Source) -> Any:
        """What stands at a source now."""
        return source.of(self._container(source.base)) if isinstance(source, Item) else self._place(source).get()

    def _container(self, source: Source) -> Any:
        """A container that the finder knows; a tuple may have been made anew since."""
        known = self.finder.value_at(source)
        return self._at(source) if isinstance(known, tuple) and not isinstance(source, (Argument, Held)) else known

    def _put(self, source: Source, value: Any) -> None:
        """Let ``value`` stand at a source; a tuple there is made anew."""
        if not isinstance(source, Item):
            place = self._place(source)
            self.put.add(place.key)
            self.journal.write(place, value)
            return
        target = self._container(source.base)
        if isinstance(target, tuple):
            parts = split(target)
            assert parts is not None  # see `_can_put`
            made = parts.rebuild([value if at == source.key else item for at, item in enumerate(target)])
            self.finder.stand_in(made, source.base, target)
            self._put(source.base, made)
            return
        self.put.add(ContentsPlace(target).key)
        self.journal.note(ContentsPlace(target))
        kind_of_container(target).__setitem__(target, source.key, value)


def may_be_input(value: Any) -> bool:
    """Whether what differs from call to call may be an input: a number, or a number or array of numpy's."""
    return type(value) in (int, float) or has_memory(value)
