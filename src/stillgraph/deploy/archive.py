"""Saving a program to a file and loading it back.

The format follows from the suffix. A file appears only when it is whole and gives what the program gives: it is written
beside its final place, read back, run on the example inputs, compared with the program, and then moved.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stillgraph.deploy.aoti.aoti import is_package, load_aoti, write_aoti
from stillgraph.deploy.aoti.inductor import check_compiler
from stillgraph.deploy.description.binding import encode_parameters
from stillgraph.deploy.description.entries import Entry, check_names
from stillgraph.deploy.description.other_sizes import Served
from stillgraph.deploy.description.wishes import DEFAULT, Wishes
from stillgraph.deploy.exporting.loaded import LoadedProgram, LoadedPrograms
from stillgraph.deploy.exporting.locating import located
from stillgraph.deploy.exporting.shared_state import check_state
from stillgraph.deploy.onnx.onnx_checksum import weights_beside
from stillgraph.passes.exceptions.texts import check_texts
from stillgraph.program.program import Program
from stillgraph.program.sources import Source
from stillgraph.runtime.native.backends import resolve_backend

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_ONE_AT_A_TIME = threading.RLock()
"""What torch's exporters exchange while they trace is the process's; so is what its readers silence."""


def save_program(
    program: Program,
    path: str | os.PathLike[str],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    format: str | None = None,
    *,
    function: Any = None,
    has_receiver: bool = False,
    control_flow: str | None = None,
    wishes: Wishes = DEFAULT,
    served: tuple[Served, ...] = (),
    no_leaves: tuple[Source, ...] = (),
) -> None:
    """Save a program.

    Args:
        program: what to save.
        path: of the file; an existing one is replaced.
        args, kwargs: the example call the program was captured from, a method's receiver first.
        format: ``"pt2"``, ``"aoti"``, ``"onnx"`` or ``"python"``; by default the suffix of ``path``.
        function: what was called, whose parameters a loaded program takes; a module's ``forward``.
        has_receiver: whether ``args[0]`` is the receiver; callers of a loaded program leave it out.
        control_flow: of Python source: ``"torch"``, ``"python"``, or None for what says the same.
        wishes: what to make of printing, assertions and loops.
        served: sizes that the program serves besides the example's.
        no_leaves: places of tensors that may be no leaves that require gradients.

    Raises:
        ValueError: the format is not known, or would replace the user's source; or a wish is not to be had.
        OSError: the file cannot be written; the text is one line.
        ExportError: the format cannot express the program, or what was written differs from it.
    """
    target = Path(path)
    write = check_destination(path, format, control_flow)
    wishes.check(write)
    if wishes.external_data:
        _check_belongs(weights_beside(target), target)
    receiver = 1 if has_receiver else 0
    if write == "python":
        from stillgraph.deploy.python.write import write_python

        with _ONE_AT_A_TIME:
            call = args, kwargs or {}
            write_python(program, target, *call, function, receiver, control_flow, wishes.time_limit, served)
        return
    wishes.check_lines([program])
    entry = entry_of(program, args, kwargs, function=function, has_receiver=has_receiver, served=served)
    entry = replace(entry, no_leaves=no_leaves)
    with _ONE_AT_A_TIME, beside(target) as temporary:
        entry = _settled(entry, wishes)
        if write == "onnx":
            from stillgraph.deploy.onnx.onnx import write_onnx

            with located(program):
                write_onnx(entry, temporary, wishes)
        elif write == "aoti":
            write_aoti(entry, temporary)
        else:
            from stillgraph.deploy.pt2.pt2 import write_pt2

            write_pt2(entry, temporary)


def made_in_memory(entry: Entry) -> tuple[ExportedProgram, dict[str, Any]]:
    """What a ``.pt2`` of a program would hold, and its description: see `pt2.in_memory`."""
    from stillgraph.deploy.pt2.pt2 import in_memory

    with _ONE_AT_A_TIME:
        return in_memory(_settled(entry, DEFAULT))


def entry_of(
    program: Program,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    function: Any = None,
    has_receiver: bool = False,
    served: tuple[Served, ...] = (),
) -> Entry:
    """A program with its example call; the arguments are those of `save_program`."""
    parameters = None if function is None else encode_parameters(function)
    return Entry(program, args, kwargs or {}, parameters, 1 if has_receiver else 0, served=served)


def _settled(entry: Entry, wishes: Wishes) -> Entry:
    """An entry with the program that is to be saved, and what to say of it."""
    with located(entry.program):
        check_texts(entry.program)
        program, notes = wishes.settle(entry.program)
    checks = wishes.assertions == "return"
    served = () if wishes.max_iterations is not None else entry.served  # a bound is one for the example
    entry = replace(entry, program=program, notes=notes, returns_checks=checks, served=served)
    return replace(entry, time_limit=wishes.time_limit)


def save_entries(
    entries: Mapping[str, Entry],
    path: str | os.PathLike[str],
    format: str | None = None,
    wishes: Wishes = DEFAULT,
) -> None:
    """Save several programs in one file.

    Args:
        entries: by name; see `entries.check_names`.
        path: of the file; an existing one is replaced.
        format: ``"pt2"`` or ``"aoti"``, by default the suffix of ``path``.
        wishes: what to make of printing, assertions and loops.

    Raises:
        ValueError: a name cannot be one, or the format holds one program alone.
        OSError: the file cannot be written; the text is one line.
        ExportError: the format cannot express a program, or what was written differs from it.
    """
    check_names(entries)
    written = check_destination(path, format)
    check_holds_several(written)
    check_state(entries)
    wishes.check_lines(entry.program for entry in entries.values())
    from stillgraph.deploy.pt2.pt2 import write_pt2

    with _ONE_AT_A_TIME, beside(Path(path)) as temporary:
        write = write_pt2 if written == "pt2" else write_aoti
        write({name: _settled(entry, wishes) for name, entry in entries.items()}, temporary)


def check_holds_several(format: str) -> None:
    """Refuse a format that has one program in a file."""
    if format not in ("pt2", "aoti"):
        raise ValueError(f"several entries go into a .pt2 or .aoti.pt2 file; as {format}, save each by itself")


def check_destination(
    path: str | os.PathLike[str], format: str | None = None, control_flow: str | None = None
) -> str:
    """The format that a file will have: to be asked before any work is done for it.

    Raises:
        ValueError: the format or style is not known, or the format is another than that of the path's suffix.
        ImportError: what the format needs is not installed.
        OSError: the file cannot be written.
    """
    target = Path(path)
    name = _writer(target, format)
    if control_flow not in (None, "torch", "python"):
        raise ValueError(f"control_flow is 'torch' or 'python', not {control_flow!r}")
    if control_flow is not None and name != "python":
        raise ValueError(f"control_flow is a choice for Python source, not for .{name}")
    _check_place(target)
    return name


def load(
    path: str | os.PathLike[str], *, native: bool = False, backend: str | Callable[..., Any] = "eager"
) -> LoadedProgram | LoadedPrograms:
    """Load a saved ``.pt2``, or an ``.onnx``, which runs in onnxruntime.

    Args:
        path: of the file.
        native: whether compiled code in it may run, which AOTInductor's packages are made of.
        backend: compiles what is between the branches and loops of a ``.pt2``.

    Returns:
        A function of the original's arguments; it gives the original's result structure, Python numbers included. Of a
        file with several entries, an object with one such function for each.

    Raises:
        LoadError: a ValueError: the file was not saved here, is damaged, or could run code.
        ImportError: onnxruntime, which an ``.onnx`` takes, is not installed.
        OSError: there is no such file, or it cannot be read.
        ValueError: no backend has this name, or the file is none that a backend compiles.
    """
    source, compile = Path(path), None if backend == "eager" else resolve_backend(backend)
    if not source.exists():
        raise FileNotFoundError(f"there is no file {str(source)!r}")
    _check_regular(source)
    if source.suffix == ".onnx":
        _refuse_backend(compile, source, "runs in onnxruntime")
        _require("loading an .onnx", "onnxruntime")
        from stillgraph.deploy.onnx.onnx_session import load_onnx

        return load_onnx(source)
    if source.suffix == ".py":
        raise ValueError("load takes .pt2 and .onnx files; import a .py file, it needs torch alone")
    from stillgraph.deploy.pt2.pt2 import load_pt2  # with torch's reader of archives, which loads much of torch

    with _ONE_AT_A_TIME:
        if not is_package(source):
            return load_pt2(source, compile)
        _refuse_backend(compile, source, "is compiled already")
        return load_aoti(source, native=native)


def _refuse_backend(compile: object | None, source: Path, why: str) -> None:
    if compile is not None:
        raise ValueError(f"a backend compiles what is in a .pt2, and {source.name!r} {why}: leave backend out")


def _writer(target: Path, format: str | None) -> str:
    name = (format or target.suffix).removeprefix(".").lower()
    name = "python" if name == "py" else name
    if format is None and target.name.endswith(".aoti.pt2"):
        name = "aoti"
    if name not in ("pt2", "aoti", "onnx", "python"):
        shown = f"the format {format!r}" if format is not None else f"the suffix of {target.name!r}"
        raise ValueError(f"{shown} is not one of .pt2, .aoti.pt2, .onnx, .py")
    of_suffix = _formats_of(target.name)
    if of_suffix and name not in of_suffix:
        message = f"the format {format!r} does not go with the suffix of {target.name!r}, which is for {of_suffix[0]}"
        raise ValueError(message)
    if name == "onnx":
        _require("saving as .onnx", "onnx", "onnxscript", "onnxruntime")
    if name == "aoti":
        check_compiler()
    return name


def _require(doing: str, *modules: str) -> None:
    missing = [module for module in modules if not importlib.util.find_spec(module)]
    if missing:
        raise ImportError(f"{doing} needs {', '.join(missing)}: pip install 'stillgraph[onnx]'")


_SUFFIXES = {".aoti.pt2": ("aoti",), ".pt2": ("pt2", "aoti"), ".onnx": ("onnx",), ".py": ("python",)}
"""What files of a suffix may be, first what they are by default; the longest suffix counts."""


def _formats_of(name: str) -> tuple[str, ...]:
    return next((formats for suffix, formats in _SUFFIXES.items() if name.lower().endswith(suffix)), ())


def _check_place(target: Path) -> None:
    folder = target.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {str(folder)!r} to save {target.name!r} in")
    if target.exists():
        _check_regular(target)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"no permission to write in {str(folder)!r}")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"no permission to write {str(target)!r}")


def _check_regular(path: Path) -> None:
    """Refuse what is there and holds no file: a device or pipe may never end, and a save would take its place."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder")
    if not path.is_file():
        raise OSError(f"{str(path)!r} is no regular file")


def _check_belongs(path: Path, target: Path) -> None:
    """Refuse to replace a file beside a target that the target does not name as its own."""
    if not os.path.lexists(path):
        return
    _check_regular(path)
    if not (target.is_file() and path.name.encode() in target.read_bytes()):
        message = f"{str(path)!r} is there and does not belong to {target.name!r}: the weights would take its place"
        raise FileExistsError(message)


@contextlib.contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A file that takes the target's place at the end, or vanishes; and so does what is written beside it.

    It has the target's name, in a folder of its own beside the target. If the target is a link, what it leads to is
    replaced. A process that is killed leaves the folder, under a hidden name that no save takes again.
    """
    target = Path(os.path.realpath(target))
    folder = Path(tempfile.mkdtemp(prefix=f".{target.stem[:20]}-", dir=target.parent))
    temporary = folder / target.name
    try:
        yield temporary
        mask = os.umask(0)
        os.umask(mask)
        others = [each for each in folder.iterdir() if each != temporary]
        for other in others:
            _check_belongs(target.parent / other.name, target)
        for written in (*others, temporary):  # the target at the end: it needs the others
            written.chmod(0o666 & ~mask)
            with written.open("rb") as opened:
                os.fsync(opened.fileno())
            os.replace(written, target.parent / written.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
