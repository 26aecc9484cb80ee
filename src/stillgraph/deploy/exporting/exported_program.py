"""A program as a `torch.export.ExportedProgram`: tensors in, tensors out, weights under their real names.

A number among the results becomes a 0-d tensor (``bool``, ``int64``, ``float64``). Python numbers that the call reads
and writes (``self.step``) become buffers of the exported program, which updates them as the module would. A list of
which only the run knows the length becomes a tensor with a row for each element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.progress import doing
from stillgraph.deploy.description.entries import Entry
from stillgraph.deploy.description.one_structure import one_structure
from stillgraph.deploy.description.signature import Signature
from stillgraph.deploy.exporting.packing import pack
from stillgraph.deploy.exporting.torch_export import ask_of_sizes_later, export
from stillgraph.deploy.exporting.writes import name_writes, write_where_all_hold
from stillgraph.passes import pipeline
from stillgraph.passes.checks import CHECKED, Check, hand_out_checks
from stillgraph.passes.kernels.hiding import hide, show, write_out
from stillgraph.program.effects import Effect
from stillgraph.program.input_spec import Dim
from stillgraph.program.program import Program


@dataclass(frozen=True)
class Exported:
    """What an export made of a program.

    Attributes:
        program: torch's exported program; it takes `signature`'s tensors and gives the result's leaves, in order.
        module: what was exported, its nodes with the user's lines.
        signature: what it takes and brings along.
        kinds: for each output ``bool``, ``int`` or ``float`` if it stands for a Python number or (with one dimension)
            for a list of them, else None.
        notes: what the artefact does not do, or needs.
        homes: for each tensor that the program brings along, by its name there, what tells the place in the user's
            objects from any other, as long as these live.
        kept: by its name there, `signature.place_key` of each tensor of the call or of the program's that holds after a
            call what the original leaves in its place.
        checks: what the program's last output tells of, a dict of truth values by their names; () if it asserts.
        left: the effects of the call that it does not carry out.
    """

    program: torch.export.ExportedProgram
    module: fx.GraphModule
    signature: Signature
    kinds: tuple[type | None, ...]
    notes: tuple[str, ...]
    homes: dict[str, Any]
    kept: dict[str, Any]
    checks: tuple[Check, ...] = ()
    left: tuple[Effect, ...] = ()


def to_exported_program(
    program: Program,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    returns_checks: bool = False,
    inferred_anew: bool = False,
) -> Exported:
    """Export a program.

    Args:
        program: what to export.
        args, kwargs: the example call, its receiver first where the program is a method's.
        returns_checks: whether assertions become results. What a call writes, it writes only where all of them hold.
        inferred_anew: whether the shapes of the exported program will be inferred once more.

    Raises:
        ExportError: the program returns what one signature cannot express, or torch has no form for an operation.
    """
    program = one_structure(program)
    lowered, checks = lower(program, returns_checks, compiled=inferred_anew)
    lowered = write_out(lowered) if inferred_anew else lowered
    packed = pack(program, hide(lowered), args, kwargs or {}, checks)
    exported = export(packed.module, packed.examples, packed.dynamic, _dims(program, packed.signature))
    name_writes(exported)
    write_where_all_hold(exported, len(checks))
    show(exported.graph_module)
    if not inferred_anew:  # compiled code checks less than torch's operations do
        ask_of_sizes_later(exported)
    kept = {name: packed.places[name] for name in sorted(packed.kept)}
    return Exported(
        exported,
        packed.module,
        packed.signature,
        packed.kinds,
        packed.notes,
        packed.homes,
        kept,
        checks,
        packed.left,
    )


def exported_entry(entry: Entry, *, inferred_anew: bool = False) -> Exported:
    """The program of an entry, as `to_exported_program` makes it of the example call.

    Raises:
        ExportError: as there.
    """
    return to_exported_program(
        entry.program, entry.args, entry.kwargs, returns_checks=entry.returns_checks, inferred_anew=inferred_anew
    )


def lower(program: Program, returns_checks: bool, *, compiled: bool = False) -> tuple[Program, tuple[Check, ...]]:
    """Apply the passes, and hand out what assertions find if that is wanted.

    Args:
        program: what to lower.
        returns_checks: whether the file gives a truth value for each assertion.
        compiled: whether a compiler makes code of the whole program.

    Raises:
        ExportError: a pass has no form for something in the program.
    """
    with doing("lowering the program"):
        passes = CHECKED if returns_checks else pipeline.WHOLE_GRAPH
        lowered = pipeline.run(program, pipeline.for_a_compiler(passes) if compiled else passes)
        return hand_out_checks(lowered) if returns_checks else (lowered, ())


def _dims(program: Program, signature: Signature) -> list[tuple[Dim | None, ...]]:
    """For each tensor that an artefact takes its dimensions with a name; () where none has."""
    return [tuple(program.dims.get(taken.source, ())) for taken in signature.taken]
