"""How far a plan may grow, and what is said of one that has grown further: its calls are made in plain PyTorch."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch

from stillgraph.core.parcel import opened, without_parcels
from stillgraph.program.guards import TensorGuard
from stillgraph.program.input_spec import InputSpec
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument
from stillgraph.runtime.calls import growing
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
    spec = _open_spec(cache.programs[0], cache.programs[1:]) if is_entry else None
    hint = advice_on(reason)
    if spec is not None:
        hint = f"Leave its sizes open, with {spec} in input_spec"
    return f"each call needs another program: {reason}. {hint}"


def advice_on(reason: str) -> str:
    """What to do where a program is made for each call, by the sentence on what differs.

    `runtime/guards/explaining.py` writes these sentences.
    """
    return next(advice for pattern, advice in _ADVICE if re.search(pattern, reason))


_TENSOR = r"\w+ \w+\[[^]]*\] on "
_ADVICE = (
    (
        f"should be {_TENSOR}.*, but is {_TENSOR}",
        "Pass tensors of few shapes and dtypes, padded say, or raise cache_size",
    ),
    (
        "should be the same|are the same object|should run the code of",
        "Pass the same object in each call, or what is needed of it, or raise cache_size",
    ),
    (
        r"^len\(|^the keys of| the key |should (not )?hold",
        "Pass as many entries in each call, or a tensor in their place, or raise cache_size",
    ),
    (
        r"should be an? .*, but is an? |should be .* \(\w+\), but is .* \(\w+\)$|, but is " + _TENSOR,
        "Pass one type of value there, or have a function for each, or raise cache_size",
    ),
    ("", "Pass what changes as a tensor, keep it out of the function, or raise cache_size"),
)


def _open_spec(newest: Program, others: Sequence[Program]) -> InputSpec | None:
    """What leaves open the sizes by which the first argument that is a tensor differs; None where they do not."""
    theirs = [each for program in others for each in program.guards if isinstance(each, TensorGuard)]
    for guard in newest.guards:
        if not isinstance(guard, TensorGuard) or not isinstance(guard.source, Argument):
            continue
        like = [each.shape for each in theirs if (each.source, each.dtype) == (guard.source, guard.dtype)]
        like = [each for each in like if len(each) == len(guard.shape)]
        shape = [size if {size}.issuperset(sizes) else None for size, *sizes in zip(guard.shape, *like)]
        if shape != [*guard.shape]:
            return InputSpec(shape, guard.dtype)
    return None
