"""Which results of a program are, or look into, its inputs or each other: a whole graph hands out copies instead."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection
from typing import Any

from torch import fx

from stillgraph.passes.regions.regions import (
    Branch,
    Control,
    Loop,
    all_regions,
    control_of,
    controls,
    copied,
    is_result,
    outputs,
    placeholders,
    set_outputs,
)
from stillgraph.passes.regions.values import Fakes, storage_of
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import arguments
from stillgraph.program.program import Program

Roots = frozenset[Any]  # what memory may be from: placeholders, and for memory made on the way whatever stands for it
_NONE: Roots = frozenset()


def results_may_share(graph: fx.GraphModule, entered: Collection[fx.Node] = ()) -> bool:
    """Whether a result of a program may share memory with an input, with a constant or with another result.

    Args:
        graph: the program's.
        entered: loops of the outermost region that are known to iterate at least once.
    """
    roots = roots_of(graph, entered)
    given = {n: roots[n] for n in graph.graph.nodes if n.op in ("placeholder", "get_attr") and n in roots}
    returned = {n: roots[n] for n in outputs(graph) if isinstance(n, fx.Node) and n in roots and n not in given}
    pairs = itertools.chain(itertools.product(returned, given), itertools.combinations(returned, 2))
    return any(not roots[left].isdisjoint(roots[right]) for left, right in pairs)


def writes_what_may_be_shared(graph: fx.GraphModule) -> bool:
    """Whether a program writes in place to memory that a branch or loop may hand on: lowered, those give copies."""
    return any(_writes_shared(region) for region in all_regions(graph))


def _writes_shared(region: fx.GraphModule) -> bool:
    roots = roots_of(region)
    shared: set[Any] = set()
    for control in controls(region):
        handed = [roots.get(value, _NONE) if isinstance(value, fx.Node) else _NONE for value in _handed(control)]
        shared.update(*handed[: len(control.entries)] if isinstance(control, Loop) else [])
        shared.update(*_through(control, handed, False))
    carried = [node for node in region.graph.nodes if is_result(node) and node in roots]
    shared.update(*(roots[node] for node in carried))
    return any(not shared.isdisjoint(roots.get(node, _NONE)) for node in written_in(region))


def written_in(region: fx.GraphModule) -> set[fx.Node]:
    """The values of a region that it, or a region in it, writes to in place."""
    found = {target for node in region.graph.nodes for target in written_arguments(node)}
    for control in controls(region):
        for inner in control.regions:
            roots = roots_of(inner)
            touched = frozenset().union(*(roots.get(node, _NONE) for node in written_in(inner)))
            handed = control.operands if isinstance(control, Branch) else _handed(control)
            pairs = zip(placeholders(inner), handed, strict=True)
            found |= {value for given, value in pairs if given in touched and isinstance(value, fx.Node)}
    return found


def loops_to_enter(graph: fx.GraphModule) -> list[fx.Node] | None:
    """The outermost loops that have to iterate for no result to share memory; None where that is not enough."""
    if not results_may_share(graph):
        return []
    loops = [control.node for control in controls(graph) if isinstance(control, Loop)]
    if results_may_share(graph, loops):
        return None
    needed = [loop for loop in loops if results_may_share(graph, [other for other in loops if other is not loop])]
    return loops if results_may_share(graph, needed) else needed


def telling_what_iterated(program: Program, loops: Collection[fx.Node]) -> Program:
    """A program with a further output for each loop: whether it has iterated. Where that is known there is none."""
    numbers = [index for index, node in enumerate(program.graph.graph.nodes) if node in loops]
    fresh = copied(program)
    nodes = list(fresh.graph.graph.nodes)
    fakes = Fakes(fresh.graph)
    unsure = [loop for loop in (Loop(fresh.graph, nodes[number]) for number in numbers) if not _is_entered(loop)]
    set_outputs(fresh.graph, [*outputs(fresh.graph), *(_has_iterated(loop, fakes) for loop in unsure)])
    return fresh


def _is_entered(loop: Loop) -> bool:
    """Whether a loop's test compares numbers that are known before the first iteration: ``for i in range(200)``."""
    given = dict(zip(placeholders(loop.test), (*loop.entries, *loop.operands), strict=True))
    (result,) = outputs(loop.test)
    if not isinstance(result, fx.Node) or result.target not in _COMPARISONS:
        return result is True
    left, right = (given.get(value, value) for value in arguments(result))
    if isinstance(left, fx.Node) or isinstance(right, fx.Node):
        return False
    return _COMPARISONS[result.target](left, right) is True


def _has_iterated(loop: Loop, fakes: Fakes) -> fx.Node:
    _, _, result = loop.carry(False, f"{loop.node.name}_has_iterated", fakes.number(bool))
    loop.set_output(len(loop.entries) - 1, True)
    return result


_COMPARISONS: dict[Any, Any] = {f: f for f in (operator.lt, operator.le, operator.gt, operator.ge, operator.ne)}


def roots_of(region: fx.GraphModule, entered: Collection[fx.Node] = ()) -> dict[fx.Node, Roots]:
    """Where the memory of each tensor in a region may be from."""
    found: dict[int, Roots] = {}
    of_controls: dict[fx.Node, list[Roots]] = {}
    known: dict[fx.Node, int] = {}
    for node in region.graph.nodes:
        control = control_of(region, node)
        if control is not None:
            handed = [_at(value, known, found) for value in _handed(control)]
            of_controls[node] = _through(control, handed, node in entered)
            continue
        memory = storage_of(node.meta.get("val"))
        if memory is None:
            continue
        known[node] = memory
        if is_result(node):
            source, index = arguments(node)
            found[memory] = found.get(memory, _NONE) | of_controls[source][index]
        elif memory not in found or node.op == "placeholder":
            found[memory] = found.get(memory, _NONE) | {node}
    return {node: found[memory] for node, memory in known.items()}


def _handed(control: Control) -> tuple[Any, ...]:
    return (*control.entries, *control.operands) if isinstance(control, Loop) else control.operands


def _at(value: Any, known: dict[fx.Node, int], found: dict[int, Roots]) -> Roots:
    return found[known[value]] if isinstance(value, fx.Node) and value in known else _NONE


def _through(control: Control, handed: list[Roots], entered: bool) -> list[Roots]:
    """The roots of a branch's or loop's results, given those of what it is handed."""
    if isinstance(control, Branch):
        arms = [_left(arm, handed) for arm in control.arms]
        return [left | right for left, right in zip(*arms, strict=True)]
    count = len(control.entries)
    carried, after = handed, [_NONE] * count
    while True:  # until an iteration adds nothing
        left = _left(control.body, carried)
        after = [old | new for old, new in zip(after, left, strict=True)]
        grown = [*(old | new for old, new in zip(handed[:count], after, strict=True)), *handed[count:]]
        if grown == carried:
            return after if entered else grown[:count]
        carried = grown


def _left(region: fx.GraphModule, handed: list[Roots]) -> list[Roots]:
    """The roots of what a region hands out, given those of its placeholders."""
    given = dict(zip(placeholders(region), handed, strict=True))
    roots = roots_of(region)
    values = [roots.get(value, _NONE) if isinstance(value, fx.Node) else _NONE for value in outputs(region)]
    return [frozenset().union(*(given.get(root, {root}) for root in value)) for value in values]
