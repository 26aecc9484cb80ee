"""The inputs of a program: the call's arguments on fake tensors, and every real tensor that turns up."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import instance_state, is_exactly, own_attributes, slots
from stillgraph.program.context import current_context
from stillgraph.program.facts.facts import fact
from stillgraph.program.facts.info import info
from stillgraph.program.guards import (
    AliasGuard,
    ApartGuard,
    ConstantGuard,
    FactGuard,
    Guard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    NoAttributeGuard,
    TypeGuard,
)
from stillgraph.program.input_spec import Dim
from stillgraph.program.program import Input
from stillgraph.program.sources import Attribute, Held, Memory, Slot, Source
from stillgraph.program.types import ListType
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.guards.argument_structure import MUTABLE, endless, is_constant, parts_at, places_in, source_name
from stillgraph.trace.guards.array_inputs import ArrayInputs
from stillgraph.trace.guards.tensor_guards import could_be_one, tensor_guards
from stillgraph.trace.heap.identities import AMBIGUOUS
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.torch_rules.tensor_classes import is_made_of_fakes, refuse_class
from stillgraph.trace.values.containers import split
from stillgraph.trace.values.lists import Element as ListElement
from stillgraph.trace.values.lists import StagedList, StagedSpread, types
from stillgraph.trace.values.numbers import Staged

Dims = Callable[[Source, torch.Tensor], tuple[bool | Dim, ...]]
"""Which dimensions of an argument are symbolic; a `Dim` tells the name and range of one that is."""


@dataclass
class Inputs:
    """Collects the placeholders of the root region and what must hold of the arguments."""

    finder: Finder
    symbolic_dims: Dims
    open_sizes: Mapping[Source, AbstractSet[int]] = field(default_factory=dict)  # that differed between calls
    as_they_are: frozenset[int] = frozenset()  # ids of arguments that the code gets themselves, see `also_elsewhere`
    aliases_matter: bool = False  # whether the code writes to tensors in place or compares objects with ``is``
    recorder: Recorder | None = None
    inputs: list[Input] = field(default_factory=list)
    nodes: list[fx.Node] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    objects: list[tuple[Any, Source]] = field(default_factory=list)  # guarded by `trace.told`
    symbols: dict[str, tuple[Source, int]] = field(default_factory=dict)
    arrays: ArrayInputs = field(default_factory=ArrayInputs)
    passed_again: bool = False  # whether something was passed a second time that the code got a copy of
    _aliases: list[tuple[int, Guard]] = field(default_factory=list)  # should they matter: before which of the guards
    _tensors: list[tuple[torch.Tensor, Source, tuple[bool, ...]]] = field(default_factory=list)
    _handed: dict[int, tuple[Any, Source, Any]] = field(default_factory=dict)  # containers: where, and what for them
    _named: dict[str, torch.SymInt] = field(default_factory=dict)  # by the name of a dimension the first size
    _names: set[str] = field(default_factory=lambda: {"self"})  # which the forward of a graph module has
    _endless: set[int] = field(default_factory=set)  # ids of containers that lead to themselves, or to such

    # ---- arguments
    def argument(self, value: Any, source: Source) -> Any:
        """What the user's function gets in place of an argument: the same, with fake tensors in it.

        What leads to itself is given as it is, like an object of any other class.
        """
        self._endless |= endless(value)
        return self._part(value, source)

    def _part(self, value: Any, source: Source) -> Any:
        """As `argument`, for what an argument holds too."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, source)
        known = self._handed.get(id(value))
        if known is not None and self._has_identity(value):
            self.guards.append(AliasGuard(known[1], source, same=True))
            return known[2]
        self.passed_again = self.passed_again or known is not None
        children = parts_at(value, source)
        if children is None:
            self._leaf(value, source)
            handed = value
        elif id(value) in self._endless:
            self.objects.append((value, source))
            handed = value
        else:
            self._guard_structure(value, source)
            handed = self._rebuilt(value, [(old, self._part(old, place)) for old, place in children], source)
        if isinstance(value, tuple) or self._has_identity(value):
            self._handed[id(value)] = (value, source, handed)
        return handed

    def tell_aliases_apart(self) -> bool:
        """Begin to guard which arguments are one and the same object; whether that is all that this changes.

        It is not where something was passed twice: the code would have got it twice, too.
        """
        self.aliases_matter = True
        for position, guard in reversed(self._aliases):
            self.guards.insert(position, guard)
        self._aliases.clear()
        return not self.passed_again

    def _has_identity(self, value: Any) -> bool:
        """Whether it matters at how many places an object was passed: the code may change it, or asks with ``is``."""
        changeable = isinstance(value, MUTABLE) or (is_dataclass(value) and not isinstance(value, type))
        return changeable or (self.aliases_matter and isinstance(value, tuple))

    def _leaf(self, value: Any, source: Source) -> None:
        if is_constant(value):
            self.guards.append(ConstantGuard(source, value))
        elif (type(value) is set or type(value) is frozenset) and all(map(is_constant, value)):
            self.guards += [TypeGuard(source, type(value)), KeysGuard(source, tuple(value))]  # in the order it has
        else:
            self.objects.append((value, source))

    def _guard_structure(self, value: Any, source: Source) -> None:
        self.guards.append(TypeGuard(source, type(value)))
        if isinstance(value, dict):
            self.guards.append(KeysGuard(source, tuple(value)))
        elif isinstance(value, (list, tuple, deque)):
            self.guards.append(LengthGuard(source, len(value)))
            if isinstance(value, deque):
                self.guards.append(ConstantGuard(Attribute(source, "maxlen"), value.maxlen))
        else:
            own, kept = own_attributes(value), instance_state(value)
            if own is not None:
                self.guards.append(KeysGuard(Attribute(source, "__dict__"), tuple(own)))
            self.guards += [NoAttributeGuard(source, name) for name in slots(type(value)) if name not in kept]

    def _rebuilt(self, value: Any, children: list[tuple[Any, Any]], source: Source) -> Any:
        """A container with other children; the very same where other paths of the code's lead to it."""
        if id(value) in self.as_they_are or (isinstance(value, tuple) and all(old is new for old, new in children)):
            return value
        parts = split(value)
        assert parts is not None
        fresh = parts.rebuild([new for _, new in children])
        self.finder.alias(fresh, source)
        return fresh

    def apart(self, others: Iterable[tuple[Any, Source]] = ()) -> list[Guard]:
        """Guards on containers and objects being different ones: those passed, of one type, and ``others``."""
        groups: dict[type, dict[int, Source]] = {}
        for value, source, _ in self._handed.values():
            if self._has_identity(value):
                groups.setdefault(type(value), {})[id(value)] = source
        for value, source in others:
            if type(value) in groups:
                groups[type(value)].setdefault(id(value), source)
        return [ApartGuard(tuple(group.values())) for group in groups.values() if len(group) > 1]

    def _tensor(self, value: torch.Tensor, source: Source) -> torch.Tensor:
        recorder = self.recorder
        assert recorder is not None
        declared = self.symbolic_dims(source, value)
        dims = self._open_dims(value, source, declared)
        as_it_is = id(value) in self.as_they_are
        same = self._note_alias(value, source, dims)
        if same and (self.aliases_matter or as_it_is):
            return value if as_it_is else recorder.fakes.of(value)
        name = self._name(source)
        if any(dims):
            fake = recorder.symbolic.fake_dynamic(recorder.symbolic.apart(value) if same else value, dims, name)
            self._note_symbols(fake, source)
            self._require_declared(fake, declared)
        else:
            fake = recorder.symbolic.fake_apart(value) if same else recorder.fakes.of(value)
        if same:
            self.passed_again = True
            recorder.fakes.apart[id(fake)] = (fake, value)
        else:
            recorder.fakes.by_real[id(value)] = (value, fake)
        recorder.fakes.reals.pop(id(fake), None)  # the user's code sees the fake itself
        if as_it_is:
            recorder.fakes.reals[id(fake)] = value
        self.guards += tensor_guards(value, source, dims, self._any_stride(fake, source))
        self._add(Input(name, "argument", source, fake), value if as_it_is else fake)
        return value if as_it_is else fake

    def _open_dims(
        self, value: torch.Tensor, source: Source, declared: tuple[bool | Dim, ...]
    ) -> tuple[bool, ...]:
        """Which dimensions are symbolic.

        Sizes 0 and 1 are special to torch (broadcasting, squeezing): such a call gets a program of its own.
        """
        differed = self.open_sizes.get(source, frozenset())
        wanted = (bool(is_open) or dim in differed for dim, is_open in enumerate(declared))
        return tuple(is_open and size > 1 for is_open, size in zip(wanted, value.shape))

    def _require_declared(self, fake: torch.Tensor, declared: tuple[bool | Dim, ...]) -> None:
        """Let it be known, and guarded, that open sizes are in their ranges, and that those of one name are equal."""
        for size, dim in zip(fake.shape, declared):
            if isinstance(dim, Dim) and isinstance(size, torch.SymInt):
                first = self._named.setdefault(dim.name, size)
                for holds in (first == size, size >= (dim.min or 0), size <= (size if dim.max is None else dim.max)):
                    bool(holds)  # it does, as `api.captures` has seen; torch makes a guard of what is asked

    def _note_alias(self, value: torch.Tensor, source: Source, dims: tuple[bool, ...]) -> bool:
        """Whether a tensor was passed before; where that matters, which arguments are the same one is guarded."""
        known = False
        matter = self.aliases_matter or id(value) in self.as_they_are
        for other, seen, free in self._tensors:
            if isinstance(seen, Memory) or isinstance(source, Memory):
                continue  # each call makes one of an array, see `Memory`
            if other is value or could_be_one(value, dims, other, free):
                known = known or other is value
                guard = AliasGuard(seen, source, same=other is value)
                if matter:
                    self.guards.append(guard)
                else:
                    self._aliases.append((len(self.guards), guard))
        self._tensors.append((value, source, dims))
        return known

    def tensors_apart(self, others: Iterable[tuple[Any, Source]]) -> list[Guard]:
        """Guards on the arguments being none of some other tensors."""
        return [
            AliasGuard(source, place, same=False)
            for other, place in others
            for value, source, dims in self._tensors
            if other is not value and not isinstance(source, Memory)
            if could_be_one(value, dims, other, (False,) * other.dim())
        ]

    def _note_symbols(self, fake: torch.Tensor, source: Source) -> None:
        for dim, size in enumerate(fake.shape):
            if isinstance(size, torch.SymInt) and not size.node.is_constant():
                self.symbols.setdefault(str(size.node.expr), (source, dim))

    def _any_stride(self, fake: torch.Tensor, source: Source) -> frozenset[int]:
        """The dimensions of which the stride is any: of a tensor with sizes that differed, and gaps in memory."""
        if not self.open_sizes.get(source) or fake.layout is not torch.strided:
            return frozenset()
        steps: list[tuple[int, Any]] = [*enumerate(fake.stride())]
        own = {dim: step.node.expr for dim, step in steps if isinstance(step, torch.SymInt)}
        found = {dim: str(step) for dim, step in own.items() if step.is_Symbol and str(step) not in self.symbols}
        self.symbols.update({symbol: (source, ~dim) for dim, symbol in found.items()})
        return frozenset(found)

    def also_elsewhere(self, arguments: Iterable[tuple[Any, Source]]) -> frozenset[int]:
        """The ids of what is passed and is reached by the code by another path too, with all that is inside.

        The code gets these objects themselves: it would take a copy, or the fake of a tensor, for another object.
        """
        places = [place for value, source in arguments for place in places_in(value, source)]
        sources = {source for _, source in places}
        passed = {id(value): (value, source) for value, source in places}
        reached = (*self.finder.everything(), *self.finder.again)
        both = [id(value) for value, source in reached if id(value) in passed and source not in sources]
        with_attributes = [key for key, (v, _) in passed.items() if isinstance(v, torch.Tensor) and v.__dict__]
        return frozenset(id(inner) for key in (*both, *with_attributes) for inner, _ in places_in(*passed[key]))

    # ---- gradients
    def gradient(self, fake: torch.Tensor) -> torch.Tensor | None:
        """What ``.grad`` of a tensor holds when the call begins; the program relies on there being one, or none."""
        recorder = self.recorder
        assert recorder is not None
        real = recorder.fakes.real_of(fake)
        if real is None:  # made by the capture
            if info(fake).is_joined:
                message = "grad is read of a tensor that is another one on each path, or comes out of a loop"
                raise refuse("SG305", message, location=here())
            return None
        source = next((seen for value, seen, _ in self._tensors if value is real), None) or self.finder.find(real)
        place = Attribute(source or Held(f"constant_{len(self.inputs)}", real), "grad")
        with torch._C.DisableTorchFunction():
            value = real.grad
        if value is None:
            self.guards.append(ConstantGuard(place, None))
        else:
            self.finder.alias(value, place)
            self.guards += tensor_guards(value, place, (False,) * value.dim())
        return value

    def facts(self) -> list[Guard]:
        """Guards on what the code asked of tensors besides their metadata, and on those that it told by identity."""
        recorder = self.recorder
        assert recorder is not None
        return [
            FactGuard(source, name, fact(name, real))
            for real, name in {(id(real), name): (real, name) for real, name in recorder.facts}.values()
            for source in self.places_of(real)
        ]

    def identities(self) -> list[Guard]:
        """Guards on the very tensors that the code keeps apart by identity, as keys or elements of a set."""
        recorder = self.recorder
        assert recorder is not None
        hashed = {id(t): t for t in map(recorder.fakes.real_of, recorder.executed.hashed) if t is not None}
        return [IdentityGuard(source, real) for real in hashed.values() for source in self.places_of(real)]

    def places_of(self, real: torch.Tensor) -> list[Source]:
        """Where a tensor is found when the program is called."""
        passed = [source for value, source, _ in self._tensors if value is real]
        found = None if passed else self.finder.find(real)
        return passed if found is None else [found]

    # ---- other tensors, and state
    def lift(self, value: torch.Tensor) -> fx.Node:
        """The placeholder for a real tensor that the capture met; the same tensor is lifted once."""
        recorder = self.recorder
        assert recorder is not None
        if is_fake(value):
            recorder.before_unseen_write()
            what = "a tensor that one path made is read where another path may have been taken"
            raise refuse("SG305", f"{what}: it was stored by code that is not rewritten", location=here())
        if isinstance(value, Staged):  # a list or number of a path or an iteration that was recorded anew since
            what = "what one path or iteration has made is needed where another may have been taken"
            raise refuse("SG305", what, location=here(), hint=AMBIGUOUS)
        source = self.finder.find(value)
        if source is None and is_made_of_fakes(value, recorder.is_new(value)):
            raise refuse_class(type(value), "is computed with", location=here())
        if source is None and isinstance(value, torch.nn.Parameter) and recorder.is_new(value):
            return self._made_anew(value)
        kind = "tensor"
        if isinstance(source, Slot):
            kind = {"_parameters": "parameter", "_buffers": "buffer"}.get(source.table, "tensor")
        elif isinstance(value, torch.nn.Parameter):
            kind = "parameter"
        if source is None:
            source = Held(f"constant_{len(self.inputs)}", value)
        else:
            self.guards += tensor_guards(value, source, (False,) * value.dim())
        return self._add(Input(self._name(source), kind, source, recorder.fakes.of(value)), value)

    def _made_anew(self, value: torch.Tensor) -> fx.Node:
        """The node for a parameter that torch has made, unseen, of a tensor from before.

        Each call makes one of its memory, outside of all branches and loops: any of them may come to it next.
        """
        recorder = self.recorder
        assert recorder is not None
        with torch._C.DisableTorchFunction():
            memory = value.detach()
        source = Held(f"constant_{len(self.inputs)}", memory)
        node = self._add(Input(self._name(source), "tensor", source, recorder.fakes.of(memory)), memory)
        made = recorder.root.graph.call_function(torch.nn.Parameter, (node, value.requires_grad))
        made.meta.update(val=recorder.fakes.of(value), location=here(), context=current_context())
        for each in (value, recorder.fakes.of(value)):
            recorder.root.define(each, made)
        return made

    def state(self, value: Any, source: Source) -> Any:
        """What stands for a number that the call reads and writes, or for a number or array that differs."""
        recorder = self.recorder
        assert recorder is not None
        if not is_exactly(value, (int, float, bool)):
            self.guards += self.arrays.guards(value, source)
            return self.arrays.given(value, source, self.finder, self._tensor)
        number = recorder.fresh_number(type(value))
        self.guards.append(TypeGuard(source, type(value)))
        self._add(Input(self._name(source), "state", source, recorder.to_fake(number)), number)
        return number

    def list_of(self, element: ListElement, source: Source) -> StagedSpread:
        """What stands for all elements of a list that the call makes longer."""
        self.guards.append(TypeGuard(source, list))
        columns = tuple(StagedList(ListType(type_)) for type_ in types(element))
        for column in columns:
            self._add(Input(self._name(source), "list", source, column.type), column)
        return StagedSpread(element, columns)

    def _add(self, input_: Input, value: Any) -> fx.Node:
        assert self.recorder is not None
        node = self.recorder.root.placeholder(input_.name, input_.value)
        self.recorder.root.define(value, node)
        if isinstance(value, torch.Tensor) and value is not input_.value:
            self.recorder.root.define(input_.value, node)
        self.inputs.append(input_)
        self.nodes.append(node)
        return node

    def _name(self, source: Source) -> str:
        stem = re.sub(r"\W+", "_", source_name(source, self.finder)).strip("_") or "value"
        stem = stem if not stem[0].isdigit() else f"t{stem}"
        name, count = stem, 1
        while name in self._names:
            count += 1
            name = f"{stem}_{count}"
        self._names.add(name)
        return name
