"""Whether a call whose program failed half way may be made once more, in plain PyTorch.

A program writes to Python's state when it is done, and it calls ``__exit__`` only where a block comes to its end or
raises by itself. Where one of torch's operations fails, eager PyTorch has written what came before, and has told the
context managers. A program that until then has done nothing but compute can leave all of that to eager PyTorch. Of any
other, what it has written by then is carried out (`runtime.so_far`); blocks that were open are not ended.
"""

from __future__ import annotations

import torch
from torch import fx

from stillgraph.passes.purity import is_pure
from stillgraph.program import operations
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.program.context import are_hooks_on
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
from stillgraph.program.program import Program
from stillgraph.program.schemas import is_known
from stillgraph.program.writes import writes_in_place

_OURS = frozenset(value for value in vars(operations).values() if callable(value)) - EFFECTFUL | {
    *(assert_, raise_, raise_made, reraise, try_, keep, recursion, recurse, checkpointed)
}
_WITH_HOOKS = frozenset({closed_over, module_hooks, hooked_inputs, hooked_outputs})
_METHODS_OF_LISTS = frozenset({"index", "count"})
_MODULES = frozenset({"_operator", "math", "builtins"})


def is_repeatable(program: Program, error: BaseException) -> bool:
    """Whether a call may be made again in plain PyTorch, and whether that can make a difference.

    Only what is known to do nothing but compute is made a second time: Python's operators, torch's own operators that
    write nothing and draw nothing, and what a program is built of. Anything else may have left something: operators
    of the user's, whatever autograd differentiates or calls, hooks.

    Args:
        program: of the call.
        error: what one of its operations raised.
    """
    if isinstance(error, torch.OutOfMemoryError) or not isinstance(error, Exception):
        return False
    if not (program.effects or program.watched):
        return False
    if are_hooks_on():  # for what is saved for the backward pass: they would be called again
        return False
    nodes = (node for region in regions(program.graph) for node in region.graph.nodes)
    return not writes_in_place(program.graph) and all(map(_leaves_nothing, nodes))


def _leaves_nothing(node: fx.Node) -> bool:
    context = node.meta.get("context")
    if context is not None and context.hooks is not None:
        return False
    if node.op in ("placeholder", "output", "get_attr") or node.target in CONSTRUCTS:
        return True
    if node.op == "call_function" and node.target in _OURS:
        return node.target not in _WITH_HOOKS
    return _only_computes(node) and is_pure(node)


def _only_computes(node: fx.Node) -> bool:
    """Whether a call is of Python's operators or of torch's."""
    if node.op == "call_function":
        return is_known(node.target) or getattr(node.target, "__module__", "") in _MODULES
    on = node.args[0] if node.args else None
    if isinstance(on, fx.Node) and isinstance(on.meta.get("val"), torch.Tensor):
        return is_known(node.target)
    return node.target in _METHODS_OF_LISTS
