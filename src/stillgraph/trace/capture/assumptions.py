"""What the program of a capture that has run relies on, as guards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import fx
from torch.optim.lr_scheduler import LRScheduler
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_below_torch, is_ours, is_standard_library
from stillgraph.passes.state.memory import copied_inputs, makes_copies, sharing_copy
from stillgraph.program.facts.writes import is_written, writes_in_place, written_arguments
from stillgraph.program.graphs import regions
from stillgraph.program.guards import Guard, MemoryGuard, ModeGuard
from stillgraph.program.program import Input
from stillgraph.program.sources import Memory, Source, has_memory
from stillgraph.trace.capture.met_guards import MetGuards
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.names import names_of
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.fakes.torch_settings import caches_weights, uses_parametrizations
from stillgraph.trace.guards.facts import compares_objects, size_guards
from stillgraph.trace.guards.indistinguishable import Told
from stillgraph.trace.guards.inputs import Inputs
from stillgraph.trace.guards.knowledge import Knowledge
from stillgraph.trace.guards.one_object import same_values
from stillgraph.trace.guards.promotion import Promotion
from stillgraph.trace.guards.world import WorldGuards
from stillgraph.trace.sources.reads import Reads, code_file
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.torch_rules.deep_copies import refuse_shared


@dataclass(frozen=True, eq=False)
class Assumptions:
    """Collects the guards of one capture.

    Attributes:
        session, inputs, finder, knowledge, promotion: the capture's.
        functions: those that were rewritten.
        is_converted: whether a code object is rewritten code.
        caches_weights: whether the call is made in a block of ``parametrize.cached()``.
    """

    session: Session
    inputs: Inputs
    finder: Finder
    knowledge: Knowledge
    promotion: Promotion
    functions: list[FunctionType]
    is_converted: Callable[[CodeType], bool]
    caches_weights: bool

    def guards(
        self,
        graph: fx.GraphModule,
        kept: list[Any],
        modes: ModeGuard,
        arguments: list[tuple[Any, Source]],
        written: set[Any],
        used: list[Input],
    ) -> list[Guard]:
        """The guards, once the world is as it was before the call.

        Args:
            graph: the program's.
            kept: what the program holds on to.
            modes: torch's modes when the call began.
            arguments: of the call, and where they are.
            written: the keys of the places that the function has written.
            used: the inputs that the program uses.

        Raises:
            CaptureError: something that was read cannot be guarded.
        """
        met = MetGuards(self.session, self.inputs, self.finder, self.knowledge, self.promotion.sources)
        lists = met.lists_read(used)
        world = self._world(written)
        of_world = world.collect()
        told = self._told(kept, world)
        objects = [guard for value, source in self.inputs.objects for guard in told.guards(value, source)]
        objects += [guard for source, value in world.opened.items() for guard in told.opened(value, source)]
        arrays = met.arrays_read([*filter(met.is_relied_on, [*of_world, *objects])])
        written_tensors = self._written_tensors(graph) if arrays else []
        self.finder.memory.require_not_written(arrays, written_tensors)
        guards: list[Guard] = [
            self._relevant(modes, graph),
            *self.inputs.guards,
            *objects,
            *met.tensors_looked_at(),
            *of_world,
            *met.apart(world, arguments, bool(written)),
            *self.inputs.arrays.apart(arrays, self.knowledge.may_be_input),
            *self._constant_arrays_apart(arrays, written_tensors),
            *self.inputs.facts(),
            *self.inputs.identities(),
            *size_guards(self.session, self.inputs),
            *met.wrapper_guards(),
        ]
        guards = [*filter(met.is_relied_on, guards), *lists, *met.same_tensors(world)]
        reads, writes = self.session.reads, bool(written)
        return [*guards, *same_values(guards, self._codes(), self.session.values_compared, reads.identified, writes)]

    def _reads(self) -> Reads:
        """What the capture has read."""
        reads = self.session.reads
        rewritten = self.is_converted
        reads.codes.update((c, space) for c, space in self.session.executed.codes.items() if not rewritten(c))
        reads.functions.extend(self.functions)
        reads.values_compared = self.session.values_compared
        reads.looked_into |= self.session.identities.taken_apart()
        reads.followed = {c: names for c, names in reads.followed.items() if not self.session.executed.ran(c)}
        made = self.session.conversion.made_and_run
        ran = {*self.session.executed.codes, *made, *(each.__code__ for each in self.functions)}
        reads.hooks = [hook for hook in self.session.hooked.hooks if hook.__code__ not in ran]
        reals = {id(fake): real for real, fake in self.session.fakes.by_real.values()}
        reads.attributes = [(reals.get(id(target), target), name) for target, name in reads.attributes]
        return reads

    def require_aliases(self, graph: fx.GraphModule) -> None:
        """Guard which arguments are one object, if the code can tell the difference.

        Raises:
            Restart: some are, and the code has got several.
        """
        told = any(is_fake(t) and self.session.fakes.real_of(t) is not None for t in self.session.executed.hashed)
        if told and not self.knowledge.hashed:
            raise Restart("hashed", None)
        if self.knowledge.aliases_matter or not (told or self._compares() or writes_in_place(graph)):
            return
        if not self.inputs.tell_aliases_apart():
            raise Restart("aliases", None)
        self.knowledge.aliases_matter = True

    def copies_apart(self, graph: fx.GraphModule) -> list[Guard]:
        """Guards on the inputs that deep copies are made of together: the program has clones, which share no memory.

        Raises:
            CaptureError: other tensors that are copied together may share memory.
        """
        if not makes_copies(graph):
            return []
        copy = sharing_copy(graph)
        if copy is not None:
            raise refuse_shared(copy.meta.get("location"))
        sources = {node.name: each.source for node, each in zip(self.inputs.nodes, self.inputs.inputs, strict=True)}
        return [MemoryGuard(tuple(sources[node.name] for node in nodes)) for nodes in copied_inputs(graph)]

    def _constant_arrays_apart(
        self, arrays: list[tuple[Any, Source]], written: list[torch.Tensor]
    ) -> Iterator[MemoryGuard]:
        """Guards on the memory that the program writes being none of the arrays that it takes for constants."""
        places = [source for tensor in written for source in self.inputs.places_of(tensor)]
        constants = [Memory(source) for value, source in arrays if has_memory(value)]
        yield from (MemoryGuard((place, constant)) for place in places for constant in constants)

    def _written_tensors(self, graph: fx.GraphModule) -> list[torch.Tensor]:
        """The tensors from before the capture whose memory the program writes."""
        nodes = (node for region in regions(graph) for node in region.graph.nodes)
        written = [argument.meta["val"] for node in nodes for argument in written_arguments(node)]
        storages = {each.untyped_storage()._cdata for each in written if each.layout is torch.strided}
        pairs = [(r, f) for r, f in self.session.fakes.by_real.values() if not is_traceable_wrapper_subclass(r)]
        return [real for real, fake in pairs if is_written(fake, storages)]

    def _compares(self) -> bool:
        """Whether the code that ran asks whether two objects are one; what goes on in its midst was not rewritten."""
        return self.session.compared or any(map(compares_objects, self._codes()))

    def _codes(self) -> Iterator[CodeType]:
        """The user's and libraries' code that ran."""
        yield from (function.__code__ for function in self.functions)
        for code, namespace in self.session.executed.codes.items():
            file = code_file(code, namespace)
            if not (is_below_torch(file) or is_ours(file) or is_standard_library(file)):
                yield code

    def _relevant(self, modes: ModeGuard, graph: fx.GraphModule) -> ModeGuard:
        """The guard on modes; on torch's switches only if the code asks for them or turns them."""
        contexts = (node.meta.get("context") for region in regions(graph) for node in region.graph.nodes)
        turned = any(c is not None and c.switches != modes.context.switches for c in contexts)
        return replace(modes, switches_matter=turned or self.session.asked_for_switches)

    def _told(self, kept: list[Any], world: WorldGuards) -> Told:
        compared = self._compares()
        reads, hashed = self.session.reads, bool(self.session.executed.hashed)
        codes = [code for code in self._codes() if code not in reads.followed]
        told = compared or hashed
        return Told(self.finder, codes, told, hashed, reads.shown, kept, reads.identified, reads.drawn, world.read_at)

    def _world(self, written: set[Any]) -> WorldGuards:
        unseen = LRScheduler.get_last_lr.__code__ in self.session.executed.codes  # called by code not rewritten
        named = any(names_of(f.__code__).attributes & _SCHEDULED for f in self.functions)
        if self.session.schedules and (unseen or named):
            hint = "Step the scheduler, or read its learning rate, outside the static function."
            raise refuse("SG305", "a learning rate is read in a function that steps its scheduler", hint=hint)
        if uses_parametrizations(self.session.executed.codes):
            if self.caches_weights:
                hint = "Make the call outside of the block."
                raise refuse("SG305", "the call is made in a block of parametrize.cached()", hint=hint)
            self.session.reads.settings.append((caches_weights, (), False))
        promoted = frozenset(self.promotion.sources | self.knowledge.lists.keys())
        reads, relied = self._reads(), self.session.relied.attributes
        sharded = self.session.sharded.keys()  # they come and go with their wrappers
        tensors = self.session.fakes.by_real.keys() | sharded
        places, compares = self.promotion.places, self._compares() or bool(self.session.executed.hashed)
        changed = frozenset(written - self.promotion.only_put)
        return WorldGuards(self.finder, reads, places, relied, promoted, written, tensors, compares, changed=changed)


# what shows how far a scheduler is; a program that steps it would show the state before the call
_SCHEDULED = frozenset({"get_lr", "_last_lr", "last_epoch"})
