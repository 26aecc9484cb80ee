"""Surgery on regions: copies of a program's graph, and its branches and loops as objects one can add values to."""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from stillgraph.passes.regions.lazy_code import lazy_module
from stillgraph.program.graphs import arguments
from stillgraph.program.program import Program

COND = torch.ops.higher_order.cond
WHILE = torch.ops.higher_order.while_loop


def copied(program: Program) -> Program:
    """A program whose graphs may be changed freely; constants and tensors are shared."""
    return replace(program, graph=copied_module(program.graph))


def copied_module(module: fx.GraphModule) -> fx.GraphModule:
    """A copy of a region and of the regions in it."""
    fresh = lazy_module(module, copy.deepcopy(module.graph), "Region")
    for name, child in module.named_children():
        if isinstance(child, fx.GraphModule):
            setattr(fresh, name, copied_module(child))
    for node in fresh.graph.nodes:
        if node.op == "get_attr":
            node.meta["val"] = attribute(fresh, node)
    return fresh


def inlined(module: fx.GraphModule, node: fx.Node, body: fx.GraphModule, given: Sequence[Any]) -> list[Any]:
    """Copy what a region does to where the graph inserts now.

    Args:
        module: the region to copy to.
        node: by whose name the constants and inner regions of the other region are kept.
        body: the region to copy.
        given: what stands for its placeholders.

    Returns:
        What it gives: nodes and constants.
    """
    made: dict[fx.Node, Any] = dict(zip(placeholders(body), given, strict=True))
    for inner in body.graph.nodes:
        if inner.op in ("placeholder", "output"):
            continue
        made[inner] = module.graph.node_copy(inner, lambda n: made[n])
        if inner.op == "get_attr":
            name = f"{node.name}_{str(inner.target).replace('.', '_')}"
            made[inner].target = add_attribute(module, name, attribute(body, inner))
            made[inner].meta["val"] = attribute(module, made[inner])
    return [made.get(value, value) if isinstance(value, fx.Node) else value for value in outputs(body)]


def attribute(module: fx.GraphModule, node: fx.Node) -> Any:
    """What a ``get_attr`` node stands for."""
    value: Any = module
    for name in str(node.target).split("."):
        value = getattr(value, name)
    return value


def add_attribute(module: fx.GraphModule, name: str, value: Any) -> str:
    """Give a region a constant, or a copy of another region.

    Returns:
        The name it has: the given one, unless something else has it.
    """
    names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(1)))
    is_region = isinstance(value, fx.GraphModule)
    free = next(n for n in names if not hasattr(module, n) or (getattr(module, n) is value and not is_region))
    setattr(module, free, copied_module(value) if is_region else value)
    return free


def placeholders(module: fx.GraphModule) -> list[fx.Node]:
    """A region's placeholders in order."""
    return list(module.graph.find_nodes(op="placeholder"))


def outputs(module: fx.GraphModule) -> list[Any]:
    """A region's outputs: nodes and constants."""
    return list(arguments(module.graph.output_node())[0])


def set_outputs(module: fx.GraphModule, values: list[Any]) -> None:
    """Give a region other outputs."""
    module.graph.output_node().args = (tuple(values),)


def add_placeholder(module: fx.GraphModule, index: int, name: str, like: fx.Node, value: Any) -> fx.Node:
    """A new placeholder at a position; ``like`` is the node outside whose metadata it takes."""
    known = placeholders(module)
    graph = module.graph
    first = next(iter(graph.nodes))
    with graph.inserting_before(known[index] if index < len(known) else known[-1].next if known else first):
        node = graph.placeholder(name)
    node.target = node.name
    node.meta.update({k: v for k, v in like.meta.items() if k in ("location", "context")}, val=value)
    return node


@dataclass(frozen=True)
class Branch:
    """A ``cond`` node and the region around it."""

    module: fx.GraphModule
    node: fx.Node

    @property
    def arms(self) -> tuple[fx.GraphModule, fx.GraphModule]:
        """The regions of the two arms."""
        return attribute(self.module, arguments(self.node)[1]), attribute(self.module, arguments(self.node)[2])

    @property
    def regions(self) -> tuple[fx.GraphModule, ...]:
        """All regions of the node."""
        return self.arms

    @property
    def operands(self) -> tuple[Any, ...]:
        """What the arms use from outside."""
        held: tuple[Any, ...] = arguments(self.node)[3]
        return held

    def add_operand(self, value: fx.Node) -> tuple[fx.Node, ...]:
        """Hand one more value to the arms; its placeholders in them."""
        operands = self.operands
        if value in operands:
            index = operands.index(value)
            return tuple(placeholders(arm)[index] for arm in self.arms)
        self.node.args = (*self.node.args[:3], (*operands, value))
        return tuple(add_placeholder(arm, len(operands), value.name, value, value.meta["val"]) for arm in self.arms)

    def drop_operand(self, index: int) -> None:
        """Take an operand away whose placeholders are not used any more."""
        for arm in self.arms:
            arm.graph.erase_node(placeholders(arm)[index])
        operands = self.operands
        self.node.args = (*self.node.args[:3], (*operands[:index], *operands[index + 1 :]))

    def add_output(self, left: Any, right: Any, value: Any) -> fx.Node:
        """Hand one more value out of the arms.

        Args:
            left, right: what the arms give: nodes in them, or constants.
            value: stands for the result.

        Returns:
            The node of the result.
        """
        for arm, given in zip(self.arms, (left, right)):
            set_outputs(arm, [*outputs(arm), given])
        return add_result(self.node, value)

    def keep_outputs(self, kept: Sequence[int]) -> None:
        """Hand nothing out but the results at some positions; nobody uses the others."""
        for arm in self.arms:
            given = outputs(arm)
            set_outputs(arm, [given[index] for index in kept])
        for index, result in results(self.node).items():
            if index in kept:
                result.args = (self.node, kept.index(index))
            else:
                self.node.graph.erase_node(result)
        self.node.meta["val"] = tuple(self.node.meta["val"][index] for index in kept)


@dataclass(frozen=True)
class Loop:
    """A ``while_loop`` node and the region around it."""

    module: fx.GraphModule
    node: fx.Node

    @property
    def test(self) -> fx.GraphModule:
        """The region of the test."""
        return attribute(self.module, arguments(self.node)[0])  # type: ignore[no-any-return]  # of Any

    @property
    def body(self) -> fx.GraphModule:
        """The region of the body."""
        return attribute(self.module, arguments(self.node)[1])  # type: ignore[no-any-return]  # of Any

    @property
    def regions(self) -> tuple[fx.GraphModule, ...]:
        """All regions of the node."""
        return self.test, self.body

    @property
    def entries(self) -> tuple[Any, ...]:
        """What is carried into the first iteration."""
        held: tuple[Any, ...] = arguments(self.node)[2]
        return held

    @property
    def operands(self) -> tuple[Any, ...]:
        """What the regions use from outside."""
        held: tuple[Any, ...] = arguments(self.node)[3]
        return held

    def add_operand(self, value: fx.Node) -> tuple[fx.Node, fx.Node]:
        """Hand one more value to test and body; its placeholders in them."""
        operands = self.operands
        if value in operands:
            index = len(self.entries) + operands.index(value)
            return placeholders(self.test)[index], placeholders(self.body)[index]
        self.node.args = (*self.node.args[:3], (*operands, value))
        index = len(self.entries) + len(operands)
        test, body = (add_placeholder(r, index, value.name, value, value.meta["val"]) for r in self.regions)
        return test, body

    def drop_operand(self, index: int) -> None:
        """Take an operand away whose placeholders are not used any more."""
        for region in self.regions:
            region.graph.erase_node(placeholders(region)[len(self.entries) + index])
        operands = self.operands
        self.node.args = (*self.node.args[:3], (*operands[:index], *operands[index + 1 :]))

    def carry(self, entry: Any, name: str, value: Any) -> tuple[fx.Node, fx.Node, fx.Node]:
        """Carry one more value; the body hands it on unchanged until `set_output`.

        Args:
            entry: before the first iteration: a node, or a constant.
            name: of the value.
            value: stands for it.

        Returns:
            Its placeholders in test and body, and the node of the result.
        """
        index = len(self.entries)
        test, body = (add_placeholder(region, index, name, self.node, value) for region in self.regions)
        self.node.args = (*self.node.args[:2], (*self.entries, entry), self.operands)
        set_outputs(self.body, [*outputs(self.body), body])
        return test, body, add_result(self.node, value)

    def set_output(self, index: int, value: Any) -> None:
        """What an iteration leaves in the carried place ``index``."""
        values = outputs(self.body)
        values[index] = value
        set_outputs(self.body, values)


Control = Branch | Loop


def replace_uses(old: fx.Node, new: fx.Node) -> None:
    """Let everything that uses ``old`` use ``new``, which is made of it."""
    old.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)


def replace_by(node: fx.Node, value: Any) -> None:
    """Let a node's users use a value in its place, which may be a constant, and take the node away."""
    for user in list(node.users):
        user.args = fx.map_arg(user.args, lambda n: value if n is node else n)
        user.kwargs = fx.map_arg(user.kwargs, lambda n: value if n is node else n)
    node.graph.erase_node(node)


def add_result(node: fx.Node, value: Any) -> fx.Node:
    """The node of one more result of a branch or loop."""
    index = len(node.meta["val"])
    node.meta["val"] = (*node.meta["val"], value)
    last = max((user for user in node.users if user.target is operator.getitem), default=node)
    with node.graph.inserting_after(last):
        result = node.graph.call_function(operator.getitem, (node, index))
    result.meta.update(node.meta, val=value, bookkeeping=True)
    return result


def results(node: fx.Node) -> dict[int, fx.Node]:
    """The nodes of a branch's or loop's results, by position; those that nobody uses may be missing."""
    return {arguments(user)[1]: user for user in node.users if user.target is operator.getitem}


def control_of(module: fx.GraphModule, node: fx.Node) -> Control | None:
    """The branch or loop that a node is, if it is one."""
    if node.target is COND:
        return Branch(module, node)
    return Loop(module, node) if node.target is WHILE else None


def controls(module: fx.GraphModule) -> Iterator[Control]:
    """The branches and loops of a region, in order."""
    for node in list(module.graph.nodes):
        control = control_of(module, node)
        if control is not None:
            yield control


def all_regions(module: fx.GraphModule) -> Iterator[fx.GraphModule]:
    """Every region of a program, inner ones first, the given one last."""
    for control in controls(module):
        for region in control.regions:
            yield from all_regions(region)
    yield module


def all_nodes(module: fx.GraphModule) -> Iterator[fx.Node]:
    """Every node of a region, each branch or loop followed by those inside it."""
    for node in module.graph.nodes:
        yield node
        control = control_of(module, node)
        for region in () if control is None else control.regions:
            yield from all_nodes(region)


def is_result(node: fx.Node) -> bool:
    """Whether a node is one of the results of a branch or loop."""
    source = arguments(node)[0] if node.target is operator.getitem else None
    return isinstance(source, fx.Node) and source.target in (COND, WHILE)


def call(anchor: fx.Node, target: Any, args: tuple[Any, ...], value: Any, **kwargs: Any) -> fx.Node:
    """A new operation where the graph inserts now; ``anchor`` is the node whose line and modes it takes."""
    op = "call_method" if isinstance(target, str) else "call_function"
    node = anchor.graph.create_node(op, target, args, kwargs)
    node.meta.update({k: v for k, v in anchor.meta.items() if k in ("location", "context")}, val=value)
    return node
