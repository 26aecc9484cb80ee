"""Saving and loading: the programs of calls as files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from types import MethodType
from typing import Any

import torch

from stillgraph.api.capturing import captured, specs_of
from stillgraph.api.conventions import SAVE, refuse_unknown
from stillgraph.api.leaf_writes import not_for_leaves, written_with_gradients
from stillgraph.api.open_sizes import of_every_size
from stillgraph.api.static import Static
from stillgraph.core.progress import doing
from stillgraph.deploy.archive import check_destination, check_holds_several, entry_of, save_entries, save_program
from stillgraph.deploy.archive import load as load_program
from stillgraph.deploy.description.entries import Entry, check_names
from stillgraph.deploy.description.wishes import Wishes
from stillgraph.deploy.exporting.shared_state import read_as_constants
from stillgraph.program.facts.module_tables import entered
from stillgraph.program.input_spec import InputSpec, Specs
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Source
from stillgraph.report.progress import showing
from stillgraph.runtime.calls.bound_function import BoundStaticFunction
from stillgraph.runtime.calls.traced import TracedFunction
from stillgraph.runtime.native.tracebacks import presenting
from stillgraph.settings import SETTINGS
from stillgraph.trace.code.compiled import is_compiled
from stillgraph.trace.code.options import Options
from stillgraph.trace.heap.births import without_full_collections


@presenting
@without_full_collections()
def save(
    target: Any,
    path: str | os.PathLike[str],
    *,
    args: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
    kwargs: Mapping[str, Any] | None = None,
    input_spec: Sequence[InputSpec | None] | Mapping[str, Sequence[InputSpec | None]] | None = None,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    format: str | None = None,
    control_flow: str | None = None,
    prints: str = "drop",
    assertions: str = "keep",
    opset: int | None = None,
    max_iterations: int | Mapping[int, int] | None = None,
    time_limit: float | None = None,
    progress: bool | None = None,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    external_data: bool | None = None,
    custom_translation_table: Mapping[Any, Any] | None = None,
    **others: Any,
) -> None:
    """Save a call's program, or those of several calls, as a file that runs without the Python that made it.

    The file appears only after it gave what the programs give on the example arguments.

    Args:
        target: a function, module, static function, traced function or `Program`. Or a dict of such, for one ``.pt2``
            or ``.aoti.pt2`` with an entry for each: ``{"encode": model.encode, "decode": model.decode}``. What they
            share of weights and state is in the file (of a ``.pt2``), and in what `load` gives, once.
        path: ``.pt2``, ``.aoti.pt2`` (compiled by AOTInductor, which wants a C++ compiler), ``.onnx`` or ``.py``. It is
            taken as it is: ``~`` is a folder of that name.
        args, kwargs: example arguments; of several entries, a dict with those of each by its name.
        input_spec: dimensions to leave symbolic; of several entries, a dict as well.
        dynamic_shapes: the same as `torch.export.export` takes it.
        format: ``"pt2"``, ``"aoti"``, ``"onnx"`` or ``"python"``, where the path's suffix does not tell.
        control_flow: of Python source: ``"torch"`` for `torch.cond` and ``while_loop``, ``"python"`` for real ``if``
            and ``while``; by default torch's operators wherever they say the same. With grad mode on, what requires a
            gradient gets one in the file.
        prints: of ``.pt2`` and ``.onnx``: ``"drop"`` what the function prints, logs or warns of, or ``"refuse"``.
        assertions: of ``.pt2`` and ``.onnx``: ``"keep"`` the function's ``assert`` statements, ``"drop"`` them, or
            ``"return"``: the file gives a truth value for each of them, and for each exception that is raised, behind
            its other results, instead of failing. What `load` gives raises the exceptions.
        opset: of ``.onnx``: the version of ONNX's operators; by default that of `torch.onnx`.
        max_iterations: of ``.pt2`` and ``.onnx``: write every loop out as so many iterations, for what runs no
            ``while``; a dict has a number for the loops at each line. A call whose loop takes more fails.
        time_limit: seconds that the program and the file may run on the example arguments, which may be some that a
            loop never ends for; by default there is no bound.
        progress: whether a terminal shows what is being done, from the first second on; by default as
            ``STILLGRAPH_LOG=progress`` says.
        input_names, output_names: of ``.onnx``: names of its inputs and of its results, in order. Those behind the last
            name keep the names of parameters, keys and variables.
        external_data: of ``.onnx``: whether its weights are in a file of their own, ``model.onnx.data`` beside
            ``model.onnx``; by default where they are more than 1 GiB.
        custom_translation_table: of ``.onnx``: by operator (``torch.ops.mine.scale.default``) the onnxscript function
            that is written for it, as `torch.onnx.export` takes it.
        others: refused; the error says what to write for an option of `torch.onnx`, `torch.export` or `torch.jit`.

    Raises:
        CaptureError: the call cannot become one program, or (`ExportError`) the format cannot express it.
        ValueError: the format is unknown, does not go with the path's suffix, or holds no several entries; an entry's
            name cannot be one; the path is that of the user's own source; ``input_spec`` is longer than the arguments;
            or there is no loop at a line of ``max_iterations``.
        TypeError: the arguments of several entries are no dicts, or there is no such option.
        OSError: the file cannot be written.
    """
    refuse_unknown(save, others, SAVE)
    written = check_destination(path, format, control_flow)
    of_onnx = tuple(input_names), tuple(output_names), external_data, custom_translation_table or {}
    wishes = Wishes(prints, assertions, opset, max_iterations, time_limit, *of_onnx)
    wishes.check(written)
    with showing(SETTINGS.progress if progress is None else progress):
        if isinstance(target, Mapping):
            options = {"args": args, "kwargs": kwargs, "input_spec": input_spec, "dynamic_shapes": dynamic_shapes}
            _save_several(target, path, {name: given or {} for name, given in options.items()}, written, wishes)
            return
        given: Any = input_spec
        specs = specs_of(given, dynamic_shapes)
        entry, called = _entry(target, args, dict(kwargs or {}), specs, gradients=written == "python")
        save_program(
            entry.program,
            path,
            entry.args,
            entry.kwargs,
            format,
            function=called,
            has_receiver=bool(entry.receiver),
            control_flow=control_flow,
            wishes=wishes,
            served=entry.served,
            no_leaves=entry.no_leaves,
        )


def _save_several(
    targets: Mapping[str, Any],
    path: str | os.PathLike[str],
    options: Mapping[str, Any],
    written: str,
    wishes: Wishes,
) -> None:
    """``options``: what `save` takes of a call, by name: of each a dict with that of every entry."""
    check_names(targets)
    check_holds_several(written)
    for name, given in options.items():
        if not isinstance(given, Mapping):
            raise TypeError(f"save: {name} of several entries is a dict with those of each entry, not {given!r}")
        unknown = [key for key in given if key not in targets]
        if unknown:
            raise ValueError(f"save: {name} has {unknown[0]!r}, which is no entry")

    def capture(name: str, changing: AbstractSet[Source] = frozenset()) -> Entry:
        given, keywords = options["args"].get(name, ()), dict(options["kwargs"].get(name, {}))
        spec = specs_of(options["input_spec"].get(name), options["dynamic_shapes"].get(name))
        return _entry(targets[name], given, keywords, spec, gradients=False, changing=changing)[0]

    entries = {name: capture(name) for name in targets}
    again = {name: capture(name, sources) for name, sources in read_as_constants(entries).items()}
    save_entries({**entries, **again}, path, written, wishes)


def _entry(
    target: Any,
    args: Any,
    kwargs: dict[str, Any],
    specs: Specs | None,
    *,
    gradients: bool,
    changing: AbstractSet[Source] = frozenset(),
) -> tuple[Entry, Any]:
    """A target's program with its example call, and the function whose parameters it has.

    ``changing`` are places of numbers that differ from call to call.
    """
    arguments = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    if isinstance(target, (Program, TracedFunction)):
        program = target.program if isinstance(target, TracedFunction) else target
        return entry_of_program(program, arguments, kwargs, gradients=gradients), None
    _check_target(target)

    def capture() -> Program:
        return captured(target, arguments, kwargs, specs, None, Options(for_calls=False), changing)

    receiver = _receiver(target)
    with contextlib.nullcontext() if gradients else torch.no_grad():
        program = capture()
        with doing("trying other sizes"):
            program, served = of_every_size(program, target, arguments, kwargs)
    no_leaves = () if gradients else not_for_leaves(program, capture, (*receiver, *arguments), kwargs)
    called = entered(target) if isinstance(target, torch.nn.Module) else target
    call = (*receiver, *arguments)
    entry = entry_of(program, call, kwargs, function=called, has_receiver=bool(receiver), served=served)
    return replace(entry, no_leaves=no_leaves), called


def entry_of_program(
    program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], *, gradients: bool = False
) -> Entry:
    """A program with an example call of it; a module that stands first is left out of later calls.

    ``gradients``: whether what is made of it computes some.

    Raises:
        ValueError: the example lacks an argument.
    """
    _require_arguments(program, args, kwargs)
    entry = entry_of(program, args, kwargs, has_receiver=bool(args) and isinstance(args[0], torch.nn.Module))
    return replace(entry, no_leaves=() if gradients else written_with_gradients(program))


def _require_arguments(program: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse an example call that lacks an argument of the program's.

    Raises:
        ValueError: it does.
    """
    given = {None, *range(len(args)), *kwargs}
    missing = [each.name for each in program.inputs if each.kind == "argument" and _key(each.source) not in given]
    if missing:
        receiver = any(each.kind != "argument" and _key(each.source) == 0 for each in program.inputs)
        example = ", ".join([*(["module"] if receiver else []), *missing])
        comma = "" if ", " in example else ","
        raise ValueError(f"the program takes {', '.join(missing)}; give an example: args=({example}{comma})")


def _key(source: Any) -> int | str | None:
    """The position or name of the argument that a source leads from; None where it leads from something else."""
    while not isinstance(source, Argument) and hasattr(source, "base"):
        source = source.base
    return source.key if isinstance(source, Argument) else None


def _check_target(target: Any) -> None:
    """Refuse what no call can be captured of.

    Raises:
        TypeError: the target is called by nobody, is a class, or was compiled already.
    """
    if isinstance(target, type):
        raise TypeError(f"save takes a function or an instance of {target.__name__}, not the class")
    if not callable(target):
        raise TypeError(f"save takes a function, module, static function or program, not a {type(target).__name__}")
    if is_compiled(target):
        raise TypeError("save takes what torch.compile was given, not what it made: that is compiled for this process")


def _receiver(target: Any) -> tuple[Any, ...]:
    """The object that stands first among a program's arguments: a module, or a method's receiver."""
    while isinstance(target, Static):
        target = target.original
    if isinstance(target, torch.nn.Module):
        return (target,)
    return (target.__self__,) if isinstance(target, (MethodType, BoundStaticFunction)) else ()


def load(
    path: str | os.PathLike[str], *, native: bool = False, backend: str | Callable[..., Any] = "eager"
) -> Any:
    """A callable for a saved ``.pt2`` or ``.onnx``: it takes the original's arguments and returns what it returned.

    Of a file with several entries, an object with a callable for each: ``loaded.encode`` or ``loaded["encode"]``.

    Args:
        path: of the file.
        native: whether compiled code of the file may run: an AOTInductor package is a library, which can do anything.
            Nothing of any other file runs before it is called.
        backend: compiles what is between the branches and loops of a ``.pt2`` at the first call: any ``torch.compile``
            backend, by name or as ``(GraphModule, example_inputs) -> callable``. Branches and loops run as Python's.

    Raises:
        OSError: the file cannot be read.
        ValueError: no backend has this name, or the file is none that a backend compiles.
        LoadError: a ValueError: `save` did not write the file, it is damaged, or loading it could run code.
    """
    return load_program(path, native=native, backend=backend)
