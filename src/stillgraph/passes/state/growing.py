"""Loops that carry a tensor whose shape changes: the sizes in question are hidden from torch's shape inference.

torch's ``while_loop`` wants what it carries to keep its shape. Two operators of our own make it look so: both copy
their input when they run, but `forget_sizes` claims unknown sizes, and `take_sizes_of` those of another tensor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from stillgraph.passes.regions.regions import (
    Loop,
    all_regions,
    controls,
    copied,
    outputs,
    placeholders,
    replace_uses,
    results,
)
from stillgraph.passes.regions.values import value_of
from stillgraph.program.program import Program


@torch.library.custom_op("stillgraph::forget_sizes", mutates_args=())
def forget_sizes(x: torch.Tensor, dims: list[int]) -> torch.Tensor:
    """A copy of ``x``; shape inference knows nothing of its sizes at ``dims``."""
    return x.clone(memory_format=torch.contiguous_format)


@torch.library.custom_op("stillgraph::take_sizes_of", mutates_args=())
def take_sizes_of(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A copy of ``x``; shape inference takes its sizes to be those of ``like``."""
    return x.clone(memory_format=torch.contiguous_format)


@forget_sizes.register_fake
def _(x: torch.Tensor, dims: list[int]) -> torch.Tensor:
    context = torch.library.get_ctx()
    shape = [context.new_dynamic_size() if dim in dims else size for dim, size in enumerate(x.shape)]
    return x.new_empty(shape)


@take_sizes_of.register_fake
def _(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return x.new_empty(like.shape)


def hide_growth(program: Program) -> Program:
    """Let every loop look as if it kept the shapes of what it carries.

    ::

        while (t = x): t = cat([t, s])     →     while (t = forget_sizes(x, [0])):
                                                     t = take_sizes_of(cat([t, s]), t)
                                                 t = forget_sizes(t, [0])
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for control in controls(module):
            if isinstance(control, Loop):
                _loop(control)
    return fresh


def growing_loop(program: Program) -> fx.Node | None:
    """The first loop that carries a tensor whose shape changes."""
    loops = (c for module in all_regions(program.graph) for c in controls(module) if isinstance(c, Loop))
    return next((loop.node for loop in loops if any(changing_dimensions(loop))), None)


def show_growth(module: fx.GraphModule) -> None:
    """Put torch's own copy in the place of our operators, once torch's shape inference is done with a graph.

    A graph is run, saved and loaded without its shapes being inferred anew, so what is written needs torch alone.

    Args:
        module: of an exported program, changed in place.
    """
    ours = (torch.ops.stillgraph.forget_sizes.default, torch.ops.stillgraph.take_sizes_of.default)
    for region in all_regions(module):
        for node in region.graph.nodes:
            if node.target in ours:
                node.target = torch.ops.aten.clone.default
                node.args, node.kwargs = node.args[:1], {"memory_format": torch.contiguous_format}
        region.recompile()


def changing_dimensions(loop: Loop) -> list[list[int]]:
    """For each value that a loop carries the dimensions that change."""
    return [
        [d for d, (a, b) in enumerate(zip(value_of(entry).shape, carried.shape)) if expression(a) != expression(b)]
        if isinstance(carried, torch.Tensor)
        else []
        for entry, carried in zip(loop.entries, (p.meta["val"] for p in placeholders(loop.body)))
    ]


def expression(size: Any) -> Any:
    """A size in a form that can be compared."""
    return size.node.expr if isinstance(size, torch.SymInt) else size


def _loop(loop: Loop) -> None:
    entries = list(loop.entries)
    inside = placeholders(loop.body)
    for index, dims in enumerate(changing_dimensions(loop)):
        if not dims:
            continue
        with loop.node.graph.inserting_before(loop.node):
            entries[index] = _operation(loop.node.graph, forget_sizes, (entries[index], dims), inside[index])
        result = results(loop.node).get(index)
        if result is not None:
            with loop.node.graph.inserting_after(result):
                behind = _operation(loop.node.graph, forget_sizes, (result, dims), result)
            replace_uses(result, behind)
        graph = loop.body.graph
        with graph.inserting_before(graph.output_node()):
            left = _operation(graph, take_sizes_of, (outputs(loop.body)[index], inside[index]), inside[index])
        loop.set_output(index, left)
    loop.node.args = (*loop.node.args[:2], tuple(entries), loop.node.args[3])


def _operation(graph: fx.Graph, operator: Any, args: tuple[Any, ...], like: fx.Node) -> fx.Node:
    packet = torch.ops.stillgraph.forget_sizes if operator is forget_sizes else torch.ops.stillgraph.take_sizes_of
    node = graph.call_function(packet.default, args)
    value = like.meta["val"]
    with value.fake_mode:
        node.meta["val"] = torch.empty(value.shape, dtype=value.dtype, device=value.device)
    return node
