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
from stillgraph.program.graphs import regions
from stillgraph.program.operations import (
    assert_,
    checkpointed,
    keep,
    raise_,
    raise_made,
    recurse,
    recursion,
    reraise,
    try_,
)
from stillgraph.program.program import Program
from stillgraph.program.writes import name_of, writes_in_place

_ONLY_RAISES = frozenset({assert_, raise_, raise_made, reraise, try_, keep, recursion, recurse, checkpointed})
_CALLS_PYTHON = frozenset({"apply"})  # of a ``torch.autograd.Function``


def is_repeatable(program: Program, error: BaseException) -> bool:
    """Whether a call may be made again in plain PyTorch, and whether that can make a difference.

    Args:
        program: of the call.
        error: what one of its operations raised.
    """
    if isinstance(error, torch.OutOfMemoryError) or not isinstance(error, Exception):
        return False
    if not (program.effects or program.watched):
        return False
    nodes = (node for region in regions(program.graph) for node in region.graph.nodes)
    return not writes_in_place(program.graph) and all(map(_leaves_nothing, nodes))


def _leaves_nothing(node: fx.Node) -> bool:
    if node.op in ("placeholder", "output") or node.target in _ONLY_RAISES:
        return True
    return is_pure(node) and name_of(node) not in _CALLS_PYTHON
