"""Whether a program does nothing but compute.

A call of such a program that failed half way may be made once more: nothing is done twice.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

import torch
from torch import fx

from stillgraph.passes.purity import is_local
from stillgraph.program import operations
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.program.graphs import regions
from stillgraph.program.operations import (
    EFFECTFUL,
    assert_,
    checkpointed,
    closed_over,
    hooked_inputs,
    hooked_outputs,
    keep,
    module_hooks,
    raise_,
    raise_made,
    recurse,
    recursion,
    reraise,
    try_,
)
from stillgraph.program.schemas import draws, is_known
from stillgraph.program.writes import written_arguments

_OURS = frozenset(value for value in vars(operations).values() if callable(value)) - EFFECTFUL | {
    *(assert_, raise_, raise_made, reraise, try_, keep, recursion, recurse, checkpointed)
}
_WITH_HOOKS = frozenset({closed_over, module_hooks, hooked_inputs, hooked_outputs})
_METHODS_OF_LISTS = frozenset({"index", "count"})
_MODULES = frozenset({"_operator", "math", "builtins"})


def only_computes(module: fx.GraphModule) -> bool:
    """Whether a program leaves nothing behind but its results.

    Only what is known to do nothing but compute counts: Python's operators, torch's own operators that draw nothing and
    write to no memory but what the program itself has made, and what a program is built of. Anything else may leave
    something: operators of the user's, whatever autograd differentiates or calls, hooks.
    """
    return all(map(_region_only_computes, regions(module)))


def _region_only_computes(region: fx.GraphModule) -> bool:
    nodes = region.graph.nodes
    outside = {place for node in nodes if not _makes(node) for place in _memory(node)}
    return all(_leaves_nothing(node) and _writes_apart(node, outside) for node in nodes)


def _leaves_nothing(node: fx.Node) -> bool:
    context = node.meta.get("context")
    if context is not None and context.hooks is not None:
        return False
    if node.op in ("placeholder", "output", "get_attr") or node.target in CONSTRUCTS:
        return True
    if node.op == "call_function" and node.target in _OURS:
        return node.target not in _WITH_HOOKS
    return _is_of_python_or_torch(node) and is_local(node) and not draws(node)


def _is_of_python_or_torch(node: fx.Node) -> bool:
    """Whether a call is of Python's operators or of torch's."""
    if node.op == "call_function":
        return is_known(node.target) or getattr(node.target, "__module__", "") in _MODULES
    on = node.args[0] if node.args else None
    if isinstance(on, fx.Node) and isinstance(on.meta.get("val"), torch.Tensor):
        return is_known(node.target)
    return node.target in _METHODS_OF_LISTS


def _makes(node: fx.Node) -> bool:
    """Whether what a node gives is in memory of its own, or a view, as its stand-in is."""
    if node.op not in ("call_function", "call_method") or node.target in CONSTRUCTS:
        return False
    on = node.args[0] if node.args else None
    if node.target is operator.getitem and isinstance(on, fx.Node) and not isinstance(on.meta.get("val"), torch.Tensor):
        return _makes(on)
    return _is_of_python_or_torch(node)


def _writes_apart(node: fx.Node, outside: set[int | None]) -> bool:
    """Whether a node writes, if at all, to memory that the region it stands in has made."""
    written = {place for each in written_arguments(node) for place in _memory(each)}
    return None not in written and not written & outside


def _memory(node: fx.Node) -> Iterator[int | None]:
    """Which memory the tensors are in that a node gives; None where that cannot be told."""
    for value in torch.utils._pytree.tree_leaves(node.meta.get("val")):
        if isinstance(value, torch.Tensor):
            strided = value.layout is torch.strided
            yield value.untyped_storage()._cdata if strided else None
