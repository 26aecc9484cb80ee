"""A region that a backend compiles anew for each kind of inputs it is given."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._guards import TracingContext, tracing
from torch.autograd.graph import saved_tensors_hooks

from stillgraph.program.facts.conclusions import without_lasting_conclusions
from stillgraph.program.facts.info import info
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import regions
from stillgraph.runtime.native.overlap import overlap, own_memory
from stillgraph.runtime.native.region_examples import Examples, Open
from stillgraph.runtime.native.tensor_checks import native_tensor_check, never

Region = Callable[..., Sequence[Any]]

# torch's compilers are not safe to run on two threads at once.
_COMPILING = threading.RLock()
_MOST_VARIANTS = 8


@dataclass(frozen=True)
class _Variant:
    """A region compiled for some kind of inputs.

    Attributes:
        numbers: the plain numbers that are compiled in, as Python writes them.
        grad: whether autograd was on.
        fits: judges the tensors.
        holds: judges the inputs: whether what is compiled is right for their open sizes. None if none is open, or if
            ``run`` is right for all.
        run: the code.
    """

    numbers: tuple[str, ...]
    grad: bool
    fits: Callable[..., bool]
    holds: Callable[..., bool] | None
    run: Region

    def takes(self, numbers: tuple[str, ...], grad: bool, tensors: list[Any], inputs: tuple[Any, ...]) -> bool:
        """Whether inputs are of this kind."""
        return (
            self.numbers == numbers
            and self.grad is grad
            and self.fits(*tensors)
            and (self.holds is None or self.holds(*inputs))
        )


class VariedRegion:
    """A region, compiled at its first call for the kind of inputs that call has.

    A compiler fixes what it is not told is variable: whether a tensor that an earlier region computed requires a
    gradient, its strides, plain numbers, and whatever it found convenient to assume of open sizes (that one is not 1,
    say). Inputs of another kind are compiled for anew, up to a limit, beyond which the region runs as it stands.
    Parameters are guarded by the program, and not looked at here unless it sets their ``requires_grad``. A region that
    writes in place is compiled for tensors that have no memory in common, and runs as it stands on others.
    """

    def __init__(
        self, compiler: Callable[..., Any], as_it_stands: Region, graph_module: fx.GraphModule, inputs: list[Any]
    ) -> None:
        """Make a region that is not compiled yet.

        Args:
            compiler: of the backend.
            as_it_stands: runs the graph's operations one by one.
            graph_module: the graph; its placeholders' metadata tell which sizes are open.
            inputs: of a call: which of them are tensors.
        """
        self._compiler = compiler
        self._graph_module = graph_module
        self._as_it_stands = as_it_stands
        self._tensors: list[int] = []
        self._numbers: list[int] = []
        self._open: list[Open | None] = []
        placeholders = graph_module.graph.find_nodes(op="placeholder")
        for index, (value, node) in enumerate(zip(inputs, placeholders, strict=True)):
            known = node.meta.get("val")
            self._open.append(Open.of(known) if isinstance(value, torch.Tensor) or type(value) is int else None)
            if isinstance(value, torch.Tensor):
                guarded = isinstance(value, torch.nn.Parameter) and not info(known).grad_set
                self._tensors += [] if guarded else [index]
            elif self._open[index] is None:
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
            if variant.takes(numbers, grad, tensors, inputs):
                break
        else:
            variant = self._new_variant(numbers, grad, tensors, inputs)
        outputs = variant.run(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        if grad:
            _require_first_order(outputs)
        return outputs

    def _new_variant(
        self, numbers: tuple[str, ...], grad: bool, tensors: list[Any], inputs: tuple[Any, ...]
    ) -> _Variant:
        as_it_stands = _Variant(numbers, grad, never, None, self._as_it_stands)
        if len(set(map(id, tensors))) < len(tensors) or any(map(_is_lazy, tensors)):
            return as_it_stands
        with _COMPILING:
            for variant in self._variants:
                if variant.takes(numbers, grad, tensors, inputs):
                    return variant  # another thread made it
            if len(self._variants) >= _MOST_VARIANTS:
                return as_it_stands
            examples = Examples.of(inputs, self._open)
            layouts = [examples.layout(index) for index in self._tensors]
            fits = native_tensor_check(tensors, [sizes for sizes, _ in layouts], [strides for _, strides in layouts])
            if fits is None:
                return as_it_stands
            run, holds = self._compiled(examples, inputs), None
            if any(self._open):
                holds = examples.conditions()
                run = self._as_it_stands if holds is None else run
            variant = _Variant(numbers, grad, fits, holds, run)
            self._variants = (*self._variants, variant)
        return variant

    @without_lasting_conclusions()
    def _compiled(self, examples: Examples, inputs: tuple[Any, ...]) -> Region:
        module = _returning_tuple(copied_graph(self._graph_module))
        _compile_in(module, {index: inputs[index] for index in self._numbers})
        kept = [index for index in range(len(inputs)) if index not in self._numbers]
        shown = [examples.values[index] for index in kept]
        for node, example in zip(module.graph.find_nodes(op="placeholder"), shown, strict=True):
            node.meta["val"] = example  # Inductor may look here instead
        # AOTAutograd and Inductor look here for the fake mode that owns the symbols of the example inputs.
        # A caller's hooks on saved tensors, a checkpoint's say, are for the tensors of the run.
        with tracing(TracingContext(examples.mode)), saved_tensors_hooks(_as_it_is, _as_it_is):
            return _taking(kept, own_memory(self._compiler(module, shown), self._graph_module), len(inputs))


def _is_lazy(tensor: torch.Tensor) -> bool:
    """Whether a tensor is conjugated or negated when it is read: compilers take the numbers in memory for its own."""
    return tensor.is_conj() or tensor.is_neg()


def _as_it_is(value: Any) -> Any:
    return value


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


def copied_graph(graph_module: fx.GraphModule) -> fx.GraphModule:
    """A copy that shares parameters but no graph: compilers rewrite the graphs they are given, regions included."""
    copied = fx.GraphModule(graph_module, copy.deepcopy(graph_module.graph))
    for name, child in graph_module.named_children():
        if isinstance(child, fx.GraphModule):
            setattr(copied, name, copied_graph(child))
    return copied


def returns_sequence(graph_module: fx.GraphModule) -> bool:
    return isinstance(graph_module.graph.output_node().args[0], (tuple, list))


def _returning_tuple(graph_module: fx.GraphModule) -> fx.GraphModule:
    """The same module, its graph changed to return a tuple: AOTAutograd takes no other."""
    if not returns_sequence(graph_module):
        output = graph_module.graph.output_node()
        output.args = ((output.args[0],),)
        graph_module.recompile()
    return graph_module
