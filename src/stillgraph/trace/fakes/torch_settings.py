"""Settings of torch's that code reads as attributes of an object, or that torch's own code reads for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

import torch
from torch.nn.utils import parametrize

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


# ---- parametrizations
def caches_weights() -> bool:
    """Whether the weights that parametrizations make are kept: in a block of ``parametrize.cached()``."""
    return parametrize._cache_enabled > 0


def uses_parametrizations(codes: Iterable[CodeType]) -> bool:
    """Whether code that ran has made such a weight."""
    return any(code.co_name == "get_parametrized" and code.co_filename == parametrize.__file__ for code in codes)
