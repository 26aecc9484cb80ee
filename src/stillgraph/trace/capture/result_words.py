"""What messages say of a result that a program cannot make."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch

from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.numbers import StagedNumber

KINDS = {"StagedRows": "iterator", "StagedArrayRows": "iterator", "StagedEntries": "view of a dict"}
ELEMENT = "Make it in the branch or loop that puts it into the list, or put its tensors and numbers into the list."
SETS = "Put a list or tuple of its elements into the list, and make the sets outside of the function."
ITSELF = "Return the values themselves: a list of them, or a tensor (torch.stack, torch.arange)."


def plain_kind(value: Any) -> str:
    """The name of the builtin class that a container's is derived from."""
    return next(kind.__name__ for kind in (list, tuple, dict) if isinstance(value, kind))


def leaving(value: Any) -> str:
    """What would have to run Python after the program has ended, as messages name it."""
    if not isinstance(value, FunctionType):
        if isinstance(value, torch.nn.Module):
            return f"{describe(value)} that the function makes"
        return f"{describe(value)} over values that only the run knows"
    names = value.__code__.co_freevars
    held = [name for name, cell in zip(names, value.__closure__ or ()) if _holds(cell)]
    what = "a lambda" if value.__name__ == "<lambda>" else f"the function '{value.__name__}'"
    return f"{what} that uses {' and '.join(map(repr, held)) or 'values'}, which only the run knows,"


def made_outside(value: Any) -> str:
    """The hint for what would be one object in all calls."""
    name = value.__name__ if isinstance(value, (type, FunctionType)) else type(value).__name__
    return f"Each call would be given the same one. Make the {name} outside, of what the static function returns."


def _holds(cell: Any) -> bool:
    try:
        return isinstance(cell.cell_contents, (torch.Tensor, StagedNumber)) or holds_staged(cell.cell_contents)
    except ValueError:  # an empty cell
        return False


def values_of(value: Any) -> str:
    """The hint for what holds values of the run."""
    if isinstance(value, torch.nn.Module):
        return f"Make the {type(value).__name__} outside, or in __init__, and call it inside."
    if not isinstance(value, FunctionType):
        return ITSELF
    held = [n for n, cell in zip(value.__code__.co_freevars, value.__closure__ or ()) if _holds(cell)]
    return f"Return {' and '.join(map(repr, held)) or 'the values'}, and make the function of it outside."
