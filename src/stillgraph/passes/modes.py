"""torch's modes: an export computes no gradients, and autocast must be part of the graph."""
from __future__ import annotations

from typing import Any

import torch
from torch import fx

from stillgraph.passes.purity import name_of
from stillgraph.passes.regions import all_regions, copied
from stillgraph.program.context import Autocast, Context
from stillgraph.program.program import Program

_GRAD_ONLY = frozenset({"requires_grad_", "retain_grad"})
_enter = torch.amp.autocast_mode._enter_autocast
_exit = torch.amp.autocast_mode._exit_autocast


def settle_modes(program: Program) -> Program:
    """Write autocast into the graph as operations, and drop what is about gradients alone.

    ::

        y = a @ b   [autocast(cpu, bfloat16)]     →     mode = _enter_autocast("cpu", bfloat16, True, True)
                                                        y = a @ b
                                                        _exit_autocast(mode)
    """
    fresh = copied(program)
    for module in all_regions(fresh.graph):
        for node in list(module.graph.nodes):
            if node.op == "call_method" and name_of(node) in _GRAD_ONLY:
                node.replace_all_uses_with(node.args[0])  # type: ignore[arg-type]
                module.graph.erase_node(node)
        _write_autocast(module.graph)
    return fresh


def _write_autocast(graph: fx.Graph) -> None:
    now: tuple[Autocast, ...] = ()
    opened: list[fx.Node] = []
    for node in list(graph.nodes):
        context: Context | None = node.meta.get("context")
        if node.op == "output":
            wanted: tuple[Autocast, ...] = ()
        elif context is None or node.op in ("placeholder", "get_attr") or node.meta.get("bookkeeping"):
            continue
        else:
            wanted = context.autocast
        if wanted != now:
            with graph.inserting_before(node):
                while opened:
                    _mode(graph, _exit, (opened.pop(),))
                opened = [_mode(graph, _enter, (a.device_type, a.dtype, True, a.cache_enabled)) for a in wanted]
            now = wanted


def _mode(graph: fx.Graph, target: Any, args: tuple[Any, ...]) -> fx.Node:
    node = graph.call_function(target, args)
    node.meta["val"] = None
    return node
