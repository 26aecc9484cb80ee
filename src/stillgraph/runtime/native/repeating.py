"""Whether a call whose program failed half way may be made once more, in plain PyTorch.

A program writes to Python's state when it is done, and it calls ``__exit__`` only where a block comes to its end or
raises by itself. Where one of torch's operations fails, eager PyTorch has written what came before, and has told the
context managers. A program that until then has done nothing but compute can leave all of that to eager PyTorch, be it
that its arms would have acted on the world outside; and so can one that has drawn at random, once the generators are
as they were, and one that has only given warnings or written to logs in its arms, if it is for a block to be told: the
block matters more than a line that is there twice. Of any other, what it has written by then is carried out
(`runtime.so_far`); blocks that were open are not ended.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from stillgraph.passes.lists.repeating import draws_at_random, may_repeat_unless_entered, only_tells
from stillgraph.program.context import are_hooks_on
from stillgraph.program.program import Program


def is_repeatable(
    program: Program,
    error: BaseException,
    acting: Sequence[int] | None,
    before: Sequence[int] | None,
    after: Sequence[int] | None,
) -> bool:
    """Whether a call may be made again in plain PyTorch, and whether that can make a difference.

    Only a call that is known to have done nothing but compute, and to tell, is made a second time (`passes.repeating`).

    Args:
        program: of the call.
        error: what one of its operations raised.
        acting: the regions of the program that do more (`regions_that_act`).
        before, after: how often each of them had begun before the call, and where it failed; None where that is not
            counted.
    """
    entered = before is None or before != after
    if acting is None or (acting and entered and not (program.passes_by and only_tells(program.graph, acting))):
        return False
    if isinstance(error, torch.OutOfMemoryError) or not isinstance(error, Exception):
        return False
    if not (program.effects or program.watched):
        return False
    if are_hooks_on() and not program.passes_by:  # for what is saved for the backward pass: they would be called again
        return False
    return program.watched or not draws_at_random(program.graph)


def regions_that_act(program: Program) -> tuple[int, ...] | None:
    """The regions of a program that leave something behind (`passes.repeating.may_repeat_unless_entered`)."""
    return may_repeat_unless_entered(program.graph) if program.effects or program.watched else None


def is_rewound(program: Program, acting: Sequence[int] | None) -> bool:
    """Whether the generators are to be noted before each call of a program, so that it may be made again."""
    return program.watched and acting is not None and draws_at_random(program.graph)


class Generators:
    """The states of torch's random generators at one time, of the CPU and of each GPU in use."""

    def __init__(self) -> None:
        self._all = [torch.default_generator, *(torch.cuda.default_generators if torch.cuda.is_initialized() else ())]
        self._states = [each.get_state() for each in self._all]

    def put_back(self) -> None:
        """Let them go on from there."""
        for generator, state in zip(self._all, self._states, strict=True):
            generator.set_state(state)

