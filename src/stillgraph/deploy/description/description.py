"""What a file says of a program besides its operations, as JSON: how it is called, and what it gives."""

from __future__ import annotations

import logging
from typing import Any, Protocol

from stillgraph.core.diagnostics import load_error
from stillgraph.core.logs import log
from stillgraph.deploy.description.constants import is_atom
from stillgraph.deploy.description.entries import Entry
from stillgraph.deploy.description.preconditions import encode_preconditions
from stillgraph.deploy.description.signature import Signature, Taken, is_argument, objects_of
from stillgraph.deploy.description.structure import encode_result, encode_source
from stillgraph.passes.checks import Check
from stillgraph.passes.exceptions.printing import prints
from stillgraph.program.guards import ConstantGuard, TensorGuard
from stillgraph.program.program import Program

Json = Any


class Made(Protocol):
    """What was made of a program: see `exported_program.Exported`."""

    @property
    def signature(self) -> Signature: ...
    @property
    def kinds(self) -> tuple[type | None, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def checks(self) -> tuple[Check, ...]: ...


def describe(entry: Entry, exported: Made) -> dict[str, Json]:
    """The description of a program; `loaded.LoadedProgram` reads it.

    Args:
        entry: its program with a result of one structure.
        exported: what was made of the program.
    """
    program = entry.program
    return {
        "name": program.name,
        "receiver": entry.receiver,
        "parameters": entry.parameters,
        "inputs": [_encode_taken(program, taken) for taken in exported.signature.taken],
        "arguments": [*range(entry.receiver, len(entry.args)), *entry.kwargs],
        "constants": _constants(program),
        "conditions": encode_preconditions(program, entry.no_leaves),
        "kinds": [kind.__name__ if kind is not None else None for kind in exported.kinds],
        "result": encode_result(program.result, entry.receiver),
        "checks": [[check.name, check.error] for check in exported.checks],
        "notes": list(_notes(entry, exported)),
    }


def check_version(found: Any, newest: int, oldest: int = 1) -> None:
    """Refuse a description that is not of a version known here.

    Args:
        found: the version that the file says.
        newest, oldest: those that can be read.

    Raises:
        LoadError: it is newer or older, or no number.
    """
    if not isinstance(found, int):
        raise load_error("it does not say which version of the format it has")
    if found > newest:
        message = f"a newer stillgraph saved it (format {found}; this one reads up to {newest})"
        raise load_error(message, "Upgrade stillgraph, or save the program anew with this version.")
    if found < oldest:
        message = f"an older stillgraph saved it (format {found}; this one reads {oldest} and later)"
        raise load_error(message, "Save the program anew with this version.")


def _notes(entry: Entry, exported: Made) -> tuple[str, ...]:
    program = entry.program
    notes = (*entry.notes, *exported.notes, *(("a loaded program does not print",) if prints(program) else ()))
    for note in notes:
        log("deploy", "note", f"{program.name}: {note}", logging.WARNING, program=program.name)
    return notes


def _encode_taken(program: Program, taken: Taken) -> list[Any]:
    """Where a tensor of the call is found, and what it has to be: dtype, sizes with None for any, named dimensions."""
    (guard,) = [g for g in program.guards if isinstance(g, TensorGuard) and g.source == taken.source]
    dims = [dim and [dim.name, dim.min, dim.max] for dim in program.dims.get(taken.source, [None] * len(guard.shape))]
    return [encode_source(taken.source), str(guard.dtype).removeprefix("torch."), list(guard.shape), dims]


def _constants(program: Program) -> list[Any]:
    """The Python values among the arguments that the program was made for."""
    found = []
    objects = objects_of(program)
    for guard in program.guards:
        if isinstance(guard, ConstantGuard) and is_argument(guard.source, objects):
            source = encode_source(guard.source)
            if source is not None and is_atom(guard.value):
                found.append([source, guard.value])
    return found
