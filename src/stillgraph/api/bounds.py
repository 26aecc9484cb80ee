"""How far a plan may grow, and what is said of one that has grown further: its calls are made in plain PyTorch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch

from stillgraph.core.parcel import opened, without_parcels
from stillgraph.runtime.calls import growing
from stillgraph.runtime.calls.advice import advice
from stillgraph.runtime.calls.cache import ProgramCache

MOST_DROPPED = 8
"""Programs of one part that may be dropped for others, or as many as its cache holds."""

MOST_KINDS = 4
"""How many times what its cache holds a part may have in programs, where its calls are of so many kinds."""

MOST_PARTS = 256
"""Places where a program may begin."""

MOST_VALUES = 3
"""Programs that may be made in the midst of a call for values that differ, before Python takes them."""

MOST_ATTEMPTS = 500
"""Times that a capture may begin anew."""

MOST_FAILURES = 3
"""Captures that may fail."""


def kind_of_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable:
    """What a call is like, but for what may be another in each: sizes, numbers, texts, and which object it is."""
    return (*map(_kind_of, args), *((name, _kind_of(value)) for name, value in kwargs.items()))


def _kind_of(value: Any) -> Hashable:
    value = opened(value)
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim(), value.device, value.requires_grad
    if value is None or isinstance(value, bool):
        return str(value)
    return type(value).__module__, type(value).__qualname__


def is_beyond(cache: ProgramCache) -> bool:
    """Whether programs were dropped for others again and again."""
    return cache.evictions >= max(MOST_DROPPED, cache.size)


def why_beyond(cache: ProgramCache, is_entry: bool) -> str:
    """What keeps a part from having a program that lasts, in a sentence; and what to write instead.

    Args:
        cache: of the part.
        is_entry: whether the part takes what the user's own call is given.
    """
    recent = [*reversed(cache.programs[: growing.CALLS])]
    grows = growing.growing(recent)
    reason = without_parcels(cache.reasons[0])
    if grows is not None:
        return f"{reason}. Write to the list without reading it in the same call, or keep a tensor of fixed size"
    return f"each call needs another program: {reason}. {advice(reason, cache.programs if is_entry else ())}"
