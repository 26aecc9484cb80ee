"""Objects that the run makes and the code may use: what stands for one in the capture is an argument like a tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.program.draws import GENERATORS
from stillgraph.trace.values.outcome import Outcome


class DrawnState(Outcome):
    """What ``random.getstate()`` gives: the state of a generator, which may be handed back to one, and nothing else."""


MADE = (torch.Generator, *GENERATORS, DrawnState, torch.optim.Optimizer)
"""Their classes. Where a region has such an object, the run has made it; any other is from outside."""


_OPTIONS = "options"


def options_of(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """What the code has set for the groups of an optimizer, which a step of the run's is given."""
    return [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


def has_options(node: fx.Node, optimizer: torch.optim.Optimizer) -> None:
    """Note that the optimizer which a node stands for has the options that the code has set by now."""
    node.meta[_OPTIONS] = options_of(optimizer)


def require_options(node: fx.Node, made: Any) -> None:
    """To be called before an object leaves the program.

    Raises:
        CaptureError: it is an optimizer of which the code has set options since the last step.
    """
    if isinstance(made, torch.optim.Optimizer) and options_of(made) != node.meta.get(_OPTIONS):
        message = "an optimizer that the function makes leaves it with options that no step has had"
        raise refuse("SG306", message, hint="Set them before the last step, or make the optimizer outside.")
