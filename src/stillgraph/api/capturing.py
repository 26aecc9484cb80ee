"""Capturing: functions and modules made static, and calls captured as programs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import FunctionType, MethodType
from typing import Any, overload

import torch

from stillgraph.api import later
from stillgraph.api.conventions import TO_STATIC, refuse_unknown
from stillgraph.api.partial import NO_WHOLE, Partial, forget, keep, kept_of
from stillgraph.api.static import Static
from stillgraph.core.diagnostics import refusal
from stillgraph.core.faults import is_fault
from stillgraph.core.raised import line_that_raised
from stillgraph.core.shown import brief_error
from stillgraph.program.facts.module_tables import entered
from stillgraph.program.input_spec import DynamicShapes, InputSpec, Specs
from stillgraph.program.program import Program
from stillgraph.program.sources import Source
from stillgraph.runtime.calls.bound_function import BoundStaticFunction
from stillgraph.runtime.calls.static_function import StaticFunction
from stillgraph.runtime.calls.traced import TracedFunction
from stillgraph.runtime.native.backends import tuned
from stillgraph.runtime.native.native import lower
from stillgraph.runtime.native.tracebacks import presenting
from stillgraph.trace.code.compiled import is_compiled
from stillgraph.trace.code.options import Options


@overload
def to_static(
    target: None = None,
    *,
    input_spec: Sequence[InputSpec | None] | None = None,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    dynamic: bool | None = None,
    full_graph: bool = True,
    backend: Any = "inductor",
    unroll_limit: int = 64,
    cache_size: int = 8,
    check: int = 0,
    strict: bool = False,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    **others: Any,
) -> Callable[[Any], Any]: ...


@overload
def to_static(
    target: Any,
    *,
    input_spec: Sequence[InputSpec | None] | None = None,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    dynamic: bool | None = None,
    full_graph: bool = True,
    backend: Any = "inductor",
    unroll_limit: int = 64,
    cache_size: int = 8,
    check: int = 0,
    strict: bool = False,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    **others: Any,
) -> Any: ...


def to_static(
    target: Any = None,
    *,
    input_spec: Sequence[InputSpec | None] | None = None,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    dynamic: bool | None = None,
    full_graph: bool = True,
    backend: Any = "inductor",
    unroll_limit: int = 64,
    cache_size: int = 8,
    check: int = 0,
    strict: bool = False,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    **others: Any,
) -> Any:
    """Make a function or module run as one static program.

    Args:
        target: a function, bound method, callable object, method in a class body, or `torch.nn.Module`. Without it,
            the result is a decorator.
        input_spec: one `InputSpec` (or None) per argument, ``self`` not counted.
        dynamic_shapes: the dimensions that differ from call to call, as `torch.export.export` takes them
            (`program.input_spec.DynamicShapes`), instead of ``input_spec``.
        dynamic: as of ``torch.compile``. By default, a size, or a whole number among the arguments, that is seen to
            differ becomes an input of the next program. With True each is one from the first call on; with False none
            is. Of 0, 1 and what the code needs to know there are programs of their own. Dimensions that
            ``mark_dynamic``, ``maybe_mark_dynamic`` or ``mark_static`` of torch's compiler has marked are taken so.
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
        mode, options: of the backend, as `torch.compile` takes them: ``mode="max-autotune-no-cudagraphs"``,
            ``options={"max_autotune": True}``.
        others: refused; the error says what to write for an option of `torch.compile` or `paddle.jit`.

    Returns:
        A static function; a module is returned itself, its ``forward`` replaced.

    Raises:
        CaptureError: the target is a module that TorchScript compiled, and is to be a full graph.
        TypeError: the target is not callable, a class or what ``torch.compile`` made; an option has the wrong type, or
            there is no such option.
        ValueError: an option is out of range, or does not go with ``full_graph``.
    """
    refuse_unknown(to_static, others, TO_STATIC)
    if target is None:
        return functools.partial(
            to_static,
            input_spec=input_spec,
            dynamic_shapes=dynamic_shapes,
            dynamic=dynamic,
            full_graph=full_graph,
            backend=backend,
            unroll_limit=unroll_limit,
            cache_size=cache_size,
            check=check,
            strict=strict,
            mode=mode,
            options=options,
        )
    _check_options(full_graph, strict, dynamic, unroll_limit, cache_size, check)
    spec = specs_of(input_spec, dynamic_shapes)
    if isinstance(target, type):
        raise TypeError("to_static takes a function or an instance, not a class; decorate its methods")
    if is_compiled(target):
        raise TypeError('to_static takes what torch.compile was given, not what it made; backend="inductor" compiles')
    kind = Static if full_graph else functools.partial(Partial, strict=strict)
    make = functools.partial(
        kind,
        input_spec=spec,
        backend=tuned(backend, mode, options),
        options=Options(unroll_limit, dynamic=dynamic),
        cache_size=cache_size,
        check=check,
    )
    if isinstance(target, torch.nn.Module):
        if full_graph and isinstance(target, torch.jit.ScriptModule):
            raise later.refuse_module(target)
        return _static_module(target, make)
    if isinstance(target, (MethodType, BoundStaticFunction)):
        return BoundStaticFunction(make(target.__func__), target.__self__)
    return make(target)


def _check_options(full_graph: Any, strict: Any, dynamic: Any, unroll_limit: Any, cache_size: Any, check: Any) -> None:
    """Refuse options of `to_static` that are of the wrong type, out of range, or do not go together.

    Raises:
        TypeError, ValueError: one is.
    """
    for option, value in (("full_graph", full_graph), ("strict", strict)):
        if not isinstance(value, bool):
            raise TypeError(f"to_static: {option} is True or False, not {value!r}")
    if not (dynamic is None or isinstance(dynamic, bool)):
        raise TypeError(f"to_static: dynamic is True, False or None, not {dynamic!r}")
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


def symbolic_trace(
    target: Any,
    *,
    backend: Any = "eager",
    dynamic: bool | None = None,
    cache_size: int = 8,
    strict: bool = False,
) -> Any:
    """Capture as much as possible of any Python function, and leave the rest to Python.

    As ``to_static(target, full_graph=False)``. It may be called again and again for one function or module, as training
    loops do: what was captured is kept with it (Paddle's ``symbolic_trace``).

    Args:
        target: a function, bound method, or `torch.nn.Module`.
        backend: any ``torch.compile`` backend, by name or as ``(GraphModule, example_inputs) -> callable``.
        dynamic: as of `to_static`.
        cache_size: how many programs are kept of each segment.
        strict: whether a capture that fails in an unforeseen way raises.

    Returns:
        A static function; a module is returned itself, its ``forward`` replaced.

    Raises:
        TypeError: the target is not callable, or is what ``torch.compile`` made.
    """
    options: Any = {"backend": backend, "dynamic": dynamic, "cache_size": cache_size, "strict": strict}
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


def specs_of(
    input_spec: Sequence[InputSpec | None] | None, dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None
) -> Specs | None:
    """What is declared of the arguments.

    Raises:
        TypeError: neither is what it is to be.
        ValueError: both are given.
    """
    if dynamic_shapes is not None:
        if input_spec is not None:
            raise ValueError("input_spec and dynamic_shapes say the same: give one of them")
        if not isinstance(dynamic_shapes, (Mapping, list, tuple)):
            raise TypeError("dynamic_shapes is a dict or sequence with an entry for each argument")
        return DynamicShapes(dynamic_shapes)
    if input_spec is None:
        return None
    if not isinstance(input_spec, (list, tuple)) or not all(s is None or isinstance(s, InputSpec) for s in input_spec):
        raise TypeError("input_spec is a list with an InputSpec or None for each argument")
    return input_spec


def _static_module(module: torch.nn.Module, make: Callable[[Any], Static]) -> torch.nn.Module:
    forward = module.forward
    if isinstance(forward, BoundStaticFunction):
        forward = MethodType(forward.__func__.original, module)
    function = getattr(forward, "__func__", None)
    static = make(forward if function is None else function)
    module.forward = static if function is None else BoundStaticFunction(static, module)
    return module


@presenting
def export(
    target: Any,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    input_spec: Sequence[InputSpec | None] | None = None,
    dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None,
    name: str | None = None,
) -> Program:
    """Capture a call as a `Program`, without running it.

    Args:
        target: as for `to_static`, or an already static one.
        args, kwargs: example arguments.
        input_spec: dimensions to leave symbolic.
        dynamic_shapes: the same as `torch.export.export` takes it.
        name: of the program.

    Raises:
        CaptureError: the call cannot become one program, or an example of size 0 or 1 is to leave a dimension open.
        ValueError: ``input_spec`` is longer than the arguments.
    """
    arguments = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    return captured(target, arguments, kwargs or {}, specs_of(input_spec, dynamic_shapes), name, Options())


def captured(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    input_spec: Specs | None,
    name: str | None,
    options: Options,
    changing: AbstractSet[Source] = frozenset(),
) -> Program:
    if isinstance(target, torch.jit.ScriptModule):
        raise later.refuse_module(target)
    if isinstance(target, torch.nn.Module):
        name = name or type(target).__name__
        input_spec = input_spec if input_spec is not None else _spec_of(target.forward)
        if entered(target) == target.forward and not (target._forward_hooks or target._forward_pre_hooks):
            target = target.forward
    spec = input_spec if input_spec is not None else _spec_of(target)
    try:
        return later.capture_call(target, args, kwargs, spec, options, name, changing, is_kept=True)
    except Exception as error:  # of any kind: what is no fault of ours goes on
        if not is_fault(error):
            raise  # the function's own, or a refusal
        _require_arguments(target, args, kwargs)
        message = f"the capture raises {brief_error(error)}"
        raise refusal("SG307", message, location=line_that_raised(error)) from error


def _require_arguments(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise a TypeError if a function does not take these arguments."""
    try:
        signature = inspect.signature(entered(target) if isinstance(target, torch.nn.Module) else target)
    except (TypeError, ValueError):
        return  # nobody knows what it takes
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(target, "__name__", type(target).__name__)
        what = "args= and kwargs= are the arguments of an example call, such as args=(x,)"
        raise TypeError(f"{name}: {error}. {what}") from None


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
        program = later.trace(target, arguments, getattr(target, "__name__", type(target).__name__))
    return TracedFunction(target, program, lower(program, None).run)


def _spec_of(target: Any) -> Specs | None:
    static = target.__func__ if isinstance(target, (MethodType, BoundStaticFunction)) else target
    return static._spec if isinstance(static, Static) else None
