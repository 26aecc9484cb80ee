"""AOTInductor packages: programs compiled to libraries, one or several in a file."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from stillgraph.core.diagnostics import LoadError, load_error, refuse
from stillgraph.core.progress import doing
from stillgraph.deploy.aoti.inductor import (
    Model,
    compiled,
    crashes,
    is_inlined,
    laid_out,
    order_of,
    read_package,
    write_package,
)
from stillgraph.deploy.aoti.padding import pad_written
from stillgraph.deploy.description.description import check_version, describe
from stillgraph.deploy.description.entries import Entry
from stillgraph.deploy.description.left_behind import check_left_to_others
from stillgraph.deploy.description.one_structure import one_structure
from stillgraph.deploy.description.signature import values_of
from stillgraph.deploy.exporting.checks import results_of
from stillgraph.deploy.exporting.exported_program import Exported, exported_entry
from stillgraph.deploy.exporting.loaded import LoadedProgram, LoadedPrograms
from stillgraph.deploy.exporting.locating import line_of, located
from stillgraph.deploy.exporting.shared_state import shared_places
from stillgraph.deploy.exporting.torch_export import summary
from stillgraph.deploy.exporting.verification import check_artefact, check_sizes
from stillgraph.deploy.pt2.damage import check_sums
from stillgraph.passes import pipeline
from stillgraph.passes.kernels.hiding import GROWTH, OPEN_ATTENTION, OPEN_SEQUENCE, obstacle_to_inference, write_out
from stillgraph.program.graphs import regions

_VERSION = 3
_HINTS = {
    GROWTH: (
        "Give max_iterations, write into a tensor of the largest size (index_copy, or t[i] = x), or save as .pt2 or "
        ".onnx."
    ),
    OPEN_ATTENTION: "Call eval() first: dropout is in the way.",
    OPEN_SEQUENCE: "Take the steps in a loop over a cell (torch.nn.LSTMCell), or save as .pt2 or .onnx.",
}
_ALONE = "model"
"""The name under which `torch._inductor.aoti_load_package` looks for a model."""
_FOLDER = "/data/aotinductor/"
_DAMAGED = (LookupError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True)
class _Compiling:
    """An entry on its way into a package."""

    entry: Entry
    exported: Exported
    program: ExportedProgram


def write_aoti(entries: Mapping[str, Entry] | Entry, path: Path) -> None:
    """Compile programs, write the package and check what was written.

    Args:
        entries: one program, or several by name.
        path: of the file.

    Raises:
        ExportError: sizes are only known in the run, entries have state in common
            that torch cannot share, torch cannot compile a program, or the package crashes or differs from it.
        OSError: the file cannot be written.
    """
    named = {"": entries} if isinstance(entries, Entry) else entries
    made = {name: _exported(entry) for name, entry in named.items()}
    check_left_to_others(named, {name: each.exported.left for name, each in made.items()})
    shared = _shared_state(made)
    models = {name: name if len(made) > 1 else _ALONE for name in made}
    files = {}
    for name, each in made.items():
        described = {"entry": name, "model": models[name], **_memory(each), **describe(each.entry, each.exported)}
        text = json.dumps({"version": _VERSION, "entry": described, "order": list(named), "shared": shared})
        files[models[name]] = _compiled(each, text)
    write_package(path, files, [_value(made[name].program, place) for (name, place), *_ in shared])
    loaded, _ = read_package(path)
    for name, each in made.items():
        with located(each.entry.program):
            model = loaded[models[name]]
            _expect(model, _memory(each))
            _check_known(model, name, shared)
            _check_survives(each, path, models[name])
            _check(each, model)


def _memory(each: _Compiling) -> dict[str, Any]:
    """How the tensors of a call lie in memory, which the code relies on, and the positions of those that it writes."""
    examples, _ = each.program.example_inputs
    signature = each.program.graph_signature
    written = [signature.user_inputs.index(name) for name in signature.user_inputs_to_mutate.values()]
    return {"orders": [order_of(example) for example in examples], "written": written}


def _expect(model: Model, described: dict[str, Any]) -> None:
    model.expect(described.get("orders"), described.get("written", ()))


def _exported(entry: Entry) -> _Compiling:
    with located(entry.program):
        entry = replace(entry, program=one_structure(entry.program))
        _check_sizes(entry)
        exported = exported_entry(entry, inferred_anew=True)
        pad_written(exported.program)
    return _Compiling(entry, exported, exported.program)


def _compiled(each: _Compiling, text: str) -> list[Any]:
    with located(each.entry.program), doing("compiling with AOTInductor"):
        try:
            return compiled(each.program, text)
        except Exception as error:  # of any kind: Inductor's, the compiler's, and of what both are built on
            location = line_of(each.exported.module, error)
            hint = "Save as .pt2, which runs the same program without a compiler."
            raise refuse("SG402", f"AOTInductor: {summary(error)}", location=location, hint=hint) from error


def _check_survives(each: _Compiling, path: Path, name: str) -> None:
    """Refuse a package that crashes: torch's code for branches that give tensors of several sizes may."""
    if len([*regions(each.program.graph_module)]) == 1:
        return
    examples, _ = each.program.example_inputs
    given = [laid_out(example.detach(), order_of(example)) for example in examples]
    if crashes(path, name, given, each.entry.time_limit):
        hint = "Write into a tensor of the largest size (index_copy, or t[i] = x), or save as .pt2 or .onnx."
        raise refuse("SG402", "the code that torch compiles for it crashes on the example", hint=hint)


def _check(each: _Compiling, model: Model) -> None:
    entry, exported = each.entry, each.exported

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = [t.detach().clone() for t in values_of(exported.signature, args, kwargs)]

        def run() -> list[torch.Tensor]:
            return results_of(model(*given), exported.checks)

        check_artefact(entry.program, run, args, kwargs, seconds=entry.time_limit)

    check(entry.args, entry.kwargs)
    if not _written(each.program):  # else it has changed, and nothing puts it back
        check_sizes(entry, check)


def _check_sizes(entry: Entry) -> None:
    obstacle = obstacle_to_inference(write_out(pipeline.run(entry.program)))
    if obstacle is not None:
        message = f"{obstacle.reason}, and AOTInductor infers every size before it compiles"
        raise refuse("SG402", message, location=obstacle.location, hint=_HINTS[obstacle.reason])


def _written(program: ExportedProgram) -> list[str]:
    return list(program.graph_signature.buffers_to_mutate.values())


def _value(program: ExportedProgram, name: str) -> torch.Tensor:
    value = program.state_dict.get(name, program.constants.get(name))
    assert isinstance(value, torch.Tensor), "a buffer is a tensor"
    return value


# ---- state of several entries
_Places = list[list[list[str]]]


def _shared_state(made: Mapping[str, _Compiling]) -> _Places:
    """The tensors that several entries have in common and one of them writes: for each its names in the entries."""
    shared = []
    for same in shared_places({name: each.exported for name, each in made.items()}):
        writers = [name for name, place in same if place in _written(made[name].program)]
        if not writers:
            continue
        for name, place in same:
            value = _value(made[name].program, place)
            if name not in writers and (is_inlined(value) or value.numel() == 1):
                with located(made[name].entry.program):
                    raise _refused(name, place, writers[0])
        shared.append(same)
    return shared


def _check_known(model: Model, name: str, shared: _Places) -> None:
    """Refuse state that the compiler has made a part of the code."""
    for same in shared:
        lost = model.lacks(place for entry, place in same if entry == name)
        if lost:
            raise _refused(name, lost[0], next(entry for entry, _ in same if entry != name))


def _refused(reader: str, place: str, writer: str) -> BaseException:
    message = f"{reader!r} reads {place!r}, which {writer!r} writes, and AOTInductor makes constants of small tensors"
    hint = "Keep it in a tensor of more than 8 elements, or save as .pt2, where entries share all state."
    return refuse("SG402", message, hint=hint)


# ---- loading
def is_package(path: Path) -> bool:
    """Whether a file is an archive with compiled code, by its list of contents."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(_FOLDER in f"/{name}" for name in archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):  # whatever it is, it is not ours
        return False


def load_aoti(path: Path, *, native: bool) -> LoadedProgram | LoadedPrograms:
    """Load a package.

    Args:
        path: of the file.
        native: whether its compiled code may run.

    Raises:
        LoadError: it may not, or the package was not saved here or is damaged.
    """
    if not native:
        hint = f"If you trust it, load({path.name!r}, native=True)."
        message = f"{path.name!r} cannot be loaded: it holds compiled code, which can do anything once it is loaded"
        raise load_error(message, hint)
    try:
        with path.open("rb") as file:
            check_sums(file)
        models, state = read_package(path)
        texts = [text for model in models.values() if (text := model.text()) is not None]
    except Exception as error:  # of any kind: torch's reader is not made for damaged files
        raise load_error(f"{path.name!r} cannot be loaded: it is damaged ({summary(error)})") from error
    if not texts:
        hint = "Open it with torch._inductor.aoti_load_package."
        raise load_error(f"{path.name!r} cannot be loaded: it was not saved by stillgraph", hint)
    try:
        return _loaded(models, state, [json.loads(text) for text in texts])
    except LoadError as error:
        raise LoadError(error.reason, f"{path.name!r} cannot be loaded: {error.message}", error.hint) from error
    except _DAMAGED as error:
        raise load_error(f"{path.name!r} cannot be loaded: it is damaged ({summary(error)})") from error


def _loaded(
    models: Mapping[str, Model], state: list[torch.Tensor], texts: list[dict[str, Any]]
) -> LoadedProgram | LoadedPrograms:
    for text in texts:
        check_version(text["version"], _VERSION)
    described = {text["entry"].get("entry", ""): text["entry"] for text in texts}
    named = {name: models[entry.get("model", _ALONE)] for name, entry in described.items()}
    for name, model in named.items():
        _expect(model, described[name])
        places = zip(texts[0].get("shared", ()), state)
        mine = {place: tensor for same, tensor in places for entry, place in same if entry == name}
        if mine:
            model.use(mine)
    if "" in named:
        return LoadedProgram(named[""], described[""])
    return LoadedPrograms({name: LoadedProgram(named[name], described[name]) for name in texts[0]["order"]})
