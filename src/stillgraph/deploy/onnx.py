"""ONNX files, with real ``If`` and ``Loop``.

ONNX's loops may carry tensors that grow, so a decoding loop that appends to its tokens is exported as it stands. What a
call writes into Python state or buffers is not part of an ONNX file; an exception of the program makes the run fail.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.logs import log
from stillgraph.deploy.locating import line_of, operation_in
from stillgraph.deploy.one_structure import one_structure
from stillgraph.deploy.packing import Packed, pack
from stillgraph.deploy.signature import values_of
from stillgraph.deploy.torch_export import export, quiet, separate_operands, summary
from stillgraph.deploy.verification import check_artefact
from stillgraph.passes import pipeline
from stillgraph.passes.gating import gate_outputs
from stillgraph.passes.growing import hide_growth
from stillgraph.program.program import Program


def write_onnx(
    program: Program, path: Path, args: tuple[Any, ...], kwargs: dict[str, Any], notes: tuple[str, ...] = ()
) -> None:
    """Write a program and check what was written.

    Raises:
        ExportError: ONNX cannot express the program, or the file differs from it.
    """
    program = one_structure(program)
    lowered = gate_outputs(hide_growth(pipeline.run(program)))
    packed = pack(program, lowered, args, kwargs)
    exported = export(packed.module, packed.examples, packed.dynamic)
    for note in (*notes, *packed.notes, *_forgotten(exported)):
        log("deploy", "note", f"{program.name}: {note}", logging.WARNING, program=program.name)
    _convert(exported, packed, path)
    given = [t.detach().clone() for t in values_of(packed.signature, args, kwargs)]
    check_artefact(program, lambda: run_onnx(path, given), args, kwargs, same_generator=False)


def _forgotten(exported: torch.export.ExportedProgram) -> list[str]:
    """What the program writes that an ONNX file has no place for."""
    signature = exported.graph_signature
    written = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    return [f"an ONNX file does not write to {', '.join(written)}"] if written else []


def _convert(exported: torch.export.ExportedProgram, packed: Packed, path: Path) -> None:
    from stillgraph.deploy import onnx_control_flow as flow
    from stillgraph.deploy import onnx_operators
    from stillgraph.deploy.onnx_types import compute_in_float32

    table = {
        **onnx_operators.TABLE,
        torch.ops.higher_order.cond: flow.cond,
        torch.ops.higher_order.while_loop: flow.while_loop,
        torch.ops.stillgraph.forget_sizes.default: flow.forget_sizes,
        torch.ops.stillgraph.take_sizes_of.default: flow.take_sizes_of,
    }
    try:
        with quiet(), torch.no_grad():
            separate_operands(exported.graph_module)
            made = torch.onnx.export(exported, dynamo=True, verbose=False, custom_translation_table=table)
            assert made is not None, "torch.onnx.export gives a program unless it writes a file"
            flow.forget_shapes(made.model)
            compute_in_float32(made.model)
            made.save(path, external_data=False)
    except Exception as error:  # of any kind: torch's exporter raises its own and onnxscript's
        location = line_of(packed.module, error)
        hint = "Save as .pt2, or write this operation with others that ONNX knows."
        message = f"ONNX has no form for {operation_in(error) or 'the program'} (torch.onnx: {summary(_cause(error))})"
        raise refuse("SG402", message, location=location, hint=hint) from error


def _cause(error: BaseException) -> BaseException:
    """The error that torch wrapped: it says which operation it is about."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def run_onnx(path: Path, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run an ONNX file in onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # a failing assertion is reported by the exception alone
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [taken.name for taken in session.get_inputs()]
    results = session.run(None, {name: t.numpy() for name, t in zip(names, given, strict=True)})
    return [torch.from_numpy(result.copy()) if hasattr(result, "copy") else torch.tensor(result) for result in results]
