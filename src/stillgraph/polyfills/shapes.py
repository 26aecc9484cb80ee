"""What torch computes of shapes in Python, where a size may be a number of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def broadcast_shapes(*shapes: Any) -> Any:
    """``torch.broadcast_shapes``."""
    each = [shape if isinstance(shape, Sequence) else (shape,) for shape in shapes if shape is not None]
    common: Any = [1] * max([len(shape) for shape in each], default=0)
    for which, shape in enumerate(each):
        for place in range(-1, -1 - len(shape), -1):
            size = shape[place]
            if size == common[place]:
                continue
            if common[place] == 1:
                if size < 0:
                    raise ValueError("Attempting to broadcast a dimension with negative length!")
                common[place] = size
            elif size != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size} at {place}! Mismatching argument at index "
                    f"{which} had {shape}; but expected shape should be broadcastable to {common}"
                )
    return torch.Size(common)


POLYFILLS: dict[Any, Callable[..., Any]] = {torch.broadcast_shapes: broadcast_shapes}
"""By torch's own functions."""
