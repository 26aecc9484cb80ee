"""The inputs of a program: the call's arguments on fake tensors, and every real tensor that turns up."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.program.fingerprints import fingerprint
from stillgraph.program.guards import (
    AliasGuard,
    Argument,
    Attribute,
    BytesGuard,
    Called,
    ConstantGuard,
    Guard,
    Held,
    IdentityGuard,
    Item,
    KeysGuard,
    LengthGuard,
    Slot,
    Source,
    TensorGuard,
    TypeGuard,
)
from stillgraph.program.program import Input
from stillgraph.program.types import ListType
from stillgraph.trace.arrays import is_array
from stillgraph.trace.buffers import require_plain_array
from stillgraph.trace.containers import split
from stillgraph.trace.frames import here
from stillgraph.trace.lists import Element, Spread, StagedList, types
from stillgraph.trace.recorder import Recorder
from stillgraph.trace.sources import Finder
from stillgraph.trace.symbolic import is_fake

Dims = Callable[[Source, torch.Tensor], tuple[bool, ...]]  # which dimensions of an argument are symbolic


@dataclass
class Inputs:
    """Collects the placeholders of the root region and what must hold of the arguments."""

    finder: Finder
    symbolic_dims: Dims
    aliases_matter: bool = False  # whether the code writes to tensors in place or compares objects with ``is``
    recorder: Recorder | None = None
    inputs: list[Input] = field(default_factory=list)
    nodes: list[fx.Node] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    symbols: dict[str, tuple[Source, int]] = field(default_factory=dict)
    _tensors: list[tuple[torch.Tensor, Source]] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    # ---- arguments
    def argument(self, value: Any, source: Source) -> Any:
        """What the user's function gets in place of an argument: the same, with fake tensors in it."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, source)
        parts = split(value) if not isinstance(value, torch.Size) else None
        if parts is not None:
            return self._container(value, parts, source)
        if isinstance(
            value, (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device, range, torch.Size)
        ):
            self.guards.append(ConstantGuard(source, value))
        else:
            self.guards.append(IdentityGuard(source, value))
            if is_array(value):
                self.guards.append(BytesGuard(source, fingerprint(require_plain_array(value, source))))
        return value

    def _container(self, value: Any, parts: Any, source: Source) -> Any:
        self.guards.append(TypeGuard(source, type(value)))
        if isinstance(value, dict):
            self.guards.append(KeysGuard(source, tuple(value)))
            sources: list[Source] = [Item(source, key) for key in value]
        elif parts.attributes:
            sources = [Attribute(source, name) for name in parts.context]
        elif isinstance(value, (list, tuple)):
            self.guards.append(LengthGuard(source, len(value)))
            sources = [Item(source, index) for index in range(len(value))]
        else:
            self.guards.append(IdentityGuard(source, value))
            return value
        children = [self.argument(child, s) for child, s in zip(parts.children, sources)]
        if isinstance(value, tuple) and all(new is old for new, old in zip(children, parts.children)):
            return value
        fresh = parts.rebuild(children)
        self.finder.alias(fresh, source)
        return fresh

    def _tensor(self, value: torch.Tensor, source: Source) -> torch.Tensor:
        recorder = self.recorder
        assert recorder is not None
        same = self._note_alias(value, source)
        if same and self.aliases_matter:
            return recorder.fake_of(value)
        name = self._name(source)
        # Sizes 0 and 1 are special to torch (broadcasting, squeezing): such a call gets a program of its own.
        dims = tuple(s and size > 1 for s, size in zip(self.symbolic_dims(source, value), value.shape, strict=True))
        if any(dims):
            fake = recorder.symbolic.fake_dynamic(value, dims, name)
            recorder.fakes[id(value)] = (value, fake)
            self._note_symbols(fake, source)
        elif same:
            fake = recorder.symbolic.fake_apart(value)
        else:
            fake = recorder.fake_of(value)
        recorder.reals.pop(id(fake), None)  # the user's code sees the fake itself
        self.guards.append(tensor_guard(value, source, dims))
        self._add(Input(name, "argument", source, fake), fake)
        return fake

    def _note_alias(self, value: torch.Tensor, source: Source) -> bool:
        """Whether a tensor was passed before; where that matters, which arguments are the same one is guarded."""
        known = False
        for other, seen in self._tensors:
            if other is value or (other.dtype == value.dtype and other.shape == value.shape):
                known = known or other is value
                if self.aliases_matter:
                    self.guards.append(AliasGuard(seen, source, same=other is value))
        self._tensors.append((value, source))
        return known

    def _note_symbols(self, fake: torch.Tensor, source: Source) -> None:
        for dim, size in enumerate(fake.shape):
            if isinstance(size, torch.SymInt) and not size.node.is_constant():
                self.symbols.setdefault(str(size.node.expr), (source, dim))

    # ---- gradients
    def gradient(self, fake: torch.Tensor) -> torch.Tensor | None:
        """What ``.grad`` of a tensor holds when the call begins; the program relies on there being one, or none."""
        recorder = self.recorder
        assert recorder is not None
        real = next((value for value, known in recorder.fakes.values() if known is fake), None)
        if real is None:  # made by the capture
            if getattr(fake, "stillgraph_joined", False):
                message = "grad is read of a tensor that is another one on each path, or comes out of a loop"
                raise refuse("SG305", message, location=here())
            return None
        source = next((seen for value, seen in self._tensors if value is real), None) or self.finder.find(real)
        place = Attribute(source or Held(f"constant_{len(self.inputs)}", real), "grad")
        with torch._C.DisableTorchFunction():
            value = real.grad
        if value is None:
            self.guards.append(ConstantGuard(place, None))
        else:
            self.finder.alias(value, place)
            self.guards.append(tensor_guard(value, place, (False,) * value.dim()))
        return value

    # ---- other tensors, and state
    def lift(self, value: torch.Tensor) -> fx.Node:
        """The placeholder for a real tensor that the capture met; the same tensor is lifted once."""
        recorder = self.recorder
        assert recorder is not None
        if is_fake(value):
            recorder.before_unseen_write()
            what = "a tensor that one path made is read where another path may have been taken"
            raise refuse("SG305", f"{what}: it was stored by code that is not rewritten", location=here())
        source = self.finder.find(value)
        kind = "tensor"
        if isinstance(source, Slot):
            kind = {"_parameters": "parameter", "_buffers": "buffer"}.get(source.table, "tensor")
        elif isinstance(value, torch.nn.Parameter):
            kind = "parameter"
        if source is None:
            source = Held(f"constant_{len(self.inputs)}", value)
        else:
            self.guards.append(tensor_guard(value, source, (False,) * value.dim()))
        return self._add(Input(self._name(source), kind, source, recorder.fake_of(value)), value)

    def state(self, value: Any, source: Source) -> Any:
        """The staged number for a Python number that the call reads and writes."""
        recorder = self.recorder
        assert recorder is not None
        number = recorder.fresh_number(type(value))
        self.guards.append(TypeGuard(source, type(value)))
        self._add(Input(self._name(source), "state", source, recorder.to_fake(number)), number)
        return number

    def list_of(self, element: Element, source: Source) -> Spread:
        """What stands for all elements of a list that the call makes longer."""
        self.guards.append(TypeGuard(source, list))
        columns = tuple(StagedList(ListType(type_)) for type_ in types(element))
        for column in columns:
            self._add(Input(self._name(source), "list", source, column.type), column)
        return Spread(element, columns)

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


def source_name(source: Source, finder: Finder) -> str:
    """A source as a name for an input: an argument by its parameter, a parameter by its path in the module."""
    if isinstance(source, Argument):
        return finder.names.get(source.key, str(source.key) if isinstance(source.key, str) else f"arg{source.key}")
    if isinstance(source, (Slot, Attribute)):
        base = source_name(source.base, finder)
        return source.name if base == "self" else f"{base}_{source.name}"
    if isinstance(source, Item):
        return f"{source_name(source.base, finder)}_{source.key}"
    if isinstance(source, Called):
        return source_name(source.base, finder)
    return source.name


def tensor_guard(value: torch.Tensor, source: Source, symbolic: tuple[bool, ...]) -> TensorGuard:
    """The metadata a program relies on. Strides matter unless the layout is the plain one with symbolic sizes."""
    shape = tuple(None if s else d for s, d in zip(symbolic, value.shape))
    strides = None if any(symbolic) and value.is_contiguous() else tuple(value.stride())
    return TensorGuard(source, type(value), value.dtype, value.device, shape, strides, value.requires_grad)
