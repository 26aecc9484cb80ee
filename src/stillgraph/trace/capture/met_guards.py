"""Guards that follow from all that one attempt has read and met: which tensors, in which places, apart or the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.guards import (
    AliasGuard,
    BytesGuard,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    Guard,
    IdentityGuard,
    LengthGuard,
    TensorGuard,
)
from stillgraph.program.program import Input
from stillgraph.program.sources import Attribute, Item, Slot, Source
from stillgraph.program.types import NumberType
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.guards.argument_structure import places_in
from stillgraph.trace.guards.inputs import Inputs
from stillgraph.trace.guards.knowledge import Knowledge
from stillgraph.trace.guards.tensor_guards import tensor_guards
from stillgraph.trace.guards.world import WorldGuards
from stillgraph.trace.sources.memory import BUFFERS
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.lists import Leaf


@dataclass(frozen=True)
class MetGuards:
    """Collects the guards on what an attempt has met.

    Attributes:
        session, inputs, finder: of the attempt.
        knowledge: of the capture.
        promoted: where the numbers and lists are that are inputs of the program.
    """

    session: Session
    inputs: Inputs
    finder: Finder
    knowledge: Knowledge
    promoted: set[Source]

    def wrapper_guards(self) -> Iterator[Guard]:
        """That the modules are the same whose wrappers take part in the program.

        Raises:
            CaptureError: one of their parameters is read while it may be whole or not.
        """
        for tensor, name in self.session.sharded.items():
            if tensor in self.session.fakes.by_real:
                raise refuse("SG309", f"the sharded parameter {name} is read outside the call of its module")
        for module in self.session.wrapped.values():
            source = self.finder.find(module)
            if source is not None:
                yield IdentityGuard(source, module)

    def tensors_looked_at(self) -> Iterator[Guard]:
        """Guards on the metadata of tensors that are no inputs: of some only the shape was asked for, or the dtype."""
        guarded = {guard.source for guard in self.inputs.guards if isinstance(guard, TensorGuard)}
        for tensor, _ in list(self.session.fakes.by_real.values()):
            source = self.finder.find(tensor)
            if source is not None and source not in guarded:
                yield from tensor_guards(tensor, source, (False,) * tensor.dim())

    def apart(self, world: WorldGuards, arguments: list[tuple[Any, Source]], writes: bool) -> list[Guard]:
        """That arguments are none of the other objects that the code reads, if it can tell the difference.

        Args:
            world: tells what was read.
            arguments: the call's.
            writes: whether the call writes to any object.
        """
        unseen = self.inputs.also_elsewhere(arguments) - self.inputs.as_they_are
        if unseen:  # found only now
            raise Restart("elsewhere", unseen)
        if not writes and not self.knowledge.aliases_matter:
            return self.inputs.apart()
        passed = {source for value, first in arguments for _, source in places_in(value, first)}
        others = [*self._places_read(world, passed)]
        tensors = [(value, source) for value, source in others if isinstance(value, torch.Tensor)]
        containers = [(value, source) for value, source in others if not isinstance(value, (torch.Tensor, type))]
        found = self.inputs.tensors_apart(tensors) if self.knowledge.aliases_matter else []
        return [*found, *self.inputs.apart(containers)]

    def _places_read(self, world: WorldGuards, passed: set[Source]) -> Iterator[tuple[Any, Source]]:
        """The objects that the code comes to, each by the first of its paths that the code takes, ``passed`` apart."""
        seen: set[int] = set()
        for value, source in (*self.finder.everything(), *self.finder.again):
            if id(value) not in seen and source not in passed and world.was_read(source):
                seen.add(id(value))
                yield value, source

    def arrays_read(self, guards: list[Guard]) -> list[tuple[Any, Source]]:
        """The arrays and buffers whose contents are guarded."""
        sources = [guard.source for guard in guards if isinstance(guard, (BytesGuard, ContentsGuard))]
        found = zip(self.finder.values_at(sources), sources, strict=True)
        return [(value, source) for value, source in found if is_array(value) or isinstance(value, BUFFERS)]

    def lists_read(self, used: list[Input]) -> list[Guard]:
        """Guards on the lists that the call makes longer and also reads: their elements must be numbers of one type.

        Raises:
            Restart: they are not in this call, and so not what the code was told that they are.
        """
        guards: list[Guard] = []
        for source in {i.source: None for i in used if i.kind == "list"}:
            element = self.knowledge.lists[source]
            if not (isinstance(element, Leaf) and isinstance(element.type, NumberType)):
                raise Restart("keep", source)
            if any(type(value) is not element.type.kind for value in self.finder.value_at(source)):
                raise Restart("keep", source)  # what was there and has another type was taken out before it grew
            guards.append(ElementsGuard(source, element.type.kind))
        return guards

    def same_tensors(self, world: WorldGuards) -> list[Guard]:
        """Guards on the tensors that the code may come to by several paths: tied weights, an argument that was kept."""
        given = {item.source for item in self.inputs.inputs if item.kind == "argument"}
        met = ((value, source) for value, source in self.finder.again if id(value) in self.session.fakes.by_real)
        read = ((value, source) for value, source in met if source not in given and not world.is_passed_by(source))
        pairs = ((self.finder.find(value), source) for value, source in read)
        apart = dict.fromkeys((first, source) for first, source in pairs if first is not None and first != source)
        return [AliasGuard(first, source, same=True) for first, source in apart]

    def is_relied_on(self, guard: Guard) -> bool:
        """Whether a guard is about anything but numbers and lists that are inputs of the program."""
        if isinstance(guard, (ConstantGuard, IdentityGuard, BytesGuard)) and guard.source in self.promoted:
            return False
        if not self.knowledge.lists:
            return True
        source = getattr(guard, "source", None)
        if isinstance(guard, LengthGuard) and source in self.knowledge.lists:
            return False
        while isinstance(source, (Attribute, Item, Slot)):
            source = source.base
            if source in self.knowledge.lists:
                return False
        return True
