"""How often a loop runs, where the program itself says so."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from stillgraph.passes.regions.regions import Loop, outputs, placeholders
from stillgraph.program.graphs import arguments

_BEFORE = (torch.lt, operator.lt)
_ADD = (torch.add, operator.add)


def known_count(loop: Loop) -> int | None:
    """The number of iterations of ``for i in range(a, b, c)`` with constants, once numbers are tensors.

    None for any other loop, such as one that ``break`` may leave.
    """
    (test,) = outputs(loop.test)
    counters = placeholders(loop.test)[: len(loop.entries)]
    if not isinstance(test, fx.Node) or test.target not in _BEFORE:
        return None
    left, end = arguments(test)
    if left not in counters or type(end) is not int:
        return None
    index = counters.index(left)
    start, step = _constant(loop.entries[index]), _step(loop, index)
    return None if start is None or step is None else len(range(start, end, step))


def _constant(entry: Any) -> int | None:
    """The whole number that a 0-d tensor is made of."""
    if not isinstance(entry, fx.Node) or entry.target is not torch.full:
        return None
    shape, value = arguments(entry)
    return value if not shape and type(value) is int else None


def _step(loop: Loop, index: int) -> int | None:
    left = outputs(loop.body)[index]
    if not isinstance(left, fx.Node) or left.target not in _ADD:
        return None
    before, step = arguments(left)
    return step if before is placeholders(loop.body)[index] and type(step) is int and step > 0 else None
