"""Settings of torch's that code reads as attributes of an object which asks torch's core for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

_OBJECTS: dict[str, Any] = {"matmul": torch.backends.cuda.matmul}  # by the name that leads to it
_SETTINGS = (
    "allow_tf32",
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
    "allow_fp16_accumulation",
    "fp32_precision",
)


def backend_settings(mentioned: frozenset[str]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """What reads the settings that code mentions: a function and its arguments each."""
    for name, owner in _OBJECTS.items():
        if name in mentioned:
            yield from ((getattr, (owner, setting)) for setting in _SETTINGS if setting in mentioned)
