"""Packing a lowered program as a module that owns its weights, ready for an exporter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.deploy.description.left_behind import (
    check_left_behind,
    refuse_absent,
    refuse_advanced,
    refuse_shared,
    without_persistence,
)
from stillgraph.deploy.description.shared_memory import refuse_shared_memory
from stillgraph.deploy.description.signature import (
    Brought,
    Signature,
    home_of,
    path_of,
    place_key,
    signature_of,
    values_of,
    written_place,
)
from stillgraph.deploy.description.structure import leaves_of
from stillgraph.passes.checks import Check
from stillgraph.passes.lists.lists import kind_in
from stillgraph.passes.loops.bounding import branching_loops
from stillgraph.passes.regions.regions import copied_module, outputs, placeholders, set_outputs
from stillgraph.passes.regions.values import Fakes, dtype_of, kind_of, storage_of, value_of
from stillgraph.passes.whole_graph import unwrap_tests
from stillgraph.program.effects import Effect
from stillgraph.program.outputs import Constant, Output
from stillgraph.program.program import Program
from stillgraph.program.sources import Attribute, Slot, Source
from stillgraph.runtime.native.function_writer import read_source


@dataclass
class Packed:
    """A lowered program as a module that owns its weights, with what its export needs."""

    module: fx.GraphModule
    signature: Signature
    examples: tuple[torch.Tensor, ...]
    dynamic: list[set[int]]
    kinds: tuple[type | None, ...]  # of each output that is a number, or a list of numbers as a tensor
    notes: tuple[str, ...]
    homes: dict[str, Any]
    places: dict[str, Any]  # by the name of an attribute or of a taken tensor: `place_key` of what it stands for
    kept: frozenset[str]  # the names of places which hold after a call what the program leaves there
    checks: tuple[Check, ...] = ()
    left: tuple[Effect, ...] = ()  # what the module does not carry out


def pack(
    program: Program,
    lowered: Program,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    checks: tuple[Check, ...] = (),
) -> Packed:
    """Make the weights attributes, keep every tensor of the call a parameter, and write buffers back.

    Args:
        program: as captured.
        lowered: the same with tensors alone.
        args, kwargs: the example call.
        checks: what the last outputs of ``lowered`` tell of. The module gives them last, as a dict by their names.

    Raises:
        ExportError: the program's next call reads what its calls leave behind, and the module cannot keep it.
    """
    refuse_advanced(program)
    refuse_absent(program)
    program = without_persistence(program)
    signature = signature_of(program)
    module = copied_module(lowered.graph)
    values = [value_of(value) for value in outputs(program.graph)]
    kinds = tuple(kind_of(value) or kind_in(value) for value in values)
    packer = _Packer(module, signature, args, kwargs, outputs(module))
    packer.bring_tensors(program)
    packer.take_arguments()
    refuse_shared(program)
    refuse_shared_memory(program)
    left = packer.write_effects(program.effects)
    check_left_behind(program, left, args, kwargs)
    leaves = leaves_of(program.result)
    given = [packer.leaf(leaf) for leaf in leaves] or [packer.leaf(Constant(0))]
    set_outputs(module, [*given, *packer.named(checks)])
    unwrap_tests(module)
    module.graph.lint()
    packer.notes += branching_loops(lowered)
    examples = zip(values_of(signature, args, kwargs), signature.taken)
    return Packed(
        module,
        signature,
        tuple(_example(tensor, taken.dynamic) for tensor, taken in examples),
        [set(taken.dynamic) for taken in signature.taken],
        tuple(_kind(leaf, kinds) for leaf in leaves),
        tuple(packer.notes),
        packer.homes,
        packer.named_places(),
        packer.kept_names(program, left),
        checks,
        tuple(left),
    )


def _kind(leaf: Output | Constant, kinds: tuple[type | None, ...]) -> type | None:
    return kinds[leaf.index] if isinstance(leaf, Output) else kind_of(leaf.value)


def _example(tensor: torch.Tensor, dynamic: frozenset[int]) -> torch.Tensor:
    """An example in memory of its own, whose open dimensions are neither 0 nor 1, which torch takes for constants."""
    if all(tensor.shape[dim] > 1 for dim in dynamic):
        return tensor.detach().clone()
    shape = [max(size, 2) if dim in dynamic else size for dim, size in enumerate(tensor.shape)]
    return torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)


@dataclass
class _Packer:
    module: fx.GraphModule
    signature: Signature
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    values: list[Any]  # the outputs of the graph
    notes: list[str] = field(default_factory=list)
    homes: dict[str, Any] = field(default_factory=dict)  # name of an attribute -> its place in the user's objects
    _places: dict[Any, fx.Node] = field(default_factory=dict)  # where a tensor is kept -> its node
    _inputs: dict[Source, fx.Node] = field(default_factory=dict)

    def bring_tensors(self, program: Program) -> None:
        """Make attributes of the inputs that no caller passes."""
        known = {brought.source: brought for brought in self.signature.brought}
        self._inputs = {given.source: node for given, node in zip(program.inputs, placeholders(self.module))}
        for source, node in self._inputs.items():
            brought = known.get(source)
            if brought is None:
                continue
            value = read_source(brought.source, self.args, self.kwargs)
            place = self._register(brought.path, value, self._is_persistent(brought))
            self._know_home(place, brought.source, value)
            with self.module.graph.inserting_before(_first_operation(self.module)):
                read = self.module.graph.get_attr(place)
            read.meta.update(node.meta)
            node.replace_all_uses_with(read)
            self.values = [read if value is node else value for value in self.values]
            self.module.graph.erase_node(node)
            self._places[place_key(source)] = read

    def _is_persistent(self, brought: Brought) -> bool:
        """Whether a tensor is part of the ``state_dict`` of the user's module, or is state of the call."""
        source = brought.source
        if brought.kind != "buffer" or not isinstance(source, Slot):
            return brought.kind == "state"
        owner: torch.nn.Module = read_source(source.base, self.args, self.kwargs)
        return source.name not in owner._non_persistent_buffers_set

    def _register(self, path: str, value: Any, persistent: bool) -> str:
        *parents, name = path.split(".")
        owner: torch.nn.Module = self.module
        for part in parents:
            if not isinstance(getattr(owner, part, None), torch.nn.Module):
                owner.add_module(part, torch.nn.Module())
            owner = getattr(owner, part)
        while hasattr(owner, name) and name not in owner._buffers and name not in owner._parameters:
            name += "_"
        if isinstance(value, torch.nn.Parameter):
            # without gradients: torch's while_loop differentiates wrongly where a loop runs no iteration
            owner.register_parameter(name, torch.nn.Parameter(value.detach().clone(), requires_grad=False))
        else:
            tensor = value.detach().clone() if isinstance(value, torch.Tensor) else _number_tensor(value)
            owner.register_buffer(name, tensor, persistent=persistent)
        return ".".join([*parents, name])

    def _know_home(self, place: str, source: Source, value: Any) -> None:
        """Remember whose tensor or number an attribute stands for."""
        home = ("tensor", id(value)) if isinstance(value, torch.Tensor) else home_of(source, self.args, self.kwargs)
        if home is not None:
            self.homes[place] = home

    def write_effects(self, effects: tuple[Effect, ...]) -> list[Effect]:
        """Write what the call leaves in buffers, and in numbers that became buffers; note and give what cannot be."""
        left = [effect for effect in effects if not self._write(effect)]
        self.notes += [f"the artefact does not carry out: {effect}" for effect in left]
        return left

    def _write(self, effect: Effect) -> bool:
        written = written_place(effect)
        value = getattr(effect, "value", None)
        if written is None or not (isinstance(value, Output) or (isinstance(value, Constant) and kind_of(value.value))):
            return False  # such as a None: tensors and numbers are what a module keeps
        output = self.leaf(value)
        place = self._places.get(place_key(written)) or self._new_place(written, output)
        if place is None:
            return False
        new, old = output.meta["val"], place.meta["val"]
        if not isinstance(old, torch.Tensor) or old.dtype != new.dtype or list(old.shape) != list(new.shape):
            return False
        self._keep_returned(place)
        graph = self.module.graph
        memory = {storage_of(each.meta["val"]) for each in self._places.values()}
        with graph.inserting_before(graph.output_node()):
            # What another place held before the call: torch writes to places in an order of its own.
            given = self._clone(output) if storage_of(new) in memory else output
            graph.call_method("copy_", (place, given))
        return True

    def _clone(self, value: fx.Node) -> fx.Node:
        clone = self.module.graph.call_method("clone", (value,))
        clone.meta.update(value.meta)
        return clone

    def _new_place(self, written: Source, output: fx.Node) -> fx.Node | None:
        """A buffer that is written but not read."""
        path = path_of(written)
        if path is None or not isinstance(written, Attribute):
            return None
        owner = read_source(written.base, self.args, self.kwargs)
        value: Any = getattr(owner, written.name, None)
        if not isinstance(value, torch.Tensor) and type(value) not in (bool, int, float):
            return None
        persistent = not isinstance(value, torch.Tensor) or written.name in getattr(owner, "_buffers", ())
        name = self._register(path, value, persistent)
        self._know_home(name, written, value)
        with self.module.graph.inserting_before(_first_operation(self.module)):
            read = self.module.graph.get_attr(name)
        with output.meta["val"].fake_mode:
            like = value if isinstance(value, torch.Tensor) else _number_tensor(value)
            read.meta["val"] = torch.empty(like.shape, dtype=like.dtype, device=like.device)
        self._places[place_key(written)] = read
        return read

    def _keep_returned(self, place: fx.Node) -> None:
        """What is returned of a buffer is what it held before it is written."""
        graph = self.module.graph
        memory = storage_of(place.meta["val"])
        kept = []
        for value in self.values:
            if isinstance(value, fx.Node) and storage_of(value.meta["val"]) == memory:
                with graph.inserting_before(graph.output_node()):
                    value = self._clone(value)
            kept.append(value)
        self.values = kept

    def take_arguments(self) -> None:
        """Placeholders for exactly the tensors of the call, in its order."""
        graph = self.module.graph
        anchor = _first_operation(self.module)
        for taken in self.signature.taken:
            old = self._inputs.get(taken.source)
            with graph.inserting_before(anchor):
                fresh = graph.placeholder(taken.name)
            if old is not None:
                fresh.meta.update(old.meta)
                old.replace_all_uses_with(fresh)
                self.values = [fresh if value is old else value for value in self.values]
                graph.erase_node(old)
            fresh.target = taken.name  # of the parameter; fx spells the node's name in its own way

    def named_places(self) -> dict[str, Any]:
        """Which place each attribute and each tensor of the call stands for."""
        kept = {str(node.target): key for key, node in self._places.items()}
        return kept | {taken.name: place_key(taken.source) for taken in self.signature.taken}

    def kept_names(self, program: Program, left: Sequence[Effect]) -> frozenset[str]:
        """Which of these places hold after a call what the program leaves there; ``left`` is not carried out."""
        known = {place_key(given.source) for given in program.inputs} | _places_of(program.effects)
        return frozenset(name for name, key in self.named_places().items() if key in known - _places_of(left))

    def leaf(self, leaf: Output | Constant) -> Any:
        """A leaf of the result as an output of the module."""
        if isinstance(leaf, Output):
            value = self.values[leaf.index]
            return value if isinstance(value, fx.Node) else self._constant(value)
        return self._constant(leaf.value)

    def named(self, checks: tuple[Check, ...]) -> list[dict[str, Any]]:
        """The last outputs of the graph by the names of checks."""
        flags = self.values[len(self.values) - len(checks) :]
        return [{check.name: flag for check, flag in zip(checks, flags, strict=True)}] if checks else []

    def _constant(self, value: Any) -> Any:
        graph, dtype = self.module.graph, dtype_of(type(value))
        with graph.inserting_before(graph.output_node()):
            node = graph.call_function(torch.full, ((), value), {"dtype": dtype})
        node.meta["val"] = Fakes(self.module).tensor((), dtype)
        return node


def _places_of(effects: Sequence[Effect]) -> set[Any]:
    """The places to which effects give new values."""
    return {place_key(place) for effect in effects if (place := written_place(effect)) is not None}


def _first_operation(module: fx.GraphModule) -> fx.Node:
    first: fx.Node = next(node for node in module.graph.nodes if node.op != "placeholder")
    return first


def _number_tensor(value: bool | int | float) -> torch.Tensor:
    return torch.tensor(value, dtype=dtype_of(type(value)))
