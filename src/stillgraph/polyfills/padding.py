"""What torch pads: sequences of which only the run knows how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def pad_sequence(
    sequences: Any, batch_first: Any = False, padding_value: Any = 0.0, padding_side: Any = "right"
) -> Any:
    """``torch.nn.utils.rnn.pad_sequence``, of a list."""
    if not isinstance(batch_first, bool):
        raise TypeError(_wrong("batch_first", 2, "bool", batch_first))
    if padding_value is None or isinstance(padding_value, (str, complex)):  # for `pad`, None is 0
        raise TypeError(_wrong("padding_value", 3, "float", padding_value))
    if not isinstance(padding_side, str):
        raise TypeError(_wrong("padding_side", 4, "str", padding_side))
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest: Any = 0
    for each in sequences:
        longest = max(longest, each.shape[0])
    padded: Any = []
    for each in sequences:
        missing = longest - each.shape[0]
        around = (missing, 0) if padding_side == "left" else (0, missing)
        padded.append(torch.nn.functional.pad(each, (0, 0) * (each.dim() - 1) + around, value=padding_value))
    return torch.stack(padded, 0 if batch_first else 1)


def _wrong(name: str, position: int, kind: str, value: Any) -> str:
    """What torch says of an argument of another kind."""
    return f"pad_sequence(): argument '{name}' (position {position}) must be {kind}, not {type(value).__name__}"


POLYFILLS: dict[Any, Callable[..., Any]] = {torch.nn.utils.rnn.pad_sequence: pad_sequence}
"""By torch's own functions."""
