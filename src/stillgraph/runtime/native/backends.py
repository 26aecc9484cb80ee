"""Backends: torch's compilers, each region compiled at its first call for the kind of inputs that call has.

With `tensor_checks.py` the one module of the runtime that touches private parts of torch; each use says what public way
is missing.
"""
from __future__ import annotations

import copy
import difflib
import functools
import logging
import math
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import fx
from torch._guards import TracingContext, detect_fake_mode, tracing
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks

from stillgraph.core.logs import log
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.program.facts import torch_symbols
from stillgraph.program.facts.conclusions import without_lasting_conclusions
from stillgraph.program.facts.info import info
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import regions
from stillgraph.runtime.native.overlap import overlap
from stillgraph.runtime.native.tensor_checks import native_tensor_check, never

Region = Callable[..., Sequence[Any]]
Backend = Callable[[fx.GraphModule, list[Any]], Region]

# The public way to ask takes 0.2 µs for each device type: too much for every call.
any_autocast: Callable[[], bool] = torch._C._is_any_autocast_enabled


def _as_it_is(value: Any) -> Any:
    return value


def resolve_backend(backend: str | Callable[..., Any]) -> Backend:
    """Find a compiler for regions.

    Args:
        backend: ``"eager"``, the name of any backend that ``torch.compile`` takes, or a callable
            ``(GraphModule, example_inputs) -> callable``.

    Returns:
        ``compile(graph_module, example_inputs)``, which gives a function of the region's inputs that returns a tuple
        or list. Example inputs may be fake tensors; a real one is replaced by a fake one of fixed shape. Compilation
        happens at the function's first call, in the modes of that call.

    Raises:
        ValueError: no backend has this name.
        TypeError: it is neither a name nor a callable.
    """
    if backend == "eager":
        return _eager
    if backend == "inductor":
        return functools.partial(_Region, _or_as_it_stands(_inductor))
    if isinstance(backend, str):
        return functools.partial(_Region, _or_as_it_stands(_named(backend)))
    if callable(backend):
        return functools.partial(_Region, backend)
    raise TypeError(f"a backend is a name or a callable, not {type(backend).__qualname__}")


def _eager(graph_module: fx.GraphModule, example_inputs: list[Any]) -> Region:
    forward: Region = graph_module.forward
    return forward if _returns_sequence(graph_module) else lambda *inputs: (forward(*inputs),)


def _or_as_it_stands(compiler: Callable[..., Any]) -> Backend:
    """A compiler of torch's which leaves as it is what it fails at: its errors tell users nothing they could mend.

    A graph with control flow in it is no region; what runs such a graph has a better way out.
    """

    def compile(graph_module: fx.GraphModule, example_inputs: list[Any]) -> Region:
        untouched = _copied(graph_module)
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


# torch's compilers are not safe to run on two threads at once; the regions of one program also share their symbols.
_COMPILING = threading.RLock()
_MOST_VARIANTS = 8


@dataclass(frozen=True)
class _Variant:
    """A region compiled for some kind of inputs: ``fits`` judges tensors, ``numbers`` and grad mode are compiled in."""

    fits: Callable[..., bool]
    numbers: tuple[str, ...]
    grad: bool
    run: Region


class _Region:
    """A region, compiled at its first call for the kind of inputs that call has.

    A compiler fixes what it is not told is variable: whether a tensor that an earlier region computed requires a
    gradient, its strides, plain numbers (of symbolic ones Inductor takes integers and floats but no truth values), and
    whatever it found convenient to assume of symbolic sizes (that one is not 1, say). Inputs of another kind are
    compiled for anew, up to a limit; where an assumption does not apply the region runs as it stands. Parameters are
    guarded by the program, and not looked at here unless it sets their ``requires_grad``. A region that writes in place
    is compiled for tensors that have no memory in common, and runs as it stands on others.
    """

    def __init__(self, compiler: Callable[..., Any], graph_module: fx.GraphModule, example_inputs: list[Any]) -> None:
        self._compiler = compiler
        self._graph_module = graph_module
        self._as_it_stands = _eager(graph_module, example_inputs)
        self._mode, self._examples = _faked(example_inputs)
        self._tensors: list[int] = []
        self._numbers: list[int] = []
        placeholders = graph_module.graph.find_nodes(op="placeholder")
        for index, (value, node) in enumerate(zip(example_inputs, placeholders, strict=True)):
            if isinstance(value, torch.Tensor):
                set_by_program = info(node.meta.get("val")).grad_set
                guarded = isinstance(value, torch.nn.Parameter) and not set_by_program
                self._tensors += [] if guarded else [index]
            elif not isinstance(value, (torch.SymInt, torch.SymFloat)):
                self._numbers.append(index)
        self._variants: tuple[_Variant, ...] = ()
        self._writes = any(written_arguments(n) for module in regions(graph_module) for n in module.graph.nodes)

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        grad = torch.is_grad_enabled()  # a reentrant checkpoint runs one region without gradients, then with
        if self._writes and overlap(inputs, gradients=grad):
            return self._as_it_stands(*inputs)
        tensors = [inputs[index] for index in self._tensors]
        # repr tells 1, 1.0, True, -0.0 and NaN apart
        numbers = tuple([repr(inputs[index]) for index in self._numbers])
        for variant in self._variants:
            if variant.numbers == numbers and variant.grad is grad and variant.fits(*tensors):
                break
        else:
            variant = self._new_variant(numbers, grad, inputs)
        outputs = variant.run(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        if grad:
            _require_first_order(outputs)
        return outputs

    def _new_variant(self, numbers: tuple[str, ...], grad: bool, inputs: tuple[Any, ...]) -> _Variant:
        tensors = [inputs[index] for index in self._tensors]
        with _COMPILING:
            for variant in self._variants:
                if variant.numbers == numbers and variant.grad is grad and variant.fits(*tensors):
                    return variant  # another thread made it
            shapes = [self._examples[index].shape for index in self._tensors]
            sizes = [[size if isinstance(size, int) else None for size in shape] for shape in shapes]
            strides: list[list[int | None]] = [
                [None] * len(known) if None in known else list(tensor.stride())
                for tensor, known in zip(tensors, sizes, strict=True)
            ]
            fits = native_tensor_check(tensors, sizes, strides)
            if fits is None or len(self._variants) >= _MOST_VARIANTS:
                return _Variant(never, numbers, grad, self._as_it_stands)
            variant = _Variant(fits, numbers, grad, self._compiled(inputs))
            self._variants = (*self._variants, variant)
        return variant

    @without_lasting_conclusions()
    def _compiled(self, inputs: tuple[Any, ...]) -> Region:
        shape_env = self._mode.shape_env
        assert shape_env is not None, "_faked sees to it"
        module = _returning_tuple(_copied(self._graph_module))
        examples = self._examples_like(inputs)
        where = _symbols(examples)
        _compile_in(module, {index: inputs[index] for index in self._numbers})
        kept = [index for index in range(len(inputs)) if index not in self._numbers]
        already = len(shape_env.guards)
        shape_env.pending_fresh_unbacked_symbols.clear()  # the capture's: AOTAutograd would look for where they arise
        # AOTAutograd and Inductor look here for the fake mode that owns the symbols of the example inputs.
        # A caller's hooks on saved tensors, a checkpoint's say, are for the tensors of the run.
        with tracing(TracingContext(self._mode)), saved_tensors_hooks(_as_it_is, _as_it_is):
            compiled = _taking(kept, self._compiler(module, [examples[index] for index in kept]), len(inputs))
        conditions = _assumptions(shape_env, already, set(where))
        if not conditions:
            return compiled
        holds = eval(f"lambda {', '.join(where)}: {' and '.join(conditions)}", {"math": math})
        places, as_it_stands = list(where.values()), self._as_it_stands

        def run(*inputs: Any) -> Sequence[Any]:
            fits = holds(*[inputs[index].size(dim) for index, dim in places])
            return compiled(*inputs) if fits else as_it_stands(*inputs)

        return run

    def _examples_like(self, inputs: tuple[Any, ...]) -> list[Any]:
        """The examples, those of fixed shape replaced by fake tensors like the inputs of this call."""
        examples = list(self._examples)
        for index, (example, value) in enumerate(zip(self._examples, inputs, strict=True)):
            if isinstance(example, torch.Tensor):
                if all(isinstance(size, int) for size in example.shape):
                    example = examples[index] = self._mode.from_tensor(value, static_shapes=True)
                if example.requires_grad is not value.requires_grad:  # torch keeps what it was at the first time
                    examples[index] = example.detach().requires_grad_(value.requires_grad)
        return examples


def _require_first_order(outputs: Sequence[Any]) -> None:
    """Let a backward pass that is to be differentiated itself fail where it comes to what AOTAutograd has compiled.

    There it would go on without the second derivatives of most inputs, and say nothing.
    """
    for output in outputs:
        function: Any = output.grad_fn if isinstance(output, torch.Tensor) else None
        if type(function).__name__ == "CompiledFunctionBackward":
            function.register_prehook(_refuse_second_order)
            return


def _refuse_second_order(gradients: Any) -> None:
    if torch.is_grad_enabled():
        raise RuntimeError(
            "a backend has compiled this function, and what it compiles has no second derivatives (create_graph=True); "
            'make it static with backend="eager"'
        )


def _compile_in(module: fx.GraphModule, values: dict[int, Any]) -> None:
    """Put values in the place of some of a graph's inputs."""
    placeholders = module.graph.find_nodes(op="placeholder")
    constants = {placeholders[index]: value for index, value in values.items()}
    for node in {user for placeholder in constants for user in placeholder.users}:
        node.args = fx.map_arg(node.args, lambda other: constants.get(other, other))
        node.kwargs = fx.map_arg(node.kwargs, lambda other: constants.get(other, other))
    for placeholder in constants:
        module.graph.erase_node(placeholder)
    module.recompile()


def _taking(kept: list[int], compiled: Region, count: int) -> Region:
    """The function of ``count`` inputs that hands on those at ``kept``."""
    return compiled if len(kept) == count else lambda *inputs: compiled(*[inputs[index] for index in kept])


def _symbols(examples: Sequence[Any]) -> dict[str, tuple[int, int]]:
    """Where the value of each symbolic size is found: an input and a dimension."""
    where: dict[str, tuple[int, int]] = {}
    for index, value in enumerate(examples):
        for dim, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            # As it was made: an earlier region's compilation may have replaced the symbol by what it assumed.
            if isinstance(size, torch.SymInt) and size.node._expr.is_symbol:
                where.setdefault(str(size.node._expr), (index, dim))
    return where


def _assumptions(shape_env: torch_symbols.ShapeEnv, already: int, symbols: set[str]) -> list[str]:
    """The conditions on a region's symbols under which compiled code is right, as Python.

    Args:
        shape_env: the symbols' environment.
        already: how many guards it had before the compilation.
        symbols: those whose values the region's inputs tell.
    """
    conditions: dict[str, None] = {}
    for number, guard in enumerate(shape_env.guards):
        names = {str(symbol) for symbol in guard.expr.free_symbols}
        if names <= symbols:
            conditions[f"({torch_symbols.PythonPrinter().doprint(guard.expr)})"] = None
        elif number >= already:
            conditions["False"] = None  # it cannot be checked
    return list(conditions)


def _faked(example_inputs: Sequence[Any]) -> tuple[FakeTensorMode, list[Any]]:
    """The inputs as fake tensors of one mode with a `ShapeEnv`, without which AOTAutograd refuses symbolic sizes."""
    mode = detect_fake_mode(list(example_inputs))
    if mode is None or mode.shape_env is None:
        mode = FakeTensorMode(shape_env=torch_symbols.ShapeEnv())
    return mode, [_fake(value, mode) for value in example_inputs]


def _fake(value: Any, mode: FakeTensorMode) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if not isinstance(value, FakeTensor):
        return mode.from_tensor(value, static_shapes=True)
    if value.fake_mode is mode:
        return value
    with mode:  # from a mode without symbols: every size is known
        fresh = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        return fresh.requires_grad_(value.requires_grad)


def _copied(graph_module: fx.GraphModule) -> fx.GraphModule:
    """A copy that shares parameters but no graph: compilers rewrite the graphs they are given, regions included."""
    copied = fx.GraphModule(graph_module, copy.deepcopy(graph_module.graph))
    for name, child in graph_module.named_children():
        if isinstance(child, fx.GraphModule):
            setattr(copied, name, _copied(child))
    return copied


def _returns_sequence(graph_module: fx.GraphModule) -> bool:
    return isinstance(graph_module.graph.output_node().args[0], (tuple, list))


def _returning_tuple(graph_module: fx.GraphModule) -> fx.GraphModule:
    """The same module, its graph changed to return a tuple: AOTAutograd takes no other."""
    if not _returns_sequence(graph_module):
        output = graph_module.graph.output_node()
        output.args = ((output.args[0],),)
        graph_module.recompile()
    return graph_module


def _inductor(graph_module: fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    if not _has_cpp_compiler():
        return _eager(graph_module, example_inputs)
    from torch._inductor.compile_fx import compile_fx

    # Inductor's own generator draws other numbers than eager, from a state of its own.
    patches = {"fallback_random": True}
    # Inductor's Python wrapper spends more on an iteration of a loop than a small body takes; its C++ wrapper does not.
    if _is_loop_on_cpu(graph_module, example_inputs):
        patches["cpp_wrapper"] = True
    compiled: Any = compile_fx(graph_module, example_inputs, config_patches=patches)
    return cast(Region, compiled)


def _is_loop_on_cpu(graph_module: fx.GraphModule, example_inputs: list[Any]) -> bool:
    loops = any(node.target is torch.ops.higher_order.while_loop for node in graph_module.graph.nodes)
    return loops and all(v.device.type == "cpu" for v in example_inputs if isinstance(v, torch.Tensor))


@functools.cache  # so that the warning is given once
def _has_cpp_compiler() -> bool:
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except (RuntimeError, OSError):
        warnings.warn(
            "backend 'inductor' needs a C++ compiler and none was found (set CXX); programs run with backend 'eager'",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


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
