"""The whole-graph lowering at run time: for inference, a program with its loops and branches compiled as one graph."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import StillgraphError
from stillgraph.core.logs import log
from stillgraph.passes import pipeline
from stillgraph.passes.numbers.kinds import mixes_kinds
from stillgraph.passes.state.sharing import loops_to_enter, telling_what_iterated
from stillgraph.program.facts.schemas import RECURRENT, draws, is_custom
from stillgraph.program.facts.writes import name_of, writes_in_place
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.guards import ModeGuard
from stillgraph.program.operations import EFFECTFUL, unbound
from stillgraph.program.program import Program

Run = Callable[..., Sequence[Any]]
Compile = Callable[[fx.GraphModule, list[Any]], Run]

_CONTROL = (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop)
_RISKY = (operator.floordiv, operator.mod, operator.truediv, operator.pow, operator.lshift, operator.index, int, round)
_RISKY_MODULES = ("math", "stillgraph.program.operations", "stillgraph.program.exceptions")
_KINDS = ((torch.SymBool, bool), (torch.SymInt, int), (torch.SymFloat, float))


def compile_whole(program: Program, compile: Compile, native: Run) -> Run:
    """Run a program as one compiled graph where that means the same, else by its native driver.

    Args:
        program: what to run.
        compile: the backend.
        native: the native lowering; it takes over for good when the graph cannot be lowered or compiled.

    Returns:
        A function of the program's inputs.
    """
    if not _is_worthwhile(program):
        return native
    telling = _told_when_shared(program)
    if telling is None:
        _tell_of_native(program.name, "its results may share memory")
        return native
    try:
        lowered = pipeline.run(telling, pipeline.for_a_compiler()).graph
    except StillgraphError as error:
        _tell_of_native(program.name, str(error))
        return native
    return _WholeGraph(program, lowered, compile, native)


def _tell_of_native(name: str, why: str) -> None:
    log("runtime", "native", f"{name} runs by its native driver: {why}", function=name, why=why)


def _told_when_shared(program: Program) -> Program | None:
    """The program, with a further output for each loop that, where it never iterates, gives back what it was given.

    A whole graph hands out copies where eager PyTorch hands out an argument, a view of one, or one tensor twice.

    Returns:
        None where results may share memory in other ways, too.
    """
    loops = loops_to_enter(program.graph)
    if not loops:
        return None if loops is None else program
    if any(draws(node) for region in regions(program.graph) for node in region.graph.nodes):
        return None  # the native driver would draw a second time
    return telling_what_iterated(program, loops)


def _is_worthwhile(program: Program) -> bool:
    """Whether a program is for inference, has control flow, and leaves nothing to Python while it runs."""
    modes = [guard.context for guard in program.guards if isinstance(guard, ModeGuard)]
    if not modes or modes[0].grad or modes[0].inference or modes[0].autocast:
        return False
    nodes = [n for r in program.graph.modules() if isinstance(r, fx.GraphModule) for n in r.graph.nodes]
    if any(n.target in EFFECTFUL or n.target is unbound for n in nodes):
        return False
    if writes_in_place(program.graph) or mixes_kinds(program.graph) or any(_may_raise(n) for n in nodes):
        return False
    if any(is_custom(n.target) or (name_of(n) in RECURRENT and draws(n)) for n in nodes):
        return False  # a backend would call the one no oftener than it needs, and draw other numbers in the other
    return any(n.target in _CONTROL for n in nodes)


def _may_raise(node: fx.Node) -> bool:
    """Whether an operation on numbers can raise in Python where one on tensors gives some value."""
    if isinstance(node.meta.get("val"), torch.Tensor) or node.op != "call_function":
        return False
    return node.target in _RISKY or getattr(node.target, "__module__", "") in _RISKY_MODULES


class _WholeGraph:
    """A lowered program: numbers go in and come out as Python numbers, tensors inside.

    What it puts out beside the program's own outputs says of loops whether they have iterated. Where one has not, the
    native driver runs: it gives back the tensors that it was given.
    """

    def __init__(self, program: Program, lowered: fx.GraphModule, compile: Compile, native: Run) -> None:
        self._name = program.name
        self._lowered = lowered
        self._compile = compile
        self._native = native
        (returned,) = arguments(program.graph.graph.output_node())
        self._kinds = [_number_kind(value) for value in returned]
        self._run: Run | None = None

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        if self._run is None:
            return self._first(inputs)
        return self._run(*inputs)

    @property
    def visits(self) -> list[int] | None:
        """How often each region began, see `native.Driver`; None where a compiled graph runs, which does not count."""
        counted: list[int] | None = getattr(self._native, "visits", None)
        return counted if self._run is self._native else None

    def _first(self, inputs: tuple[Any, ...]) -> Sequence[Any]:
        try:
            compiled = self._compile(self._lowered, list(map(_as_tensor, inputs)))
            outputs = self._finish(compiled(*map(_as_tensor, inputs)), inputs)
        except Exception as error:  # whatever a compiler makes of a graph, the native driver runs it
            _tell_of_native(self._name, "".join(str(error).splitlines()[:1]))
            self._run = self._native
            return self._native(*inputs)
        self._run = functools.partial(self._later, compiled)
        return outputs

    def _later(self, compiled: Run, *inputs: Any) -> Sequence[Any]:
        try:
            return self._finish(compiled(*map(_as_tensor, inputs)), inputs)
        except Exception as error:  # of any kind: the compiled graph's
            _tell_of_native(self._name, f"this time, {''.join(str(error).splitlines()[:1])}")
        return self._native(*inputs)  # it changes nothing before it raises, and raises what eager PyTorch does

    def _finish(self, outputs: Sequence[Any], inputs: tuple[Any, ...]) -> Sequence[Any]:
        count = len(self._kinds)
        if not all(outputs[count:]):
            return self._native(*inputs)
        return [v if kind is None else kind(v) for kind, v in zip(self._kinds, outputs[:count], strict=True)]


def _as_tensor(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def _number_kind(value: Any) -> type | None:
    """The Python type of an output that is a number."""
    value = value.meta.get("val") if isinstance(value, fx.Node) else value
    if isinstance(value, (bool, int, float)):
        return type(value)
    return next((kind for symbolic, kind in _KINDS if isinstance(value, symbolic)), None)
