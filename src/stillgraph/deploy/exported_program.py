"""A program as a `torch.export.ExportedProgram`: tensors in, tensors out, weights under their real names.

A number among the results becomes a 0-d tensor (``bool``, ``int64``, ``float64``). Python numbers that the call reads
and writes (``self.step``) become buffers of the exported program, which updates them as the module would.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.signature import Signature, path_of, place_key, signature_of, values_of, written_place
from stillgraph.deploy.structure import leaves_of
from stillgraph.deploy.torch_export import export
from stillgraph.passes import pipeline
from stillgraph.passes.regions import (
    WHILE,
    all_regions,
    copied_module,
    outputs,
    placeholders,
    set_outputs,
)
from stillgraph.passes.values import Fakes, dtype_of, kind_of, storage_of, value_of
from stillgraph.passes.whole_graph import unwrap_tests
from stillgraph.program.effects import Effect
from stillgraph.program.guards import Attribute, Source
from stillgraph.program.outputs import Choice, Constant, Container, Instance, Output, Template
from stillgraph.program.program import Program
from stillgraph.runtime.guard_codegen import read_source


@dataclass(frozen=True)
class Exported:
    """What an export made of a program.

    Attributes:
        program: torch's exported program; it takes `signature`'s tensors and gives the graph's outputs, in order.
        signature: what it takes and brings along.
        kinds: for each output ``bool``, ``int`` or ``float`` if it stands for a Python number, else None.
        notes: effects of the call that the artefact does not have.
    """

    program: torch.export.ExportedProgram
    signature: Signature
    kinds: tuple[type | None, ...]
    notes: tuple[str, ...]


def to_exported_program(
    program: Program, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> Exported:
    """Export a program.

    Args:
        program: what to export.
        args, kwargs: the example call, its receiver first where the program is a method's.

    Raises:
        ExportError: the program returns what one signature cannot express, or torch has no form for an operation.
    """
    check_result(program)
    lowered = pipeline.run(program)
    check_loops(lowered)
    packed = pack(program, lowered, args, kwargs or {})
    exported = export(packed.module, packed.examples, packed.dynamic)
    return Exported(exported, packed.signature, packed.kinds, packed.notes)


def check_result(program: Program) -> None:
    """Refuse results that have no one structure.

    Raises:
        ExportError: two paths return different structures, dtypes or numbers of dimensions.
    """
    for template in (program.result,):
        choice = _choice_in(template)
        if choice is not None:
            raise refuse("SG401", _difference(program, choice), location=program.location)


def _choice_in(template: Template) -> Choice | None:
    if isinstance(template, Choice):
        return template
    children: tuple[Template, ...] = ()
    if isinstance(template, Container):
        children = template.children
    elif isinstance(template, Instance):
        children = tuple(value for _, value in template.attributes)
    return next((found for child in children if (found := _choice_in(child)) is not None), None)


def _difference(program: Program, choice: Choice) -> str:
    """How the two results of a choice differ, in the words of seed 002."""
    given = outputs(program.graph)
    sides = [side for side in (choice.left, choice.right)]
    values = [value_of(given[side.index]) if isinstance(side, Output) else None for side in sides]
    if not all(isinstance(value, torch.Tensor) for value in values):
        return f"outputs differ in structure: {choice.left} and {choice.right}"
    left, right = values
    if left.dtype != right.dtype:
        return f"outputs differ in dtype: {left.dtype} and {right.dtype}"
    shapes = [tuple(size if isinstance(size, int) else None for size in value.shape) for value in values]
    shown = ", ".join(f"shape{i} = ({', '.join('?' if d is None else str(d) for d in s)})" for i, s in enumerate(shapes, 1))
    if _unknown_rank(*shapes):
        return f"the result is of unknown rank: {shown}; an export has one number of dimensions"
    return f"Shape Join Failed: {shown}"


def _unknown_rank(left: tuple[int | None, ...], right: tuple[int | None, ...]) -> bool:
    """Seed 002, rule 4: shapes of different rank join to an unknown rank if they agree up to an unknown dimension."""
    short, long = sorted((left, right), key=len)
    if None not in short or len(short) == len(long):
        return False
    known = short[:short.index(None)]
    return long[:len(known)] == known


def check_loops(program: Program) -> None:
    """Refuse loops that torch's operator cannot express.

    Raises:
        ExportError: a loop carries a tensor whose shape changes from one iteration to the next.
    """
    for module in all_regions(program.graph):
        for node in module.graph.find_nodes(op="call_function", target=WHILE):
            for entry, carried in zip(node.args[2], node.meta["val"]):  # type: ignore[arg-type]
                if isinstance(carried, torch.Tensor) and not _same_shape(value_of(entry), carried):
                    raise refuse(
                        "SG402", "a loop carries a tensor whose shape changes from one iteration to the next, which "
                        "torch's while_loop cannot express", location=node.meta.get("location"),
                        hint="Write into a tensor of the final size, or save as .onnx.",
                    )


def _same_shape(entry: Any, carried: torch.Tensor) -> bool:
    def expression(size: Any) -> Any:
        return size.node.expr if isinstance(size, torch.SymInt) else size

    return [expression(s) for s in entry.shape] == [expression(s) for s in carried.shape]


# ---- packing
@dataclass
class Packed:
    """A lowered program as a module that owns its weights, with what its export needs."""

    module: fx.GraphModule
    signature: Signature
    examples: tuple[torch.Tensor, ...]
    dynamic: list[set[int]]
    kinds: tuple[type | None, ...]
    notes: tuple[str, ...]


def pack(program: Program, lowered: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Packed:
    """Make the weights attributes, keep every tensor of the call a parameter, and write buffers back.

    Args:
        program: as captured.
        lowered: the same with tensors alone.
        args, kwargs: the example call.
    """
    signature = signature_of(program)
    module = copied_module(lowered.graph)
    kinds = tuple(kind_of(value_of(value)) for value in outputs(program.graph))
    packer = _Packer(module, signature, args, kwargs, outputs(module))
    packer.bring_tensors(program)
    packer.take_arguments()
    packer.write_effects(program.effects)
    leaves = leaves_of(program.result)
    set_outputs(module, [packer.leaf(leaf) for leaf in leaves] or [packer.leaf(Constant(0))])
    unwrap_tests(module)
    module.graph.lint()
    examples = tuple(_example(t, taken.dynamic) for t, taken in zip(values_of(signature, args, kwargs), signature.taken))
    dynamic = [set(taken.dynamic) for taken in signature.taken]
    return Packed(module, signature, examples, dynamic, tuple(_kind(leaf, kinds) for leaf in leaves), tuple(packer.notes))


def _kind(leaf: Output | Constant, kinds: tuple[type | None, ...]) -> type | None:
    return kinds[leaf.index] if isinstance(leaf, Output) else kind_of(leaf.value)


def _example(tensor: torch.Tensor, dynamic: frozenset[int]) -> torch.Tensor:
    """An example whose open dimensions are neither 0 nor 1, which torch would take for constants."""
    tensor = tensor.detach()
    if all(tensor.shape[dim] > 1 for dim in dynamic):
        return tensor
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
            place = self._register(brought.path, brought.kind, value)
            with self.module.graph.inserting_before(_first_operation(self.module)):
                read = self.module.graph.get_attr(place)
            read.meta.update(node.meta)
            node.replace_all_uses_with(read)
            self.values = [read if value is node else value for value in self.values]
            self.module.graph.erase_node(node)
            self._places[place_key(source)] = read

    def _register(self, path: str, kind: str, value: Any) -> str:
        *parents, name = path.split(".")
        owner: torch.nn.Module = self.module
        for part in parents:
            if not isinstance(getattr(owner, part, None), torch.nn.Module):
                owner.add_module(part, torch.nn.Module())
            owner = getattr(owner, part)
        while hasattr(owner, name) and name not in owner._buffers and name not in owner._parameters:
            name += "_"
        if kind == "parameter" and isinstance(value, torch.nn.Parameter):
            # without gradients: torch's while_loop differentiates wrongly where a loop runs no iteration
            owner.register_parameter(name, torch.nn.Parameter(value.detach().clone(), requires_grad=False))
        else:
            tensor = value.detach().clone() if isinstance(value, torch.Tensor) else _number_tensor(value)
            owner.register_buffer(name, tensor, persistent=kind in ("buffer", "state"))
        return ".".join([*parents, name])

    def write_effects(self, effects: tuple[Effect, ...]) -> None:
        """Write what the call leaves in buffers, and in numbers that became buffers; note what cannot be."""
        for effect in effects:
            if not self._write(effect):
                self.notes.append(f"the artefact does not carry out: {effect}")

    def _write(self, effect: Effect) -> bool:
        written = written_place(effect)
        value = getattr(effect, "value", None)
        if written is None or not isinstance(value, (Output, Constant)):
            return False
        output = self.leaf(value)
        place = self._places.get(place_key(written)) or self._new_place(written, output)
        if place is None:
            return False
        new, old = output.meta["val"], place.meta["val"]
        if not isinstance(old, torch.Tensor) or old.dtype != new.dtype or list(old.shape) != list(new.shape):
            return False
        self._keep_returned(place)
        graph = self.module.graph
        with graph.inserting_before(graph.output_node()):
            graph.call_method("copy_", (place, output))
        return True

    def _new_place(self, written: Source, output: fx.Node) -> fx.Node | None:
        """A buffer that is written but not read."""
        path = path_of(written)
        if path is None or not isinstance(written, Attribute):
            return None
        owner = read_source(written.base, self.args, self.kwargs)
        value = getattr(owner, written.name, None)
        if not isinstance(value, torch.Tensor):
            return None
        name = self._register(path, "buffer" if written.name in getattr(owner, "_buffers", ()) else "tensor", value)
        with self.module.graph.inserting_before(_first_operation(self.module)):
            read = self.module.graph.get_attr(name)
        with output.meta["val"].fake_mode:
            read.meta["val"] = torch.empty(value.shape, dtype=value.dtype, device=value.device)
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
                    clone = graph.call_method("clone", (value,))
                clone.meta.update(value.meta)
                value = clone
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
                fresh.name = fresh.target = taken.name


    def leaf(self, leaf: Output | Constant) -> fx.Node:
        """A leaf of the result as an output of the module."""
        if isinstance(leaf, Output):
            value = self.values[leaf.index]
            return value if isinstance(value, fx.Node) else self._constant(value)
        return self._constant(leaf.value)

    def _constant(self, value: Any) -> fx.Node:
        graph, dtype = self.module.graph, dtype_of(type(value))
        with graph.inserting_before(graph.output_node()):
            node = graph.call_function(torch.full, ((), value), {"dtype": dtype})
        node.meta["val"] = Fakes(self.module).tensor((), dtype)
        return node


def _first_operation(module: fx.GraphModule) -> fx.Node:
    return next(node for node in module.graph.nodes if node.op != "placeholder")


def _number_tensor(value: bool | int | float) -> torch.Tensor:
    return torch.tensor(value, dtype=dtype_of(type(value)))


__all__ = ["Exported", "Packed", "check_loops", "check_result", "pack", "to_exported_program"]
