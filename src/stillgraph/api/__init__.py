"""The public functions: the only place that wires front end, runtime and deploy together."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, overload

import torch

from stillgraph.api.captures import Specs, capture_call
from stillgraph.api.open_sizes import of_every_size
from stillgraph.api.partial import NO_WHOLE, Partial, forget, keep, kept_of
from stillgraph.api.static import Static
from stillgraph.core.diagnostics import refusal
from stillgraph.core.faults import is_fault
from stillgraph.core.logs import set_level
from stillgraph.core.raised import line_that_raised
from stillgraph.deploy.archive import check_destination, check_holds_several, entry_of, save_entries, save_program
from stillgraph.deploy.archive import load as load_program
from stillgraph.deploy.description.entries import Entry, check_names
from stillgraph.deploy.description.wishes import Wishes
from stillgraph.deploy.exporting.shared_state import read_as_constants
from stillgraph.operators.torch.torchscript import refuse_module
from stillgraph.program.facts.module_tables import entered
from stillgraph.program.input_spec import Dim, InputSpec
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Source
from stillgraph.report.artefacts import Artefacts
from stillgraph.report.coverage import Coverage
from stillgraph.report.coverage import coverage as summed_up
from stillgraph.runtime.calls.bound_function import BoundStaticFunction
from stillgraph.runtime.calls.static_function import StaticFunction
from stillgraph.runtime.calls.traced import TracedFunction
from stillgraph.runtime.native.native import lower
from stillgraph.runtime.native.tracebacks import presenting
from stillgraph.settings import SETTINGS, enable_to_static, mark_skipped
from stillgraph.trace.capture.tracer import trace as trace_call
from stillgraph.trace.code.compiled import is_compiled
from stillgraph.trace.guards.knowledge import Options


# ---- static functions
@overload
def to_static(
    target: None = None,
    *,
    input_spec: Specs | None = None,
    full_graph: bool = True,
    backend: Any = "inductor",
    unroll_limit: int = 64,
    cache_size: int = 8,
    check: int = 0,
    strict: bool = False,
) -> Callable[[Any], Any]: ...


@overload
def to_static(
    target: Any,
    *,
    input_spec: Specs | None = None,
    full_graph: bool = True,
    backend: Any = "inductor",
    unroll_limit: int = 64,
    cache_size: int = 8,
    check: int = 0,
    strict: bool = False,
) -> Any: ...


def to_static(
    target: Any = None,
    *,
    input_spec: Specs | None = None,
    full_graph: bool = True,
    backend: Any = "inductor",
    unroll_limit: int = 64,
    cache_size: int = 8,
    check: int = 0,
    strict: bool = False,
) -> Any:
    """Make a function or module run as one static program.

    Args:
        target: a function, bound method, callable object, method in a class body, or `torch.nn.Module`. Without it,
            the result is a decorator.
        input_spec: one `InputSpec` (or None) per argument, ``self`` not counted.
        full_graph: the whole call becomes one program, or a `CaptureError` says why not. Otherwise as much as can be
            becomes programs, and Python carries out in between what cannot.
        strict: without a full graph, whether a capture that fails in an unforeseen way raises, rather than that the
            rest of the call is made in plain PyTorch, of which one warning tells.
        backend: any ``torch.compile`` backend, by name or as ``(GraphModule, example_inputs) -> callable``.
        unroll_limit: loops with a known number of iterations are unrolled up to this many.
        cache_size: how many programs are kept.
        check: how many calls are compared with eager PyTorch before they are made; if any are, so is the first call of
            every program. It is for full graphs. Such a call raises a `CheckError` where they differ, and nothing of
            it has happened then.

    Returns:
        A static function; a module is returned itself, its ``forward`` replaced.

    Raises:
        CaptureError: the target is a module that TorchScript compiled, and is to be a full graph.
        TypeError: the target is not callable, a class or what ``torch.compile`` made; an option has the wrong type.
        ValueError: an option is out of range, or does not go with ``full_graph``.
    """
    if target is None:
        return functools.partial(
            to_static,
            input_spec=input_spec,
            full_graph=full_graph,
            backend=backend,
            unroll_limit=unroll_limit,
            cache_size=cache_size,
            check=check,
            strict=strict,
        )
    for option, value in (("full_graph", full_graph), ("strict", strict)):
        if not isinstance(value, bool):
            raise TypeError(f"to_static: {option} is True or False, not {value!r}")
    if strict and full_graph:
        raise ValueError("to_static: strict is for full_graph=False; a full graph is strict anyway")
    if not isinstance(unroll_limit, int) or unroll_limit < 0:
        raise ValueError(f"to_static: unroll_limit is a number of iterations, not {unroll_limit!r}")
    if not isinstance(cache_size, int):
        raise TypeError(f"to_static: cache_size is a number of programs, not {cache_size!r}")
    if not isinstance(check, int) or isinstance(check, bool) or check < 0:
        raise TypeError(f"to_static: check is a number of calls, not {check!r}")
    if check and not full_graph:
        raise ValueError(f"to_static: check is for full graphs. {NO_WHOLE}")
    _check_spec(input_spec)
    if isinstance(target, type):
        raise TypeError("to_static takes a function or an instance, not a class; decorate its methods")
    if is_compiled(target):
        raise TypeError('to_static takes what torch.compile was given, not what it made; backend="inductor" compiles')
    options = Options(unroll_limit)
    kind = Static if full_graph else functools.partial(Partial, strict=strict)
    make = functools.partial(
        kind, input_spec=input_spec, backend=backend, options=options, cache_size=cache_size, check=check
    )
    if isinstance(target, torch.nn.Module):
        if full_graph and isinstance(target, torch.jit.ScriptModule):
            raise refuse_module(target)
        return _static_module(target, make)
    if isinstance(target, (MethodType, BoundStaticFunction)):
        return BoundStaticFunction(make(target.__func__), target.__self__)
    return make(target)


def symbolic_trace(target: Any, *, backend: Any = "eager", cache_size: int = 8, strict: bool = False) -> Any:
    """Capture as much as possible of any Python function, and leave the rest to Python.

    As ``to_static(target, full_graph=False)``. It may be called again and again for one function or module, as training
    loops do: what was captured is kept with it (Paddle's ``symbolic_trace``).

    Args:
        target: a function, bound method, or `torch.nn.Module`.
        backend: any ``torch.compile`` backend, by name or as ``(GraphModule, example_inputs) -> callable``.
        cache_size: how many programs are kept of each segment.
        strict: whether a capture that fails in an unforeseen way raises.

    Returns:
        A static function; a module is returned itself, its ``forward`` replaced.

    Raises:
        TypeError: the target is not callable, or is what ``torch.compile`` made.
    """
    options: Any = {"backend": backend, "cache_size": cache_size, "strict": strict}
    known = kept_of(target)
    if known is not None and known.is_made_with(**options):
        return known if isinstance(target, FunctionType) else target
    if isinstance(target, (MethodType, BoundStaticFunction)):
        return BoundStaticFunction(symbolic_trace(target.__func__, **options), target.__self__)
    if isinstance(target, FunctionType):
        forget(target)
    made = to_static(target, full_graph=False, **options)
    if isinstance(target, FunctionType):
        keep(target, made)
    return made


def is_partial(target: Any) -> bool:
    """Whether something is static without a full graph: a function, a method, or a module by its ``forward``."""
    held = target.forward if isinstance(target, torch.nn.Module) else target
    return isinstance(held.__func__ if isinstance(held, BoundStaticFunction) else held, Partial)


def _check_spec(spec: Specs | None) -> None:
    if spec is None:
        return
    if not isinstance(spec, (list, tuple)) or not all(s is None or isinstance(s, InputSpec) for s in spec):
        raise TypeError("input_spec is a list with an InputSpec or None for each argument")


def _static_module(module: torch.nn.Module, make: Callable[[Any], Static]) -> torch.nn.Module:
    forward = module.forward
    if isinstance(forward, BoundStaticFunction):
        forward = MethodType(forward.__func__.original, module)
    function = getattr(forward, "__func__", None)
    static = make(forward if function is None else function)
    module.forward = static if function is None else BoundStaticFunction(static, module)
    return module


# ---- other ways in
@presenting
def export(
    target: Any,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    input_spec: Specs | None = None,
    name: str | None = None,
) -> Program:
    """Capture a call as a `Program`, without running it.

    Args:
        target: as for `to_static`, or an already static one.
        args, kwargs: example arguments.
        input_spec: dimensions to leave symbolic.
        name: of the program.

    Raises:
        CaptureError: the call cannot become one program, or an example of size 0 or 1 is to leave a dimension open.
        ValueError: ``input_spec`` is longer than the arguments.
    """
    arguments = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    return _export(target, arguments, kwargs or {}, input_spec, name, Options())


def _export(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    input_spec: Specs | None,
    name: str | None,
    options: Options,
    changing: AbstractSet[Source] = frozenset(),
) -> Program:
    _check_spec(input_spec)
    if isinstance(target, torch.jit.ScriptModule):
        raise refuse_module(target)
    if isinstance(target, torch.nn.Module):
        name = name or type(target).__name__
        input_spec = input_spec if input_spec is not None else _spec_of(target.forward)
        if entered(target) == target.forward and not (target._forward_hooks or target._forward_pre_hooks):
            target = target.forward
    spec = input_spec if input_spec is not None else _spec_of(target)
    try:
        return capture_call(target, args, kwargs, spec, options, name, changing, is_kept=True)
    except Exception as error:
        if not is_fault(error):
            raise  # the function's own, or a refusal
        message = f"the capture raises {type(error).__name__}: {error}"
        raise refusal("SG307", message, location=line_that_raised(error)) from error


@presenting
def save(
    target: Any,
    path: str | os.PathLike[str],
    *,
    args: Sequence[Any] | Mapping[str, Sequence[Any]] = (),
    kwargs: Mapping[str, Any] | None = None,
    input_spec: Specs | Mapping[str, Specs] | None = None,
    format: str | None = None,
    control_flow: str | None = None,
    prints: str = "drop",
    assertions: str = "keep",
    opset: int | None = None,
    max_iterations: int | Mapping[int, int] | None = None,
    time_limit: float | None = None,
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

    Raises:
        CaptureError: the call cannot become one program, or (`ExportError`) the format cannot express it.
        ValueError: the format is unknown, does not go with the path's suffix, or holds no several entries; an entry's
            name cannot be one; the path is that of the user's own source; ``input_spec`` is longer than the arguments;
            or there is no loop at a line of ``max_iterations``.
        TypeError: the arguments of several entries are no dicts.
        OSError: the file cannot be written.
    """
    written = check_destination(path, format, control_flow)
    wishes = Wishes(prints, assertions, opset, max_iterations, time_limit)
    wishes.check(written)
    if isinstance(target, Mapping):
        _save_several(target, path, args, kwargs, input_spec, written, wishes)
        return
    specs: Any = input_spec
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
    )


def _save_several(
    targets: Mapping[str, Any],
    path: str | os.PathLike[str],
    args: Any,
    kwargs: Any,
    input_spec: Any,
    written: str,
    wishes: Wishes,
) -> None:
    check_names(targets)
    check_holds_several(written)
    options = {"args": args or {}, "kwargs": kwargs or {}, "input_spec": input_spec or {}}
    for name, given in options.items():
        if not isinstance(given, Mapping):
            raise TypeError(f"save: {name} of several entries is a dict with those of each entry, not {given!r}")
        unknown = [key for key in given if key not in targets]
        if unknown:
            raise ValueError(f"save: {name} has {unknown[0]!r}, which is no entry")

    def capture(name: str, changing: AbstractSet[Source] = frozenset()) -> Entry:
        given, keywords = options["args"].get(name, ()), dict(options["kwargs"].get(name, {}))
        spec = options["input_spec"].get(name)
        return _entry(targets[name], given, keywords, spec, gradients=False, changing=changing)[0]

    entries = {name: capture(name) for name in targets}
    again = {name: capture(name, sources) for name, sources in read_as_constants(entries).items()}
    save_entries({**entries, **again}, path, written, wishes)


def _entry(
    target: Any,
    args: Any,
    kwargs: dict[str, Any],
    input_spec: Specs | None,
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
        _require_arguments(program, arguments, kwargs)
        return entry_of(program, arguments, kwargs), None
    _check_target(target)
    with contextlib.nullcontext() if gradients else torch.no_grad():
        program = _export(target, arguments, kwargs, input_spec, None, Options(for_calls=False), changing)
        program, served = of_every_size(program, target, arguments, kwargs)
    receiver = _receiver(target)
    called = entered(target) if isinstance(target, torch.nn.Module) else target
    arguments = (*receiver, *arguments)
    receives = bool(receiver)
    return entry_of(program, arguments, kwargs, function=called, has_receiver=receives, served=served), called


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
        raise ValueError(f"save: the program takes {', '.join(missing)}; give an example: args=({example}{comma})")


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


def load(path: str | os.PathLike[str], *, native: bool = False) -> Any:
    """A callable for a saved ``.pt2`` or ``.onnx``: it takes the original's arguments and returns what it returned.

    Of a file with several entries, an object with a callable for each: ``loaded.encode`` or ``loaded["encode"]``.

    Args:
        path: of the file.
        native: whether compiled code of the file may run: an AOTInductor package is a library, which can do anything.
            Nothing of any other file runs before it is called.

    Raises:
        OSError: the file cannot be read.
        LoadError: a ValueError: `save` did not write the file, it is damaged, or loading it could run code.
    """
    return load_program(path, native=native)


@presenting
def trace(fn: Any, args: Sequence[Any]) -> TracedFunction:
    """Run ``fn(*args)`` once and record its tensor operations; no control flow is converted.

    Args:
        fn: a function or module.
        args: real arguments; the conditions they decide stay decided.

    Returns:
        A callable that repeats the recorded operations; its ``program`` can be printed and saved.
    """
    if not callable(fn):
        raise TypeError(f"trace takes a function or module, not {fn!r}")
    arguments = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    target = getattr(fn, "original", fn)
    with StaticFunction.captures.capture():
        program = trace_call(target, arguments, getattr(target, "__name__", type(target).__name__))
    return TracedFunction(target, program, lower(program, None).run)


def _spec_of(target: Any) -> Specs | None:
    static = target.__func__ if isinstance(target, (MethodType, BoundStaticFunction)) else target
    return static._spec if isinstance(static, Static) else None


def coverage(*, reset: bool = False) -> Coverage:
    """Which arms and loops the calls so far have gone through, of all static functions alive in the process.

    Args:
        reset: whether to count from zero again, after this.
    """
    functions = [*SETTINGS.static_functions]
    result = summed_up(None, ((p, v) for each in functions for p, v in zip(each.programs, each.visits, strict=True)))
    if reset:
        for each in functions:
            each.forget_visits()
    return result


def not_to_static(fn: Any) -> Any:
    """Leave a function as it is: the capture calls it, and does not rewrite it. Usable as a decorator.

    The program goes on with what the function gave, and repeats what it has changed. It relies on the state that the
    function could read: on another one, the call is captured anew.
    """
    if not callable(fn):
        raise TypeError(f"not_to_static takes a function, not {fn!r}")
    mark_skipped(fn)
    return fn


def ignore_modules(modules: Sequence[ModuleType]) -> None:
    """Never rewrite functions of these Python modules."""
    listed: list[Any] = list(modules) if isinstance(modules, (list, tuple)) else [modules]
    for module in listed:
        if not isinstance(module, ModuleType):
            raise TypeError(f"ignore_modules takes Python modules, not {module!r}")
    SETTINGS.ignore(listed)


def set_verbosity(level: int) -> None:
    """How much is shown on stderr: 0 warnings, 1 captures and what is refused, 2 also the cache and how programs run,
    3 and more everything. For single topics, see ``STILLGRAPH_LOG``.

    Raises:
        TypeError: the level is no integer.
    """
    set_level(level)


def set_artefacts(directory: str | os.PathLike[str] | None) -> None:
    """Write what each capture makes to files, from now on.

    Args:
        directory: it gets ``code/`` with each rewritten function, and a numbered folder for each program with its text,
            driver, guards and explanation, or with the text of a refusal. None writes no more.

    Raises:
        OSError: the directory cannot be made.
    """
    SETTINGS.logbook.keep_artefacts(None if directory is None else Artefacts(Path(directory)))


def set_code_level(level: int) -> None:
    """Print each function to stderr, once, after the first ``level`` rewrite steps; 100 prints the final code too.

    Raises:
        TypeError: the level is no integer.
    """
    SETTINGS.logbook.print_code(level)


__all__ = [
    "Coverage",
    "Dim",
    "InputSpec",
    "Program",
    "coverage",
    "enable_to_static",
    "export",
    "ignore_modules",
    "load",
    "not_to_static",
    "save",
    "set_artefacts",
    "set_code_level",
    "set_verbosity",
    "symbolic_trace",
    "to_static",
    "trace",
]
