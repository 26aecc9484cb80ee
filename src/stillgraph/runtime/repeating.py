"""Whether a call whose program failed half way may be made once more, in plain PyTorch.

A program writes to Python's state when it is done, and it calls ``__exit__`` only where a block comes to its end or
raises by itself. Where one of torch's operations fails, eager PyTorch has written what came before, and has told the
context managers. A program that until then has done nothing but compute can leave all of that to eager PyTorch. Of any
other, what it has written by then is carried out (`runtime.so_far`); blocks that were open are not ended.
"""

from __future__ import annotations

import torch

from stillgraph.passes.repeating import only_computes
from stillgraph.program.context import are_hooks_on
from stillgraph.program.program import Program


def is_repeatable(program: Program, error: BaseException) -> bool:
    """Whether a call may be made again in plain PyTorch, and whether that can make a difference.

    Only a program that is known to do nothing but compute is run a second time (`passes.repeating`).

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
    return only_computes(program.graph)

