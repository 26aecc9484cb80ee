"""What stands for one of several values, as seen by code that need not know which kinds of that there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch

from stillgraph.program.constants import Known, is_constant
from stillgraph.trace.fakes.kernels import outliving
from stillgraph.trace.heap.places import MISSING


class Several:
    """Base of what stands for one of several values.

    Its subclasses answer for what they stand for whatever is asked of them: code of ours looks at their class.
    """

    def stillgraph_known(self) -> tuple[Known, ...] | None:
        """The constants of which it is one; None where it may be something else."""
        raise NotImplementedError

    def stillgraph_number(self) -> Any:
        """The staged number that says which entry of a table it is; None where others say it."""
        return None

    def stillgraph_refuse(self) -> NoReturn:
        """Raise the error that says why it has no one place in a graph."""
        raise NotImplementedError

    def stillgraph_described(self, describe: Callable[[Any], str]) -> str:
        """What messages say of it, where ``describe`` says it of any value."""
        raise NotImplementedError


def known_in(value: Any) -> tuple[Known, ...] | None:
    """The constants of which a value is one; None where it may be something else."""
    if issubclass(type(value), Several):
        found: tuple[Known, ...] | None = value.stillgraph_known()
        return found
    return (Known(value),) if value is MISSING or is_constant(value) else None


def in_graph(value: Any) -> Any:
    """What stands for a value in a graph: for an entry of a table its number, for most others the value itself."""
    if issubclass(type(value), torch.Tensor):
        return outliving(value)
    number = value.stillgraph_number() if issubclass(type(value), Several) else None
    return value if number is None else number
