"""What is known of what a loop leaves, from its test and its body."""

from __future__ import annotations

import operator
from typing import Any

from torch import fx

from stillgraph.passes.regions.regions import Loop, control_of, outputs, placeholders
from stillgraph.passes.regions.values import is_optional, value_of
from stillgraph.program.graphs import arguments


def is_true_behind(module: fx.GraphModule, value: fx.Node) -> bool:
    """Whether a value is what a loop goes on until: ``while not value``."""
    loop, index = _left_by(module, value)
    if loop is None:
        return False
    (test,) = outputs(loop.test)
    goes_on_without = isinstance(test, fx.Node) and test.target in (operator.not_, operator.invert)
    return goes_on_without and arguments(test)[0] is placeholders(loop.test)[index]


def is_accumulator(module: fx.GraphModule, value: fx.Node) -> bool:
    """Whether a value is ``None`` only where a loop has no iteration, and each iteration makes it of what it was."""
    loop, index = _left_by(module, value)
    if loop is None or loop.entries[index] is not None or not placeholders(loop.body)[index].users:
        return False
    made = outputs(loop.body)[index]
    return made is not None and not (isinstance(made, fx.Node) and is_optional(value_of(made)))


def _left_by(module: fx.GraphModule, value: Any) -> tuple[Loop | None, int]:
    """The loop that leaves a value, and its place among what the loop carries."""
    if not isinstance(value, fx.Node) or value.target is not operator.getitem:
        return None, 0
    source, index = arguments(value)
    control = control_of(module, source) if isinstance(source, fx.Node) else None
    return (control, index) if isinstance(control, Loop) else (None, 0)
