"""The native lowering: a program as readable Python, with real ``if`` and ``while`` around its operations.

Nothing is functionalised and nothing is approximated: numbers are Python numbers, autograd is PyTorch's own. With a
compiling backend the straight-line stretches between control flow become functions that the backend compiles.
"""

from __future__ import annotations

import keyword
import linecache
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.program.context import Context
from stillgraph.program.facts.info import info
from stillgraph.program.graphs import regions
from stillgraph.program.guards import ModeGuard
from stillgraph.program.operations import bound, unbound
from stillgraph.program.program import Program
from stillgraph.runtime.native.block_writer import Block, nodes_of
from stillgraph.runtime.native.driver_text import Writer
from stillgraph.runtime.native.lazy_region import Compile
from stillgraph.runtime.native.segments import Segment
from stillgraph.runtime.native.tracebacks import PLACES, Places


@dataclass(frozen=True)
class Driver:
    """A program made callable.

    Attributes:
        run: ``run(*inputs)`` gives the tuple of the graph's outputs.
        code: its source.
        places: which of the user's lines each line of it carries out; 0 stands for where the program begins.
        visits: how often each region began, by `Block.number`, in all calls so far; ``run.visits`` is the same list. A
            loop's test counts how often the loop was reached, a checkpoint's body not what autograd computes again. A
            program without control flow counts nothing.
    """

    run: Callable[..., tuple[Any, ...]]
    code: str
    places: Places
    visits: list[int]


def lower(program: Program, compile: Compile | None) -> Driver:
    """The native driver of a program.

    Args:
        program: what to run.
        compile: the backend that compiles straight-line regions; None runs PyTorch's operators as they are.
    """
    graph = program.graph
    writer = Writer(None if _differentiates(graph) else compile, keeps_account=bool(program.so_far))
    writer.begins = program.location
    return _written(writer, program.name, graph, _ambient(program), program.unset_in_choices)


def lower_graph(graph: fx.GraphModule, name: str, compile: Compile | None) -> Driver:
    """The native driver of a graph that is no program's: of a file.

    Args:
        graph: its operations are functions; it and its regions give tuples.
        name: of the function that is written.
        compile: as of `lower`.
    """
    return _written(Writer(compile), name, graph, None)


def _lower_segment(segment: Segment, module: fx.GraphModule, ambient: Context | None) -> Driver:
    """A segment of a region as a driver of its own, which runs PyTorch's operators as they are."""
    region, _, _ = segment.build(module, None)
    writer = Writer(None)
    writer.begins = segment.nodes[0].meta.get("location")
    return _written(writer, "region", region, ambient)


def _written(
    writer: Writer, name: str, graph: fx.GraphModule, ambient: Context | None, lazy: frozenset[int] = frozenset()
) -> Driver:
    """The driver of a graph; the outputs ``lazy`` are looked at only where they have a value."""
    inputs = graph.graph.find_nodes(op="placeholder")
    writer.taken.add(_identifier(name))
    for node in inputs:
        writer.names[node] = writer.fresh(node.name)
    writer.text.lines.append(f"def {_identifier(name)}({', '.join(writer.names[n] for n in inputs)}):")
    found = list(regions(graph))
    if len(found) > 1:
        writer.numbers.update((region, number) for number, region in enumerate(found))
    writer.visits += [0] * len(found)
    writer.count(graph)
    outputs = Block(writer, graph, ambient, _lower_segment).write()
    if _has_unbound(graph):
        check = writer.object("bound", bound)
        outputs = [o if index in lazy else f"{check}({o})" for index, o in enumerate(outputs)]
    writer.line(f"return ({''.join(o + ', ' for o in outputs)})")
    code, tables = writer.finish()
    run = _compile_source(name, code, writer.objects | tables)
    run.visits = writer.visits  # type: ignore[attr-defined]  # for `runtime.static_function`
    return Driver(run, code, tables[PLACES], writer.visits)


def _identifier(name: str) -> str:
    cleaned = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return cleaned if cleaned.isidentifier() and not keyword.iskeyword(cleaned) else f"program_{cleaned}"


def _differentiates(graph: fx.GraphModule) -> bool:
    """Whether a program takes gradients in a way that shows where one compiled region ends and the next begins.

    A region is differentiated as a whole, and once: its graph goes with the first backward pass, whatever of it that
    pass came by, and there are no second derivatives.
    """
    takers = (torch.autograd.grad, torch.autograd.backward, "backward")
    taking = [node for node in nodes_of(graph) if node.target in takers]
    if not taking:
        return False
    at_top = len(taking) == 1 and taking[0].graph is graph.graph
    create_graph = taking[0].kwargs.get("create_graph", len(taking[0].args) > 3)
    results = graph.graph.output_node().all_input_nodes
    return not at_top or create_graph is not False or any(_may_require_grad(node.meta.get("val")) for node in results)


def _may_require_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.requires_grad or info(value).grad_differs)


def _has_unbound(module: fx.GraphModule) -> bool:
    """Whether some path of the program leaves a variable without a value."""
    return any(node.target is unbound for node in nodes_of(module))


def _ambient(program: Program) -> Context | None:
    return next((guard.context for guard in program.guards if isinstance(guard, ModeGuard)), None)


def _compile_source(name: str, code: str, objects: dict[str, Any]) -> Callable[..., tuple[Any, ...]]:
    namespace = dict(objects)
    file = f"<stillgraph {name} {id(namespace):x}>"
    exec(compile(code, file, "exec"), namespace)
    driver: Callable[..., tuple[Any, ...]] = namespace[_identifier(name)]
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    weakref.finalize(driver, linecache.cache.pop, file, None)
    return driver
