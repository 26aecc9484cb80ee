"""Where a program parts from eager PyTorch: the first value that differs, its line and its region.

Two questions, in this order. Does a compiled region give what the reference interpreter gives? And does the interpreter
compute, line by line, what eager computes? The second compares what torch gave to each line of the user's, in the order
in which that line ran.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx
from torch.overrides import TorchFunctionMode

from stillgraph.core.files import is_ours, is_users
from stillgraph.core.location import Location
from stillgraph.core.shown import brief_error
from stillgraph.program.blocks import Block, blocks
from stillgraph.program.graphs import arguments
from stillgraph.program.interpreter import CONTROL, interpret
from stillgraph.program.program import Program
from stillgraph.runtime.comparing.outcomes import tensor_difference

Key = tuple[tuple[str, int], ...]
"""A line and those that called it, the captured function's own first."""


@dataclass(frozen=True)
class Divergence:
    """The earliest difference: in words, and the user's line where it is known."""

    text: str
    location: Location | None = None


@dataclass(frozen=True)
class Computed:
    """What torch gave to a line of the user's: copies of the tensors, so that later writes do not show."""

    key: Key
    operation: str
    tensors: tuple[torch.Tensor, ...]
    location: Location | None = None
    block: Block | None = None

    @property
    def place(self) -> str:
        """The line, and in the program the region."""
        file, line = self.key[-1]
        where = f"{os.path.basename(file)}:{line}"
        return where if self.block is None or self.block.node is None else f"{where}, in {self.block}"


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _tensors(value: Any) -> tuple[torch.Tensor, ...]:
    found = torch.utils._pytree.tree_leaves(value)
    return tuple(each.detach().clone() for each in found if isinstance(each, torch.Tensor))


# ---- what the program computes
@dataclass
class ProgramTrace:
    """An observer of the interpreter that keeps what each of the user's lines got from torch."""

    computed_values: list[Computed] = field(default_factory=list)
    visits: list[int] = field(default_factory=list)

    def entered(self, block: Block, inputs: tuple[Any, ...]) -> None:
        """Count it."""
        self.visits[block.number] += 1

    def left(self, block: Block, outputs: tuple[Any, ...]) -> None:
        """Nothing is kept of it."""

    def computed(self, block: Block, node: fx.Node, value: Any) -> None:
        """Keep the value of an operation of the user's."""
        location: Location | None = node.meta.get("location")
        if location is None or _is_bookkeeping(node):
            return
        with torch.no_grad():
            tensors = _tensors(value)
        if tensors:
            key = (*((each.file, each.line) for each in location.callers), (location.file, location.line))
            self.computed_values.append(Computed(key, _name(node.target), tensors, location, block))


@dataclass(frozen=True)
class Interpreted:
    """A program as the reference interpreter runs it.

    Attributes:
        program: what to run.
        trace: is told of what it computes, in the last run only.
        visits: how often each region began.
    """

    program: Program
    trace: ProgramTrace
    visits: list[int]

    def with_visits(self, visits: list[int]) -> Interpreted:
        """The same, counting in a list that may end it by raising."""
        return replace(self, visits=visits)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run it."""
        self.trace.computed_values.clear()
        self.trace.visits = self.visits
        return interpret(self.program, inputs, self.trace)


def interpreting(program: Program, trace: ProgramTrace) -> Interpreted:
    """A program to be interpreted; the trace is told of it."""
    return Interpreted(program, trace, [0] * len(blocks(program.graph)))


def _is_bookkeeping(node: fx.Node) -> bool:
    if node.op == "get_attr" or node.target in CONTROL or node.meta.get("bookkeeping"):
        return True
    given = arguments(node)
    from_control = bool(given) and isinstance(given[0], fx.Node) and given[0].target in CONTROL
    return from_control or getattr(node.target, "__module__", "").startswith("stillgraph")


def _name(target: Any) -> str:
    return target if isinstance(target, str) else str(getattr(target, "__name__", target))


# ---- what eager computes
class EagerTrace(TorchFunctionMode):
    """A mode that keeps what each of the user's lines got from torch."""

    def __init__(self) -> None:
        super().__init__()
        self.computed_values: list[Computed] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        with torch.no_grad():
            tensors = _tensors(result)
        if tensors:
            key = _lines()
            if key:
                self.computed_values.append(Computed(key, _name(func), tensors))
        return result


def _lines() -> Key:
    """The user's lines being run, up to where stillgraph called the function."""
    lines: list[tuple[str, int]] = []
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_ours(file):
            if lines:
                break
        elif is_users(file):
            lines.append((file, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    return tuple(reversed(lines))


# ---- the two beside each other
def first_difference(program: Sequence[Computed], eager: Sequence[Computed]) -> Divergence | None:
    """The earliest value of a program that eager does not have.

    Args:
        program: what the program computes, in order.
        eager: what eager computes, in order.

    Returns:
        None where all that could be set beside each other is equal.
    """
    mine, theirs = _by_line(program), _by_line(eager)
    extra = next((each for each in eager if each.key not in mine), None)
    met: Counter[Key] = Counter()
    for one in program:
        if one.key not in theirs:
            text = f"the program computes '{one.operation}' at {one.place}, eager does not"
            also = "" if extra is None else f"; eager computes '{extra.operation}' at {extra.place} instead"
            return Divergence(text + also, one.location)
        index, counts = met[one.key], (len(mine[one.key]), len(theirs[one.key]))
        met[one.key] += 1
        problem = _differ(one, theirs[one.key][index]) if index < counts[1] else "is not computed by eager"
        if problem:
            which = f" value {index + 1} of {counts[0]}" if counts[0] > 1 else ""
            unequal = f" (eager has {counts[1]} there)" if counts[0] != counts[1] else ""
            return Divergence(f"'{one.operation}' at {one.place},{which}{unequal} {problem}", one.location)
    for each in eager:
        if met[each.key] == 0:
            text = f"eager computes '{each.operation}' at {each.place}, the program does not"
            return Divergence(text, _located(each))
        met[each.key] -= 1
    return None


def _by_line(computed: Sequence[Computed]) -> dict[Key, list[Computed]]:
    grouped: dict[Key, list[Computed]] = {}
    for each in computed:
        grouped.setdefault(each.key, []).append(each)
    return grouped


def _located(computed: Computed) -> Location:
    *callers, (file, line) = computed.key
    return Location(file, line, callers=tuple(Location(*each) for each in callers))


def _differ(one: Computed, other: Computed) -> str | None:
    if len(one.tensors) != len(other.tensors):
        return f"gives {len(one.tensors)} tensors, in eager {len(other.tensors)}"
    return next(filter(None, map(tensor_difference, one.tensors, other.tensors)), None)


# ---- compiled regions
Compiler = Callable[[fx.GraphModule, list[Any]], Callable[..., Any]]


@dataclass
class RegionCheck:
    """A backend that runs each region twice, compiled and operation by operation, and keeps the first difference."""

    program: Program
    backend: Compiler
    found: Divergence | None = None

    def __call__(self, module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        """Compile a region; what it gives is what its operations give one by one."""
        try:
            compiled = self.backend(module, inputs)
        except Exception as error:  # of any kind: a backend's
            self._keep(self._failed(error, module))
            compiled = module.forward

        def run(*given: Any) -> Any:
            copies = [each.detach().clone() if isinstance(each, torch.Tensor) else each for each in given]
            failed: Divergence | None = None
            try:
                with _random_as_before():
                    values = compiled(*copies)
            except Exception as error:  # of any kind: a backend's, or that of an operation
                values, failed = (), self._failed(error, module)
            expected = module.forward(*given)  # where an operation fails, so does this
            self._keep(failed)
            if self.found is None:
                (outputs,) = arguments(module.graph.output_node())
                if self._compared(outputs, values, expected) is not None:
                    self.found = self._first_wrong(module, given) or self._compared(outputs, values, expected)
            return expected

        return run

    def _keep(self, found: Divergence | None) -> None:
        self.found = self.found or found

    def _failed(self, error: Exception, module: fx.GraphModule) -> Divergence:
        """A region that the backend does not compile, or that does not run when compiled: where it begins."""
        nodes = [n for n in module.graph.nodes if n.op in ("call_function", "call_method") and n.meta.get("location")]
        if not nodes:
            return Divergence(f"the backend fails on a region: {brief_error(error)}")
        location: Location = nodes[0].meta["location"]
        block = self._block_of(nodes[0])
        inside = "" if block is None or block.node is None else f", in {block}"
        place = f"'{_name(nodes[0].target)}' at {os.path.basename(location.file)}:{location.line}{inside}"
        return Divergence(f"the backend fails on the region that begins with {place}: {brief_error(error)}", location)

    def _first_wrong(self, module: fx.GraphModule, given: Sequence[Any]) -> Divergence | None:
        """The first operation of a region that goes wrong when the region is compiled to give all that it computes."""
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        graph.graph_copy(module.graph, copies)
        nodes = [n for n in copies if n.op in ("call_function", "call_method") and _is_tensor(n.meta.get("val"))]
        graph.output(tuple(copies[node] for node in nodes))
        telling = fx.GraphModule(module, graph)
        inputs = [each.detach().clone() if isinstance(each, torch.Tensor) else each for each in given]
        with _random_as_before():
            expected = telling.forward(*inputs)
        inputs = [each.detach().clone() if isinstance(each, torch.Tensor) else each for each in given]
        with _random_as_before():
            values = self.backend(telling, inputs)(*inputs)
        return self._compared(nodes, values, expected)

    def _compared(self, nodes: Sequence[fx.Node], values: Any, expected: Any) -> Divergence | None:
        for node, value, right in zip(nodes, values, expected):
            if not isinstance(right, torch.Tensor) or not isinstance(value, torch.Tensor):
                continue
            problem = tensor_difference(value.detach(), right.detach(), than="what its operations give")
            if problem:
                block = self._block_of(node)
                inside = "" if block is None or block.node is None else f" in {block}"
                return Divergence(f"'{_name(node.target)}'{inside}, compiled, {problem}", node.meta.get("location"))
        return None

    def _block_of(self, node: fx.Node) -> Block | None:
        same = (node.name, node.target, node.meta.get("location"))
        for block in blocks(self.program.graph):
            if any((n.name, n.target, n.meta.get("location")) == same for n in block.module.graph.nodes):
                return block
        return None


@contextlib.contextmanager
def _random_as_before() -> Iterator[None]:
    state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)
