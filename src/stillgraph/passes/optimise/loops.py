"""Loops that do less: what each iteration computes anew and alike, and what they carry for nobody."""

from __future__ import annotations

from torch import fx

from stillgraph.passes.optimise.movable import is_movable, writes
from stillgraph.passes.regions.dead_code import sweep
from stillgraph.passes.regions.purity import is_pure
from stillgraph.passes.regions.regions import (
    Loop,
    all_regions,
    control_of,
    controls,
    copied,
    outputs,
    placeholders,
    results,
    set_outputs,
)
from stillgraph.program.program import Program


def move_out_of_loops(program: Program) -> Program:
    """Compute once, before a loop, what each iteration computes of nothing that the loop changes.

    ::

        while …:                        table = sin(w)
            x = x * sin(w)        →     while …:
                                            x = x * table

    A loop that does not iterate computes it for nothing, so it is what fails for no values.
    """
    if writes(program):
        return program
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for control in controls(module):
            if isinstance(control, Loop):
                _move_out(control)
    return fresh


def _move_out(loop: Loop) -> None:
    for place, region in enumerate(loop.regions):
        outer = dict(zip(placeholders(region)[len(loop.entries) :], loop.operands, strict=True))
        for node in list(region.graph.nodes):
            if not is_movable(node) or not all(each in outer or _is_constant(each) for each in node.all_input_nodes):
                continue
            if not node.all_input_nodes:
                continue  # a constant costs nothing where it stands
            with loop.module.graph.inserting_before(loop.node):
                for each in node.all_input_nodes:
                    if each not in outer:
                        outer[each] = loop.module.graph.node_copy(each)
                moved = loop.module.graph.node_copy(node, outer.__getitem__)
            inner = loop.add_operand(moved)[place]
            outer[inner] = moved
            node.replace_all_uses_with(inner)
            region.graph.erase_node(node)


def _is_constant(node: fx.Node) -> bool:
    """Whether an operation makes the same tensor each time, of nothing."""
    return is_movable(node) and not node.all_input_nodes


def drop_unused_carries(program: Program) -> Program:
    """Carry nothing through a loop that only computes itself, and is used neither by its test nor behind it.

    ::

        x, n = while (x, n = 0): …; return f(x), n + 1       →     x = while (x): …; return f(x)
    """
    fresh = copied(program)
    for module in reversed([*all_regions(fresh.graph)]):
        for control in reversed([*controls(module)]):
            if isinstance(control, Loop):
                _drop_carries(control)
    return fresh


def _drop_carries(loop: Loop) -> None:
    """Drop what is carried for nobody: all but what the results, the test or another kept value are computed from."""
    count, body = len(loop.entries), loop.body
    used = {index for index, result in results(loop.node).items() if result.users}
    inner, given = placeholders(body)[:count], outputs(body)
    used |= {index for index, node in enumerate(placeholders(loop.test)[:count]) if node.users}
    acting = [node for node in body.graph.nodes if node.op in ("call_function", "call_method") and _acts(body, node)]
    needed = _sources([*acting, *(given[index] for index in used if isinstance(given[index], fx.Node))])
    while True:
        more = {index for index, node in enumerate(inner) if node in needed} - used
        if not more:
            break
        used |= more
        needed |= _sources([given[index] for index in more if isinstance(given[index], fx.Node)])
    if used and len(used) < count:
        _keep_carries(loop, sorted(used))


def _acts(region: fx.GraphModule, node: fx.Node) -> bool:
    """Whether an operation is there for what it does; a branch or loop is taken to be."""
    return control_of(region, node) is not None or not is_pure(node)


def _sources(nodes: list[fx.Node]) -> set[fx.Node]:
    """Nodes, and all that they are computed from."""
    found, queue = set[fx.Node](), list(nodes)
    while queue:
        node = queue.pop()
        if node not in found:
            found.add(node)
            queue += node.all_input_nodes
    return found


def _keep_carries(loop: Loop, kept: list[int]) -> None:
    node, count = loop.node, len(loop.entries)
    given, dropped = outputs(loop.body), [index for index in range(count) if index not in kept]
    set_outputs(loop.body, [given[index] for index in kept])
    sweep(loop.body)
    for region in loop.regions:
        inner = placeholders(region)
        for index in dropped:
            region.graph.erase_node(inner[index])
    for index, result in results(node).items():
        if index in kept:
            result.args = (node, kept.index(index))
        else:
            node.graph.erase_node(result)
    node.args = (*node.args[:2], tuple(loop.entries[index] for index in kept), loop.operands)
    node.meta["val"] = tuple(node.meta["val"][index] for index in kept)
