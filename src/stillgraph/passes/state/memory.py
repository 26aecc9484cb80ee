"""Whose memory reaches which place: through branches, through iterations of loops, and through lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.regions import Branch, Loop, control_of, is_result, outputs, placeholders
from stillgraph.passes.regions.values import storage_of, value_of
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import arguments
from stillgraph.program.types import ListType

Roots = frozenset[Any]  # nodes by which memory was made, or came into the program
_NONE: Roots = frozenset()


@dataclass
class Flow:
    """What is known of a program's memory.

    Attributes:
        written: for each root that an operation writes in place, such an operation.
        listed: the roots of tensors that are put into a list of unknown length, or taken out of one.
    """

    written: dict[Any, fx.Node] = field(default_factory=dict)
    listed: set[Any] = field(default_factory=set)

    def written_in_lists(self) -> fx.Node | None:
        """An operation that writes to a tensor which is, or was, or will be in a list."""
        return next((node for root, node in self.written.items() if root in self.listed), None)


def flow_of(module: fx.GraphModule) -> Flow:
    """Follow the memory of a program from the placeholders of its outermost region."""
    flow = Flow()
    _region(module, [frozenset({node}) for node in placeholders(module)], flow)
    return flow


def refuse_written_elements(module: fx.GraphModule) -> None:
    """Refuse to keep copies of a list's elements where one is written: the other would not know.

    Raises:
        ExportError: a program writes in place to an element of a list of which only the run knows the length.
    """
    writer = flow_of(module).written_in_lists()
    if writer is not None:
        message = "a tensor is written in place that is an element of a list of which only the run knows the length"
        hint = "Put a copy into the list (x.clone()), or write out of place (x = x + 1)."
        raise refuse("SG402", message, location=writer.meta.get("location"), hint=hint)


def _region(module: fx.GraphModule, given: list[Roots], flow: Flow) -> list[Roots]:
    """The roots of what a region hands out."""
    roots: dict[fx.Node, Roots] = dict(zip(placeholders(module), given, strict=True))
    by_memory: dict[int, Roots] = {}
    of_controls: dict[fx.Node, list[Roots]] = {}

    def at(value: Any) -> Roots:
        return roots.get(value, _NONE) if isinstance(value, fx.Node) else _NONE

    for node in module.graph.nodes:
        memory = storage_of(node.meta.get("val"))
        if (control := control_of(module, node)) is not None:
            of_controls[node] = _branch(control, at, flow) if isinstance(control, Branch) else _loop(control, at, flow)
        elif is_result(node):
            source, index = arguments(node)
            roots[node] = of_controls[source][index]
        elif node.op != "placeholder":
            roots[node] = _of_operation(node, by_memory.get(memory, _NONE) if memory is not None else _NONE, at, flow)
        if memory is not None and node in roots:
            by_memory[memory] = by_memory.get(memory, _NONE) | roots[node]
            roots[node] = by_memory[memory]
        for target in written_arguments(node):
            for root in at(target):
                flow.written.setdefault(root, node)
    return [at(value) for value in outputs(module)]


def _of_operation(node: fx.Node, known: Roots, at: Callable[[Any], Roots], flow: Flow) -> Roots:
    lists = [given for given in node.all_input_nodes if isinstance(value_of(given), ListType)]
    value = value_of(node)
    if isinstance(value, ListType):
        held = frozenset().union(*map(at, node.all_input_nodes))
        flow.listed.update(held)
        return held
    if storage_of(value) is None:
        return _NONE
    if lists and node.op == "call_function" and getattr(node.target, "__name__", "") in ("getitem", "max", "min"):
        taken = frozenset().union({node}, *map(at, lists))  # an element: the tensor itself
        flow.listed.update(taken)
        return known | taken
    return known or frozenset({node})


def _branch(branch: Branch, at: Callable[[Any], Roots], flow: Flow) -> list[Roots]:
    handed = [at(value) for value in branch.operands]
    left, right = (_region(arm, handed, flow) for arm in branch.arms)
    return [a | b for a, b in zip(left, right, strict=True)]


def _loop(loop: Loop, at: Callable[[Any], Roots], flow: Flow) -> list[Roots]:
    carried = [at(value) for value in loop.entries]
    operands = [at(value) for value in loop.operands]
    while True:  # until an iteration adds nothing
        _region(loop.test, [*carried, *operands], flow)
        left = _region(loop.body, [*carried, *operands], flow)
        grown = [old | new for old, new in zip(carried, left, strict=True)]
        if grown == carried:
            return carried
        carried = grown
