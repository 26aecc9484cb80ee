"""Whose memory reaches which place: through branches, through iterations of loops, and through lists."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.regions import Branch, Loop, attribute, control_of, outputs, placeholders
from stillgraph.passes.regions.values import storage_of, value_of
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.operations import keep, try_
from stillgraph.program.types import ListType

COPIED = "copied"
"""In the meta of a node: with which others it makes a deep copy (`Copying`)."""

Roots = frozenset[Any]  # nodes by which memory was made, or came into the program
_NONE: Roots = frozenset()


class Copying:
    """One call of ``copy.deepcopy``: what is copied in it shares memory with the rest as the originals do.

    Attributes:
        sources: the tensors, and lists of unknown length, that it has copied.
    """

    def __init__(self) -> None:
        self.sources: list[Any] = []


@dataclass
class Flow:
    """What is known of a program's memory.

    Attributes:
        copied: for each deep copy, the roots of what each of its nodes copies.
        written: for each root that an operation writes in place, such an operation.
        writers: all of these operations.
        listed: the roots of tensors that are put into a list of unknown length, or taken out of one.
        kept: by the name of a `try_`, the roots of what its handler may find.
    """

    copied: dict[Copying, dict[fx.Node, Roots]] = field(default_factory=dict)
    written: dict[Any, fx.Node] = field(default_factory=dict)
    writers: dict[Any, dict[fx.Node, None]] = field(default_factory=dict)
    listed: set[Any] = field(default_factory=set)
    kept: dict[str, list[Roots]] = field(default_factory=dict)

    def written_in_lists(self) -> fx.Node | None:
        """An operation that writes to a tensor which is, or was, or will be in a list."""
        return next((node for root, node in self.written.items() if root in self.listed), None)


def makes_copies(module: fx.GraphModule) -> bool:
    """Whether a program makes deep copies."""
    return any(COPIED in node.meta for region in regions(module) for node in region.graph.nodes)


def sharing_copy(module: fx.GraphModule) -> fx.Node | None:
    """What makes a part of a deep copy which may share memory with another part, where the program's copies do not."""
    for copies in flow_of(module).copied.values():
        for (node, roots), (other, others) in itertools.combinations(copies.items(), 2):
            if not roots.isdisjoint(others) and not _lie_apart(value_of(node.args[0]), value_of(other.args[0])):
                return node
    return None


def copied_inputs(module: fx.GraphModule) -> list[list[fx.Node]]:
    """For each deep copy, the inputs of a program whose memory it copies, where they are several."""
    inputs = placeholders(module)
    parts = (frozenset().union(*copies.values()) for copies in flow_of(module).copied.values())
    found = ([node for node in inputs if node in roots] for roots in parts)
    return [each for each in found if len(each) > 1]


def _lie_apart(left: Any, right: Any) -> bool:
    """Whether two tensors are known to be different parts of one memory."""
    memory = storage_of(left)
    if memory is None or memory != storage_of(right):
        return False
    places = [(each.storage_offset(), _extent(each)) for each in (left, right)]
    if any(type(number) is not int for place in places for number in place):
        return False
    (first, size), (second, _) = sorted(places)
    return bool(first + size <= second)


def _extent(tensor: Any) -> Any:
    """From the first to the last element of a tensor in its memory."""
    return sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) + 1


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
        elif node.target is try_:
            of_controls[node] = _attempt(module, node, at, flow)
        elif node.target is keep:
            name, values = arguments(node)
            before = flow.kept.get(name) or [_NONE] * len(values)
            flow.kept[name] = [old | at(value) for old, value in zip(before, values, strict=True)]
        elif node.target is operator.getitem and arguments(node)[0] in of_controls:
            source, index = arguments(node)
            roots[node] = of_controls[source][index]
        elif node.op != "placeholder":
            roots[node] = _of_operation(node, by_memory.get(memory, _NONE) if memory is not None else _NONE, at, flow)
        if memory is not None and node in roots:
            by_memory[memory] = by_memory.get(memory, _NONE) | roots[node]
            roots[node] = by_memory[memory]
        if (copying := node.meta.get(COPIED)) is not None:
            copies = flow.copied.setdefault(copying, {})
            copies[node] = copies.get(node, _NONE) | at(node.args[0])
        for target in written_arguments(node):
            for root in at(target):
                flow.written.setdefault(root, node)
                flow.writers.setdefault(root, {})[node] = None
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


def _attempt(module: fx.GraphModule, node: fx.Node, at: Callable[[Any], Roots], flow: Flow) -> list[Roots]:
    name, *graphs, _, operands = arguments(node)
    body, handler = (attribute(module, graph) for graph in graphs)
    handed = [at(value) for value in operands]
    left = _region(body, handed, flow)
    unknown = len(placeholders(handler)) - 1 - len(handed)  # of the exception there is no memory
    right = _region(handler, [_NONE, *flow.kept.get(name, [_NONE] * unknown), *handed], flow)
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
