"""`.pt2`: torch's archive of exported programs, with the structure of arguments and results beside them as JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from stillgraph.core.diagnostics import LoadError, load_error, refuse
from stillgraph.core.progress import doing
from stillgraph.deploy.description.description import check_version, describe
from stillgraph.deploy.description.entries import Entry
from stillgraph.deploy.description.left_behind import check_left_to_others
from stillgraph.deploy.description.one_structure import one_structure
from stillgraph.deploy.description.signature import values_of
from stillgraph.deploy.exporting.checks import results_of
from stillgraph.deploy.exporting.exported_program import Exported, exported_entry
from stillgraph.deploy.exporting.loaded import LoadedProgram, LoadedPrograms
from stillgraph.deploy.exporting.locating import line_of, located, operation_in
from stillgraph.deploy.exporting.shared_state import shared_places
from stillgraph.deploy.exporting.torch_export import quiet, summary
from stillgraph.deploy.exporting.verification import check_artefact, check_sizes
from stillgraph.deploy.pt2.native import native_call
from stillgraph.deploy.pt2.torch_archive import ALONE, read, write
from stillgraph.runtime.native.lazy_region import Compile

_STRUCTURE = "stillgraph.json"
_VERSION = 4
_DAMAGED = (LookupError, TypeError, ValueError, AttributeError, AssertionError, RuntimeError)
"""What a wrong text beside the programs makes its readers raise."""


def write_pt2(entries: Mapping[str, Entry] | Entry, path: Path) -> None:
    """Write programs and check what was written.

    Args:
        entries: one program, or several by name.
        path: of the file.

    Raises:
        ExportError: `torch.export` cannot express a program, or the file differs from it.
        OSError: the file cannot be written.
    """
    named = {"": entries} if isinstance(entries, Entry) else entries
    named = {name: _settled(entry) for name, entry in named.items()}
    models = {name: name if len(named) > 1 else ALONE for name in named}
    exported: dict[str, Exported] = {}
    described: list[dict[str, Any]] = []
    for name, entry in named.items():
        with located(entry.program):
            exported[name] = exported_entry(entry)
            described.append({"entry": name, "model": models[name], **describe(entry, exported[name])})
    check_left_to_others(named, {name: made.left for name, made in exported.items()})
    structure = {
        "version": _VERSION,
        "entries": described,
        "shared": shared_places(exported),
    }
    texts = {_STRUCTURE: json.dumps(structure)}
    with doing("writing the file"):
        _write(path, {models[name]: made for name, made in exported.items()}, texts)
    with doing("reading it back"), path.open("rb") as file:
        written, _ = read(file)
    for name, entry in named.items():
        with located(entry.program):
            _check(entry, exported[name], written[models[name]])


def in_memory(entry: Entry) -> tuple[ExportedProgram, dict[str, Any]]:
    """What a file of one program would hold, checked like a file, and its description.

    Raises:
        ExportError: as `write_pt2`.
    """
    entry = _settled(entry)
    with located(entry.program):
        exported = exported_entry(entry)
        check_left_to_others({"": entry}, {"": exported.left})
        _check(entry, exported, exported.program)
        return exported.program, describe(entry, exported)


def called_in_memory(program: ExportedProgram, structure: dict[str, Any]) -> LoadedProgram:
    """What `in_memory` gives, to be called like the original; the tensors are its own."""
    with quiet():
        return _called(copy.deepcopy(_module(program)), structure, None)


def _settled(entry: Entry) -> Entry:
    with located(entry.program):
        return replace(entry, program=one_structure(entry.program))


def _write(path: Path, exported: Mapping[str, Exported], texts: Mapping[str, str]) -> None:
    try:
        write(path, {name: made.program for name, made in exported.items()}, texts)
    except OSError:
        raise
    except Exception as error:  # of any kind: torch's writer does not know of every operation and value
        lines = [line_of(made.module, error) for made in exported.values()]
        location = next((line for line in lines if line is not None), None)
        what = f"{operation} in a file" if (operation := operation_in(error)) else "the program in a file"
        hint = "Write it with operations on plain tensors, or save as .py."
        message = f"torch.export has no form for {what} ({summary(error)})"
        raise refuse("SG402", message, location=location, hint=hint) from error


def _check(entry: Entry, exported: Exported, written: ExportedProgram) -> None:
    module = _module(written)

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with quiet():  # of what copies a pytree's structure
            fresh = copy.deepcopy(module) if written.graph_signature.buffers_to_mutate else module
        given = [t.detach().clone() for t in values_of(exported.signature, args, kwargs)]
        arguments = dict(zip((taken.name for taken in exported.signature.taken), given, strict=True))

        def run() -> list[torch.Tensor]:
            """The results, and then what the call leaves in its arguments and in the state."""
            results = results_of(fresh(*given), exported.checks)
            left = (arguments[name] if name in arguments else _tensor(fresh, name) for name in exported.kept)
            return [*results, *left]

        check_artefact(entry.program, run, args, kwargs, written=exported.kept, seconds=entry.time_limit)

    check(entry.args, entry.kwargs)
    check_sizes(entry, check)


def load_pt2(path: Path, compile: Compile | None) -> LoadedProgram | LoadedPrograms:
    """Load a `.pt2`.

    Args:
        path: of the file.
        compile: the backend for what is between branches and loops; None runs PyTorch's operators as they are.

    Raises:
        LoadError: the file is damaged, is no archive that was saved here, or could run code.
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            programs, texts = read(file)
        if _STRUCTURE not in texts:
            raise load_error("it was not saved by stillgraph", "Open it with torch.export.load, if you trust it.")
        return _loaded(programs, json.loads(texts[_STRUCTURE]), compile)
    except LoadError as error:
        raise LoadError(error.reason, f"{path.name!r} cannot be loaded: {error.message}", error.hint) from error
    except _DAMAGED as error:
        raise load_error(f"{path.name!r} cannot be loaded: it is damaged ({summary(error)})") from error


def _loaded(
    programs: Mapping[str, ExportedProgram], structure: Any, compile: Compile | None
) -> LoadedProgram | LoadedPrograms:
    check_version(structure["version"], _VERSION, oldest=2)
    modules = {each["entry"]: _module(programs[each["model"]]) for each in structure["entries"]}
    for same in structure["shared"]:
        _share(modules, same)
    loaded = {each["entry"]: _called(modules[each["entry"]], each, compile) for each in structure["entries"]}
    return loaded[""] if "" in loaded else LoadedPrograms(loaded)


def _called(module: Any, structure: dict[str, Any], compile: Compile | None) -> LoadedProgram:
    with quiet():  # of what copies a pytree's structure
        run = native_call(module, structure["name"], compile)
    if run is None and compile is not None:
        message = f"no backend compiles {structure['name']}: it has an operator that torch alone runs"
        raise load_error(message, "Leave backend out.")
    return LoadedProgram(module, structure, run)


def _module(program: ExportedProgram) -> torch.nn.Module:
    with quiet():
        return program.module()


def _share(modules: Mapping[str, torch.nn.Module], same: list[list[str]]) -> None:
    """Let modules have one tensor in common: what one writes there, the others read."""
    (first, path), *others = same
    value = _tensor(modules[first], path)
    for name, place in others:
        setattr(_owner(modules[name], place), place.rpartition(".")[2], value)


def _tensor(module: torch.nn.Module, path: str) -> torch.Tensor:
    tensor = getattr(_owner(module, path), path.rpartition(".")[2])
    assert isinstance(tensor, torch.Tensor), "a program owns tensors"
    return tensor


def _owner(module: torch.nn.Module, path: str) -> torch.nn.Module:
    return module.get_submodule(path.rpartition(".")[0])
