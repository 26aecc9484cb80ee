"""ONNX files, with real ``If`` and ``Loop``.

ONNX's loops may carry tensors that grow, so a decoding loop that appends to its tokens is exported as it stands. State
of the program is inputs and outputs of the file (`onnx_state`); an exception of the program makes the run fail.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.progress import doing
from stillgraph.deploy.description.description import describe
from stillgraph.deploy.description.entries import Entry
from stillgraph.deploy.description.one_structure import one_structure
from stillgraph.deploy.description.signature import values_of
from stillgraph.deploy.description.wishes import DEFAULT, Wishes
from stillgraph.deploy.exporting.exported_program import lower
from stillgraph.deploy.exporting.locating import line_of, operation_in
from stillgraph.deploy.exporting.packing import Packed, pack
from stillgraph.deploy.exporting.torch_export import export, quiet, summary
from stillgraph.deploy.exporting.verification import check_artefact, check_sizes
from stillgraph.deploy.onnx import onnx_checks
from stillgraph.deploy.onnx import onnx_naming as naming
from stillgraph.deploy.onnx.onnx_checksum import BLANK, KEY, of_weights_beside, seal
from stillgraph.deploy.onnx.onnx_doubles import spell_out_numbers
from stillgraph.deploy.onnx.onnx_session import (
    CHECKS,
    DIMENSIONS,
    PROGRAM,
    STATE,
    VERSION,
    WRITTEN,
    require_runnable,
    run_onnx,
)
from stillgraph.deploy.onnx.onnx_state import Written, state_as_arguments
from stillgraph.passes.exceptions.gating import gate_outputs
from stillgraph.passes.kernels.attention import write_out_attention
from stillgraph.passes.kernels.hiding import hide
from stillgraph.passes.regions.values import value_of
from stillgraph.program.input_spec import Dim
from stillgraph.program.program import Program


@dataclass(frozen=True)
class _Model:
    """What a file is made of, besides torch's graph."""

    program: Program
    packed: Packed
    written: tuple[Written, ...]
    dims: list[tuple[Dim | None, ...]]
    description: dict[str, Any]
    wishes: Wishes

    def inputs(self) -> list[str]:
        """The names of the inputs, those of state behind the call's."""
        taken = [taken.name for taken in self.packed.signature.taken]
        names = _named("input_names", taken, self.wishes.input_names)
        return [*names, *(each.name for each in self.written if each.initial is not None)]

    def equal_sizes(self) -> list[naming.Places]:
        """For each output which axis of which input each of its open sizes equals, where that is known."""
        taken = self.packed.signature.taken
        results = naming.equal_sizes(self.program, [each.source for each in taken])
        ranks = {each.name: (index, len(self.packed.examples[index].shape)) for index, each in enumerate(taken)}
        written = [ranks.get(each.name, (0, 0)) for each in self.written]
        checks: list[naming.Places] = [()] * len(self.packed.checks)
        return [*results, *checks, *(tuple((index, axis) for axis in range(rank)) for index, rank in written)]

    def outputs(self) -> list[str]:
        """The names of the outputs: results, checks, new values of what is written."""
        checks = onnx_checks.names(self.packed.checks)
        results = _named("output_names", naming.result_names(self.program), self.wishes.output_names)
        return [*results, *checks, *(each.output for each in self.written)]

    def metadata(self) -> dict[str, str]:
        state = {each.name: each.output for each in self.written if each.initial is not None}
        given = dict(zip((each.name for each in self.packed.signature.taken), self.inputs()))
        arguments = {given.get(each.name, each.name): each.output for each in self.written if each.initial is None}
        ranges = {dim.name: [dim.min, dim.max] for dims in self.dims for dim in dims if dim is not None}
        program = {"version": VERSION, "entry": self.description}
        checks = onnx_checks.told(self.packed.checks)
        texts = ((PROGRAM, program), (STATE, state), (WRITTEN, arguments), (DIMENSIONS, ranges), (CHECKS, checks))
        return {key: json.dumps(value) for key, value in texts if value} | {KEY: BLANK}


def _named(option: str, names: list[str], wanted: Sequence[str]) -> list[str]:
    """Names, the first of them replaced by those that the user wants."""
    if len(wanted) > len(names):
        raise ValueError(f"{option} has {len(wanted)} names, and the program has {len(names)}: {', '.join(names)}")
    kept = names[len(wanted) :]
    if set(wanted) & set(kept):
        raise ValueError(f"{option}: {min(set(wanted) & set(kept))!r} is the name of another one")
    return [*wanted, *kept]


def _check_names(made: _Model) -> None:
    """Tell of names that cannot be, before the work.

    Raises:
        ValueError: there are too many, or one is the name of another input or output.
    """
    inputs, outputs = made.inputs(), made.outputs()
    both = {*made.wishes.output_names} & {*inputs} | {*made.wishes.input_names} & {*outputs}
    if both:
        raise ValueError(f"{min(both)!r} cannot be the name of an input and of an output")


def write_onnx(entry: Entry, path: Path, wishes: Wishes = DEFAULT) -> None:
    """Write a program and check what was written.

    Args:
        entry: the program.
        path: of the file.
        wishes: the version of ONNX's operators, and names.

    Where the entry returns its checks they become outputs behind the results, ``check_1`` and so on.

    Raises:
        ExportError: ONNX cannot express the program, or the file differs from it.
    """
    entry = replace(entry, program=one_structure(entry.program))
    program = entry.program
    lowered, checks = lower(program, entry.returns_checks)
    packed = pack(program, write_out_attention(hide(lowered)), entry.args, entry.kwargs, checks)
    packed, written = state_as_arguments(packed)
    _check_numbers(packed)
    gate_outputs(packed.module)
    packed.module.recompile()
    dims = [tuple(program.dims.get(taken.source, ())) for taken in packed.signature.taken]
    dims += [()] * (len(packed.examples) - len(dims))
    exported = export(packed.module, packed.examples, packed.dynamic, dims)
    spell_out_numbers(exported.graph_module)
    made = _Model(program, packed, written, dims, describe(entry, packed), wishes)
    _check_names(made)
    _convert(exported, made, path)
    require_runnable(path)
    places = {each.name: each.place for each in written}

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = [t.detach().clone() for t in values_of(packed.signature, args, kwargs)]

        def run() -> list[torch.Tensor]:
            return onnx_checks.results(run_onnx(path, given), checks, len(written))

        check_artefact(program, run, args, kwargs, same_generator=False, written=places, seconds=entry.time_limit)

    check(entry.args, entry.kwargs)
    check_sizes(entry, check)


def _check_numbers(packed: Packed) -> None:
    """Refuse complex tensors at the border of the file: ONNX has none."""
    given = [node for node in packed.module.graph.nodes if node.op == "placeholder"]
    for node in (*given, *packed.module.graph.output_node().all_input_nodes):
        value = value_of(node)
        if isinstance(value, torch.Tensor) and value.is_complex():
            taken = f"takes the complex tensor {node.name}" if node.op == "placeholder" else "returns a complex tensor"
            hint = "Use torch.view_as_real and torch.view_as_complex at the border, or save as .pt2."
            message = f"the program {taken}, and ONNX has no complex numbers"
            raise refuse("SG402", message, location=node.meta.get("location"), hint=hint)


def _convert(exported: torch.export.ExportedProgram, made: _Model, path: Path) -> None:
    from stillgraph.deploy.onnx import onnx_control_flow as flow
    from stillgraph.deploy.onnx import onnx_operators, onnx_ranges, onnx_recurrent
    from stillgraph.deploy.onnx.onnx_decomposed import decomposed_once
    from stillgraph.deploy.onnx.onnx_exact import make_exact
    from stillgraph.deploy.onnx.onnx_random import give_seeds
    from stillgraph.deploy.onnx.onnx_types import compute_in_float32

    table = {
        **onnx_operators.TABLE,
        **onnx_ranges.TABLE,
        **onnx_recurrent.TABLE,
        torch.ops.higher_order.cond: flow.cond,
        torch.ops.higher_order.while_loop: flow.while_loop,
        torch.ops.stillgraph.forget_sizes.default: flow.forget_sizes,
        torch.ops.stillgraph.take_sizes_of.default: flow.take_sizes_of,
        **made.wishes.translations,
    }
    options: dict[str, Any] = {} if made.wishes.opset is None else {"opset_version": made.wishes.opset}
    module = made.packed.module
    try:
        with doing("writing with ONNX's operators", "regions"), quiet(), torch.no_grad(), decomposed_once():
            options |= {"custom_translation_table": table, "optimize": False}
            given = torch.onnx.export(exported, dynamo=True, verbose=False, **options)
            assert given is not None, "torch.onnx.export gives a program unless it writes a file"
            model = given.model
            _simplify(model)
            flow.forget_shapes(model)
            naming.name_sizes(model, made.inputs(), made.dims, made.equal_sizes())
            make_exact(model)
            give_seeds(model)
            compute_in_float32(model)
            naming.name_values(model, module, made.inputs(), made.outputs())
            naming.set_defaults(model, made.written)
            onnx_checks.describe(model, made.packed.checks)
            model.metadata_props.update(made.metadata())
            apart = _has_weights_apart(model, made.wishes)
            model.metadata_props.update(of_weights_beside(path) if apart else {})
            given.save(path, external_data=apart)
            seal(path)
    except OSError:
        raise
    except Exception as error:  # of any kind: torch's exporter raises its own and onnxscript's
        location = line_of(module, error)
        hint = "Save as .pt2, or write this operation with others that ONNX knows."
        message = f"ONNX has no form for {operation_in(error) or 'the program'} (torch.onnx: {summary(_cause(error))})"
        raise refuse("SG402", message, location=location, hint=hint) from error
    _check(path, model.opset_imports[""], made.wishes.opset)


_MOST_IN_A_FILE = 1 << 30
"""Bytes of weights that are in the model's own file by default. A file of two gigabytes is none for ONNX's readers."""


def _has_weights_apart(model: Any, wishes: Wishes) -> bool:
    if wishes.external_data is not None:
        return wishes.external_data
    weights = (each.const_value for each in model.graph.initializers.values())
    return bool(sum(each.nbytes for each in weights if each is not None) > _MOST_IN_A_FILE)


def _simplify(model: Any) -> None:
    """What torch's optimizer does, but for its rules: they take 1e-9 for 0, and 1.000005 for 1."""
    from onnx_ir.passes import common
    from onnxscript import optimizer

    common.InlinePass()(model)
    optimizer.fold_constants(model)
    optimizer.remove_unused_nodes(model)
    optimizer.remove_unused_functions(model)
    common.LiftSubgraphInitializersToMainGraphPass()(model)  # what was folded in a branch or loop
    common.OutputFixPass()(model)
    common.NameFixPass()(model)


def _check(path: Path, opset: int, wanted: int | None) -> None:
    """Whether the file is a valid model of the wanted version."""
    import onnx

    if wanted not in (None, opset):
        message = f"torch.onnx writes the program with version {opset} of ONNX's operators, and not with {wanted}"
        raise refuse("SG402", message, hint=f"Save without opset, or with opset={opset}.")
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as error:  # of any kind: the checker's own, and what its reading of a wrong model raises
        raise refuse("SG402", f"what torch.onnx made is no valid model ({summary(error)})") from error


def _cause(error: BaseException) -> BaseException:
    """The error that torch wrapped: it says which operation it is about."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
