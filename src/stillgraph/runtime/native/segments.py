"""Cutting a region into the straight-line stretches that a backend compiles."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.program import exceptions, operations
from stillgraph.program.context import Context
from stillgraph.program.facts.info import info
from stillgraph.program.facts.schemas import RECURRENT, is_custom
from stillgraph.program.facts.writes import name_of

_CONTROL = (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop)
_OURS = tuple(v for v in (*vars(operations).values(), *vars(exceptions).values()) if callable(v))
_DATA_DEPENDENT = frozenset({"item", "tolist", "nonzero", "unique", "masked_select", "numpy", "backward"})
_AUTOGRAD = frozenset(
    {
        *("grad", "apply", "clip_grad_norm_", "clip_grad_value_", "register_hook", "retain_grad"),
        *("requires_grad_", "detach_", "Parameter"),  # what they make is a leaf, which no compiled region gives
    }
)
_SMALLEST = 2


@dataclass(frozen=True)
class Segment:
    """Consecutive tensor operations of a region."""

    nodes: list[fx.Node]

    def build(
        self, module: fx.GraphModule, ambient: Context | None
    ) -> tuple[fx.GraphModule, list[fx.Node], list[fx.Node]]:
        """The segment as a graph module of its own, the nodes it takes, and those it gives."""
        inside = set(self.nodes)
        inputs = list(dict.fromkeys(n for node in self.nodes for n in node.all_input_nodes if n not in inside))
        outputs = [node for node in self.nodes if any(user not in inside for user in node.users)]
        graph = fx.Graph()
        mapped: dict[fx.Node, fx.Node] = {}
        for node in inputs:
            mapped[node] = graph.placeholder(node.name)
            mapped[node].meta.update(node.meta)
        modes = _Modes(graph, ambient)
        for node in self.nodes:
            if node.op != "get_attr":
                modes.switch(node.meta.get("context"))
            mapped[node] = graph.node_copy(node, lambda n: mapped[n])
        modes.switch(ambient)
        graph.output(tuple(mapped[n] for n in outputs))
        return fx.GraphModule(module, graph, class_name="Region"), inputs, outputs


class _Modes:
    """Writes the switching of torch's modes into a graph, as nodes that backends understand."""

    def __init__(self, graph: fx.Graph, ambient: Context | None) -> None:
        self._graph = graph
        self._now = ambient
        self._open: list[fx.Node] = []

    def switch(self, then: Context | None) -> None:
        """Make the following operations run under ``then``."""
        if then is None or self._now is None or then == self._now:
            return
        if then.grad != self._now.grad:
            self._graph.call_function(torch._C._set_grad_enabled, (then.grad,))
        if then.autocast != self._now.autocast:
            while self._open:
                self._graph.call_function(torch.amp.autocast_mode._exit_autocast, (self._open.pop(),))
            for cast in then.autocast:
                self._open.append(
                    self._graph.call_function(
                        torch.amp.autocast_mode._enter_autocast,
                        (cast.device_type, cast.dtype, True, cast.cache_enabled),
                    )
                )
        self._now = then


def split_segments(nodes: list[fx.Node], ambient: Context | None = None) -> Iterator[Any]:
    """The nodes in order, runs of compilable ones gathered into segments.

    Args:
        nodes: of a region.
        ambient: the modes that the program is called in.
    """
    run: list[fx.Node] = []
    sizes = frozenset[Any]().union(*(_symbols(node.meta.get("val")) for node in nodes if not _is_size(node)))
    for node in nodes:
        if _compilable(node, sizes) and not _needs_python(node.meta.get("context"), ambient):
            run.append(node)
            continue
        yield from _close(run)
        run = []
        yield node
    yield from _close(run)


def _close(run: list[fx.Node]) -> list[Any]:
    if sum(1 for n in run if n.op != "get_attr" and n.target is not operator.getitem and not _is_size(n)) >= _SMALLEST:
        return [Segment(run)]
    return list(run)


def _compilable(node: fx.Node, sizes: frozenset[Any]) -> bool:
    """Whether a node is an operation on tensors that depends on nothing but tensors, their sizes and constants.

    Args:
        node: the operation.
        sizes: the symbols in the sizes of tensors.
    """
    if node.op not in ("call_function", "call_method") or node.target in _CONTROL or node.target in _OURS:
        return False
    if node.op == "call_method" and node.target in _DATA_DEPENDENT:
        return False
    if getattr(node.target, "__name__", "") in _DATA_DEPENDENT or (
        node.meta.get("bookkeeping") and _from_control(node)
    ):
        return False
    recurrent = name_of(node) in RECURRENT  # Inductor takes it apart: other numbers are drawn, or it fails at it
    if _uses_autograd(node) or recurrent or is_custom(node.target):
        return False  # a backend would drop a custom operator of which nothing is used, and join two that are alike
    if node.target is operator.getitem and (_from_several(node, sizes) or _takes_at(node)):
        return False
    value, given = node.meta.get("val"), [n.meta.get("val") for n in node.all_input_nodes]
    if not all(_is_taken(each, sizes) for each in (value, *given)):
        return False
    return _symbols(value) <= frozenset[Any]().union(*map(_symbols, given))  # else the run finds a size by the data


def _takes_at(node: fx.Node) -> bool:
    """Whether a tensor is indexed by an integer that is a tensor: Python reads such an index, and compilers do not."""
    index: Any = node.args[1]
    values = [each.meta.get("val") for each in (index if isinstance(index, tuple) else (index,)) if _is_node(each)]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return any(value.dim() == 0 and not value.is_floating_point() for value in tensors)


def _is_node(value: Any) -> bool:
    return isinstance(value, fx.Node)


def _uses_autograd(node: fx.Node) -> bool:
    """Whether an operation works on autograd's graph or on gradients, which a compiled region does not show."""
    if node.target is getattr:
        return node.args[1] in ("grad", "_grad")
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return name in _AUTOGRAD


def _needs_python(context: Context | None, ambient: Context | None) -> bool:
    """Whether an operation runs under a mode that no graph can switch to."""
    if context is None:
        return False
    turned = ambient is not None and context.switches != ambient.switches
    return context.inference or context.hooks is not None or turned


def _from_control(node: fx.Node) -> bool:
    """Whether a node takes one out of several results of what no backend compiles."""
    source = node.args[0] if node.args else None
    return isinstance(source, fx.Node) and (source.target in _CONTROL or source.target in _OURS)


def _from_several(node: fx.Node, sizes: frozenset[Any]) -> bool:
    """Whether a node takes one out of several results of what is not compiled: a compiled region takes tensors."""
    source = node.args[0]
    if not isinstance(source, fx.Node) or isinstance(source.meta.get("val"), torch.Tensor):
        return False
    return not _compilable(source, sizes)


def _is_taken(value: Any, sizes: frozenset[Any]) -> bool:
    """Whether a compiled region takes a value: tensors, and whole numbers computed from their sizes."""
    if isinstance(value, torch.Tensor):
        return not (info(value).may_be_missing or info(value).may_be_number)
    if isinstance(value, torch.SymInt):
        return _symbols(value) <= sizes
    return isinstance(value, (tuple, list)) and bool(value) and all(_is_taken(each, sizes) for each in value)


def _is_size(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (int, torch.SymInt))


def _symbols(value: Any) -> frozenset[Any]:
    """The symbols in a whole number, or in the sizes of tensors."""
    if isinstance(value, torch.SymInt):
        return frozenset(value.node.expr.free_symbols)
    parts = value.shape if isinstance(value, torch.Tensor) else value if isinstance(value, (tuple, list)) else ()
    return frozenset[Any]().union(*map(_symbols, parts))
