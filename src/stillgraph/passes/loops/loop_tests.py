"""Conditions of loops that raise: what they raise is raised before the loop, and at the end of each iteration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.exceptions.raising import SITES
from stillgraph.passes.regions.marks import attempt
from stillgraph.passes.regions.operands import bind_constants
from stillgraph.passes.regions.purity import is_pure
from stillgraph.passes.regions.regions import (
    Loop,
    add_attribute,
    all_nodes,
    all_regions,
    attribute,
    control_of,
    controls,
    copied,
    copied_module,
    outputs,
    placeholders,
)
from stillgraph.program.program import Program


def check_before_tests(program: Program) -> Program:
    """Move what the condition of a loop raises out of it: a condition hands out a truth value alone.

    ::

        while 7 // k > 1:     →     require(k != 0)
            k = k - 1               while 7 // k > 1:
                                        k = k - 1
                                        require(k != 0)

    Raises:
        ExportError: what raises there depends on an operation that must not run twice, or a ``try`` handles it.
    """
    if not any(_raising(loop.test) for module in all_regions(program.graph) for loop in _loops(module)):
        return program
    fresh = copied(program)
    for module in list(all_regions(fresh.graph)):
        for loop in _loops(module):
            if _raising(loop.test):
                _move(loop)
    return fresh


def _loops(module: fx.GraphModule) -> list[Loop]:
    return [control for control in controls(module) if isinstance(control, Loop)]


def _raising(module: fx.GraphModule) -> bool:
    return any(node.target in SITES for node in all_nodes(module))


def _move(loop: Loop) -> None:
    needed = _needed(loop.test)
    count, handed = len(loop.entries), len(loop.operands)
    with loop.module.graph.inserting_before(loop.node):
        _copy(needed, loop.test, loop.module, [*loop.entries, *loop.operands])
    body = loop.body
    operands = placeholders(body)[count : count + handed]
    with body.graph.inserting_before(body.graph.output_node()):
        _copy(needed, loop.test, body, [*outputs(body), *operands])
    for module in all_regions(loop.test):
        for node in list(module.graph.nodes):
            if node.target in SITES:
                module.graph.erase_node(node)


def _needed(test: fx.GraphModule) -> list[fx.Node]:
    """What of a condition raises, and what that depends on, in order."""
    kept: set[fx.Node] = set()
    for node in reversed(test.graph.nodes):
        if node.op in ("placeholder", "output"):
            continue
        inner = _inside(test, node)
        if node in kept or any(each.target in SITES for each in inner):
            kept.add(node)
            kept.update(given for given in node.all_input_nodes if given.op != "placeholder")
            _require_repeatable(inner)
    return [node for node in test.graph.nodes if node in kept]


def _inside(test: fx.GraphModule, node: fx.Node) -> list[fx.Node]:
    control = control_of(test, node)
    return [node] if control is None else [node, *(each for arm in control.regions for each in all_nodes(arm))]


def _require_repeatable(nodes: Iterable[fx.Node]) -> None:
    for node in nodes:
        if node.op in ("placeholder", "output", "get_attr") or node.target in SITES:
            continue
        if node.target is attempt or not is_pure(node):
            what = "handles an exception" if node.target is attempt else "draws, writes or prints besides"
            message = f"the condition of a loop raises, and {what}"
            hint = "Compute it in the loop: while True, and break."
            raise refuse("SG402", message, location=node.meta.get("location"), hint=hint)


def _copy(nodes: list[fx.Node], test: fx.GraphModule, to: fx.GraphModule, given: list[Any]) -> None:
    """Copy nodes of a condition to where a graph inserts now; ``given`` stands for its placeholders."""
    made: dict[fx.Node, Any] = dict(zip(placeholders(test), given, strict=True))
    for node in nodes:
        fresh = made[node] = to.graph.node_copy(node, lambda each: made[each])
        if node.op == "get_attr":
            held = attribute(test, node)
            held = copied_module(held) if isinstance(held, fx.GraphModule) else held  # what it is handed differs
            fresh.target = add_attribute(to, f"checked_{str(node.target).replace('.', '_')}", held)
            fresh.meta["val"] = attribute(to, fresh)
        control = control_of(to, fresh)
        if control is not None:
            bind_constants(control)
