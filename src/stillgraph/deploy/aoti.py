"""AOTInductor packages, programs compiled to a library: the adapter to torch's compiler and loader of them."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from stillgraph.core.diagnostics import load_error, refuse
from stillgraph.deploy.description import describe
from stillgraph.deploy.entries import Entry
from stillgraph.deploy.exported_program import to_exported_program
from stillgraph.deploy.loaded import LoadedProgram
from stillgraph.deploy.locating import line_of, located
from stillgraph.deploy.one_structure import one_structure
from stillgraph.deploy.signature import values_of
from stillgraph.deploy.torch_export import functional, quiet, summary
from stillgraph.deploy.verification import check_artefact
from stillgraph.passes import pipeline
from stillgraph.passes.growing import grows

_KEY = "stillgraph"
_LOGGER = "torch._inductor"
_FOLDER = "/data/aotinductor/"


def check_compiler() -> None:
    """Refuse to begin where there is no C++ compiler.

    Raises:
        RuntimeError: torch finds none.
    """
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        raise RuntimeError("saving as aoti needs a C++ compiler: install g++, or name one in CXX") from None


def write_aoti(entry: Entry, path: Path) -> None:
    """Compile a program, write the package and check what was written.

    Args:
        entry: the program.
        path: of the file.

    Raises:
        ExportError: a loop carries a tensor that grows, the program writes to a number, torch cannot compile it, or
            the package differs from it.
    """
    with located(entry.program):
        entry = replace(entry, program=one_structure(entry.program))
        _check_sizes(entry)
        exported = to_exported_program(entry.program, entry.args, entry.kwargs)
        program = functional(exported.program.graph_module, exported.program, deepest=None)
        _check_state(program)
        text = json.dumps({"version": 1, "entry": describe(entry, exported)})
        try:
            _compile(program, path, text)
        except Exception as error:  # of any kind: Inductor's, the compiler's, and of what both are built on
            location = line_of(program.graph_module, error)
            hint = "Save as .pt2, which runs the same program without a compiler."
            raise refuse("SG402", f"AOTInductor: {summary(error)}", location=location, hint=hint) from error
        module = _load(path)
        given = [t.detach().clone() for t in values_of(exported.signature, entry.args, entry.kwargs)]
        check_artefact(entry.program, lambda: module(*given), entry.args, entry.kwargs)


def _check_sizes(entry: Entry) -> None:
    if grows(pipeline.run(entry.program)):
        message = "a loop carries a tensor whose shape changes, and AOTInductor wants it to keep its sizes"
        hint = (
            "Give max_iterations, write into a tensor of the largest size (index_copy, or t[i] = x), or save as .pt2 "
            "or .onnx."
        )
        raise refuse("SG402", message, hint=hint)


def _check_state(program: torch.export.ExportedProgram) -> None:
    """Refuse state of one element: in torch 2.13 a package takes it for a constant, and every call begins anew."""
    for name in program.graph_signature.buffers_to_mutate.values():
        value = program.state_dict.get(name, program.constants.get(name))
        if isinstance(value, torch.Tensor) and value.numel() == 1:
            message = f"the program writes to {name!r}, and AOTInductor keeps no state of a single number"
            raise refuse("SG402", message, hint="Keep it in a tensor of two or more elements, or save as .pt2.")


def _compile(program: torch.export.ExportedProgram, path: Path, text: str) -> None:
    """Torch wants a package's name to end in .pt2, whatever ours does."""
    with tempfile.TemporaryDirectory(prefix=".aoti-", dir=path.parent) as folder, quiet(_LOGGER), torch.no_grad():
        made = Path(folder) / "model.pt2"
        configs = {"aot_inductor.metadata": {_KEY: text}}
        torch._inductor.aoti_compile_and_package(program, package_path=str(made), inductor_configs=configs)
        os.replace(made, path)


# ---- loading
def is_package(path: Path) -> bool:
    """Whether a file is an archive with compiled code, by its list of contents."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(_FOLDER in f"/{name}" for name in archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):  # whatever it is, it is not ours
        return False


def load_aoti(path: Path, *, native: bool) -> LoadedProgram:
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
        module = _load(path)
        text = module.get_metadata().get(_KEY)
    except Exception as error:
        raise load_error(f"{path.name!r} cannot be loaded: it is damaged ({summary(error)})") from error
    if text is None:
        hint = "Open it with torch._inductor.aoti_load_package."
        raise load_error(f"{path.name!r} cannot be loaded: it was not saved by stillgraph", hint)
    return LoadedProgram(module, json.loads(text)["entry"])


def _load(path: Path) -> Any:
    """Torch's callable for a package; it wants a name that ends in .pt2."""
    with tempfile.TemporaryDirectory(prefix="stillgraph-") as folder, quiet(_LOGGER):
        named = path if path.suffix == ".pt2" else Path(folder) / "model.pt2"
        if named is not path:
            named.symlink_to(path.absolute())
        return torch._inductor.aoti_load_package(str(named))
