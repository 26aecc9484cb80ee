"""Backends: torch's compilers by their names.

With `variants.py`, `region_examples.py` and `tensor_checks.py` what of the runtime touches private parts of torch; each
use says what public way is missing.
"""

from __future__ import annotations

import difflib
import functools
import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import fx

from stillgraph.core.logs import log
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.runtime.native.variants import Region, VariedRegion, copied_graph, returns_sequence

Backend = Callable[[fx.GraphModule, list[Any]], Region]

# The public way to ask takes 0.2 µs for each device type: too much for every call.
any_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled


@dataclass(frozen=True)
class Tuned:
    """A backend with what `torch.compile` takes for it as ``mode`` and ``options``."""

    backend: Any
    mode: str | None
    options: tuple[tuple[str, Any], ...]

    def keywords(self) -> dict[str, Any]:
        """What a backend other than Inductor is called with, as `torch.compile` calls it."""
        found = {"mode": self.mode, "options": dict(self.options)}
        return {name: value for name, value in found.items() if value}


def tuned(backend: Any, mode: str | None, options: Mapping[str, Any] | None) -> Any:
    """A backend, with its mode and options where there are some.

    Raises:
        TypeError: they are not of the right type, or the backend has none.
        ValueError: Inductor has no such mode or option, or it records CUDA graphs.
    """
    if mode is None and options is None:
        return backend
    if not (mode is None or isinstance(mode, str)):
        raise TypeError(f"mode is a name, not {mode!r}")
    if not (options is None or isinstance(options, Mapping)):
        raise TypeError(f"options is a dict, not {options!r}")
    if backend == "eager":
        raise TypeError("mode and options are for a backend that compiles, and 'eager' does not")
    made = Tuned(backend, mode, tuple((options or {}).items()))
    if is_inductor(made):
        _patches(made)
    return made


def is_inductor(backend: Any) -> bool:
    """Whether a backend is torch's own, tuned or not."""
    return bool((backend.backend if isinstance(backend, Tuned) else backend) == "inductor")


def _patches(backend: Tuned) -> dict[str, Any]:
    from torch._inductor import list_mode_options

    options, modes = dict(backend.options), {"default": {}, **list_mode_options()}
    if backend.mode not in (None, *modes):
        raise ValueError(f"Inductor has no mode {backend.mode!r}; it has {', '.join(modes)}")
    wanted = {**modes[backend.mode or "default"], **options}
    if wanted.get("triton.cudagraphs"):
        instead = 'mode="max-autotune-no-cudagraphs" tunes without them'
        raise ValueError(f"a program with branches and loops is not recorded as a CUDA graph; {instead}")
    try:  # torch has no public way to have options checked
        return dict(torch._TorchCompileInductorWrapper(None, wanted or None, False).config)
    except RuntimeError as error:
        raise ValueError(str(error).partition(", known options")[0]) from None


def resolve_backend(backend: str | Callable[..., Any] | Tuned) -> Backend:
    """Find a compiler for regions.

    Args:
        backend: ``"eager"``, the name of any backend that ``torch.compile`` takes, or a callable
            ``(GraphModule, example_inputs) -> callable``.

    Returns:
        ``compile(graph_module, example_inputs)``, which gives a function of the region's inputs that returns a tuple
        or list. Sizes are open that are symbols in the metadata of the graph's placeholders. Compilation happens at the
        function's first call, in the modes of that call.

    Raises:
        ValueError: no backend has this name.
        TypeError: it is neither a name nor a callable.
    """
    if backend == "eager":
        return _eager
    if isinstance(backend, Tuned):
        return _resolve_tuned(backend)
    if backend == "inductor":
        return functools.partial(_varied, _or_as_it_stands(_inductor))
    if isinstance(backend, str):
        return functools.partial(_varied, _or_as_it_stands(_named(backend)))
    if callable(backend):
        return functools.partial(_varied, backend)
    raise TypeError(f"a backend is a name or a callable, not {type(backend).__qualname__}")


def _resolve_tuned(backend: Tuned) -> Backend:
    if is_inductor(backend):
        compiler = functools.partial(_inductor, given=_patches(backend))
        return functools.partial(_varied, _or_as_it_stands(compiler))
    if isinstance(backend.backend, str):
        compiler = functools.partial(_named(backend.backend), **backend.keywords())
        return functools.partial(_varied, _or_as_it_stands(compiler))
    resolve_backend(backend.backend)  # tells what is no backend
    return functools.partial(_varied, functools.partial(backend.backend, **backend.keywords()))


def _eager(graph_module: fx.GraphModule, example_inputs: list[Any]) -> Region:
    forward: Region = graph_module.forward
    return forward if returns_sequence(graph_module) else lambda *inputs: (forward(*inputs),)


def _varied(compiler: Callable[..., Any], graph_module: fx.GraphModule, example_inputs: list[Any]) -> Region:
    return VariedRegion(compiler, _eager(graph_module, example_inputs), graph_module, example_inputs)


def _or_as_it_stands(compiler: Callable[..., Any]) -> Backend:
    """A compiler of torch's which leaves as it is what it fails at: its errors tell users nothing they could mend.

    A graph with control flow in it is no region; what runs such a graph has a better way out.
    """

    def compile(graph_module: fx.GraphModule, example_inputs: list[Any]) -> Region:
        untouched = copied_graph(graph_module)
        try:
            return cast(Region, compiler(graph_module, example_inputs))
        except Exception as error:  # of any kind: a compiler's
            if any(node.target in CONSTRUCTS for node in untouched.graph.nodes):
                raise
            lines = (node.meta.get("location") for node in untouched.graph.nodes)
            where = next((f" at {line}" for line in lines if line is not None), "")
            why = (str(error).splitlines() or [type(error).__name__])[0]
            text = f"the operations{where} run in plain PyTorch, for the backend fails to compile them: {why}"
            log("runtime", "not compiled", text, logging.WARNING, why=why)
            return _eager(untouched, example_inputs)

    return compile


def _inductor(
    graph_module: fx.GraphModule, example_inputs: list[Any], given: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    if not _has_cpp_compiler():
        return _eager(graph_module, example_inputs)
    from torch._inductor.compile_fx import compile_fx

    # Inductor's own generator draws other numbers than eager, from a state of its own.
    patches: dict[str, Any] = {"fallback_random": True}
    # Inductor's Python wrapper spends more on an iteration of a loop than a small body takes; its C++ wrapper does not.
    if _is_loop_on_cpu(graph_module, example_inputs):
        patches["cpp_wrapper"] = True
    patches |= given or {}
    _check_indices(graph_module)
    compiled: Any = compile_fx(graph_module, example_inputs, config_patches=patches)
    return cast(Region, compiled)


_INDEXED = frozenset({"index_select", "index_add", "index_add_", "index_copy", "index_copy_"})
_PAST = torch.iinfo(torch.int32).max


def _check_indices(graph_module: fx.GraphModule) -> None:
    """Let indices count from the front: Inductor takes a negative one for one from the end, where PyTorch raises.

    A negative one becomes one past every end, for which its kernels fail. In place.
    """
    for node in graph_module.graph.nodes:
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        if node.op not in ("call_method", "call_function") or name.partition(".")[0] not in _INDEXED:
            continue
        given = {**dict(zip(("input", "dim", "index"), node.args)), **node.kwargs}
        with graph_module.graph.inserting_before(node):
            negative = graph_module.graph.call_function(torch.lt, (given["index"], 0))
            checked = graph_module.graph.call_function(torch.where, (negative, _PAST, given["index"]))
        node.replace_input_with(given["index"], checked)


def _is_loop_on_cpu(graph_module: fx.GraphModule, example_inputs: list[Any]) -> bool:
    loops = any(node.target is torch.ops.higher_order.while_loop for node in graph_module.graph.nodes)
    return loops and all(v.device.type == "cpu" for v in example_inputs if isinstance(v, torch.Tensor))


def cpp_compiler() -> str | None:
    """The C++ compiler that Inductor would use; None where there is none."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        return get_cpp_compiler()
    except (RuntimeError, OSError):
        return None


@functools.cache  # so that the warning is given once
def _has_cpp_compiler() -> bool:
    if cpp_compiler() is not None:
        return True
    warnings.warn(
        "backend 'inductor' needs a C++ compiler and none was found (set CXX); programs run with backend 'eager'",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


def _named(name: str) -> Callable[..., Any]:
    from torch._dynamo.backends.registry import list_backends, lookup_backend
    from torch._dynamo.exc import InvalidBackend

    try:
        backend: Callable[..., Any] = lookup_backend(name)
    except InvalidBackend:
        near = difflib.get_close_matches(name, ["eager", *list_backends(exclude_tags=())])
        known = ", ".join(map(repr, dict.fromkeys(near or ["eager", *list_backends()])))
        lead = "did you mean" if near else "there are"
        raise ValueError(f"no backend is named {name!r}; {lead} {known}") from None
    return backend
