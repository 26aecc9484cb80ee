"""The regions of a program, prepared for the batched run: what is known of each operation before any value is."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from stillgraph.program.blocks import region_of
from stillgraph.program.context import Context
from stillgraph.program.facts.schemas import draws
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.graphs import arguments
from stillgraph.program.interpreter import attribute
from stillgraph.program.operations import invoke
from stillgraph.runtime.batched.operations import AS_TRUTHS, ELEMENTWISE

Fetch = Callable[[dict[fx.Node, Any]], Any]


@dataclass(frozen=True, eq=False)
class Step:
    """A node of a region.

    Attributes:
        node: it.
        target: the function or the method's name by which rules know it; for a constant None.
        function: what it calls.
        args, kwargs: give its arguments, of the values so far.
        draws: whether it may draw at random.
        written: the tensors that it writes to.
        context: the modes that it was recorded under; None where they do not matter.
        done_with: the nodes whose values nothing asks for behind it.
        part: for a value among those that a branch or loop gives, the node of that and the place; else None.
        actions: what was found to be right for arguments of one kind, by that kind.
    """

    node: fx.Node
    target: Any
    function: Callable[..., Any]
    args: Fetch
    kwargs: Fetch
    draws: bool
    written: tuple[fx.Node, ...]
    context: Context | None
    done_with: tuple[fx.Node, ...]
    part: tuple[fx.Node, int] | None = None
    actions: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Region:
    """A straight-line piece of a program: its inputs, its operations and what gives its outputs.

    Attributes:
        inputs: its placeholders.
        regions: the regions of its branches and loops, by the nodes that stand for them.
        steps: its operations.
        outputs: gives what it returns.
        weight: how many operations it has, where all of them are on elements, and cannot fail; else None.
    """

    inputs: tuple[fx.Node, ...]
    regions: dict[fx.Node, Any]
    steps: tuple[Step, ...]
    outputs: Fetch
    weight: int | None


def prepared(module: fx.GraphModule, contexts: dict[Any, Context]) -> Region:
    """A region of a program, prepared.

    Args:
        module: its graph.
        contexts: those met so far: equal ones are one object afterwards.
    """
    last: dict[fx.Node, fx.Node] = {}
    nodes = list(module.graph.nodes)
    for node in nodes:
        for used in node.all_input_nodes:
            last[used] = node
    done: dict[fx.Node, list[fx.Node]] = {}
    for used, user in last.items():
        done.setdefault(user, []).append(used)
    inputs, steps, inner = [], [], {}
    outputs: Fetch = _nothing
    for node in nodes:
        if node.op == "placeholder":
            inputs.append(node)
        elif node.op == "output":
            outputs = _fetcher(arguments(node)[0])
        elif node.op == "get_attr" and isinstance(attribute(module, node.target), fx.GraphModule):
            inner[node] = attribute(module, node.target)
        else:
            steps.append(_step(module, node, tuple(done.get(node, ())), contexts))
    return Region(tuple(inputs), inner, tuple(steps), outputs, _weight(module))


_GIVING_TUPLES = (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop)


def _part(node: fx.Node) -> tuple[fx.Node, int] | None:
    """Of which branch or loop a node takes one of the values."""
    if node.target is not operator.getitem:
        return None
    on, index = arguments(node)
    if not isinstance(on, fx.Node) or on.target not in _GIVING_TUPLES or type(index) is not int:
        return None
    return on, index


def _weight(module: fx.GraphModule) -> int | None:
    """How many operations on elements a region has, those of its branches included; None where it has others."""
    total = 0
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output", "get_attr"):
            continue
        target: Any = node.target
        if target is torch.ops.higher_order.cond:
            weights = [_weight(region_of(module, arm)) for arm in arguments(node)[1:3]]
        elif _part(node) is not None:
            weights = [0]
        else:
            weights = [1 if target in ELEMENTWISE or target in AS_TRUTHS else None]
        for each in weights:
            if each is None:
                return None
            total += each
    return total


def _step(
    module: fx.GraphModule, node: fx.Node, done_with: tuple[fx.Node, ...], contexts: dict[Any, Context]
) -> Step:
    target, function = _called(module, node)
    if node.op == "get_attr":
        return Step(node, None, function, _nothing, _no_names, False, (), None, done_with)
    context = None if node.meta.get("bookkeeping") else node.meta.get("context")
    return Step(
        node,
        target,
        function,
        _fetcher(arguments(node)),
        _fetcher(dict(node.kwargs)) if node.kwargs else _no_names,
        draws(node) or node.target is invoke,
        tuple(written_arguments(node)),
        None if context is None else contexts.setdefault(context, context),
        done_with,
        _part(node),
    )


def _called(module: fx.GraphModule, node: fx.Node) -> tuple[Any, Callable[..., Any]]:
    if node.op == "get_attr":
        value = attribute(module, str(node.target))
        return None, lambda: value
    if node.op == "call_method":
        name = str(node.target)
        return name, lambda on, *args, **kwargs: getattr(on, name)(*args, **kwargs)
    function: Any = node.target
    return function, function


# ---- arguments
def _nothing(values: dict[fx.Node, Any]) -> tuple[Any, ...]:
    return ()


def _no_names(values: dict[fx.Node, Any]) -> dict[str, Any]:
    return {}


def _fetcher(given: Any) -> Fetch:
    """What gives arguments; fx's immutable containers become plain ones, for operations may keep and change them."""
    if isinstance(given, fx.Node):
        return lambda values: values[given]
    if isinstance(given, torch.Size):
        return lambda values: given
    if isinstance(given, (tuple, list)):
        kind = tuple if isinstance(given, tuple) else list
        if all(isinstance(each, fx.Node) for each in given):
            nodes: list[Any] = list(given)
            return lambda values: kind([values[each] for each in nodes])
        parts = [_fetcher(each) for each in given]
        return lambda values: kind([each(values) for each in parts])
    if isinstance(given, dict):
        entries = {key: _fetcher(each) for key, each in given.items()}
        return lambda values: {key: each(values) for key, each in entries.items()}
    if isinstance(given, slice):
        bounds = [_fetcher(each) for each in (given.start, given.stop, given.step)]
        return lambda values: slice(*(each(values) for each in bounds))
    return lambda values: given
