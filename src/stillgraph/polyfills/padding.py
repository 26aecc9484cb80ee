"""What torch pads: sequences of which only the run knows how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def pad_sequence(
    sequences: Any, batch_first: Any = False, padding_value: Any = 0.0, padding_side: Any = "right"
) -> Any:
    """``torch.nn.utils.rnn.pad_sequence``, of a list."""
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


POLYFILLS: dict[Any, Callable[..., Any]] = {torch.nn.utils.rnn.pad_sequence: pad_sequence}
"""By torch's own functions."""
