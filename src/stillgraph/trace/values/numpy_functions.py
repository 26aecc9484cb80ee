"""The functions and arrays of numpy: whether a callable is one, and what torch calls it."""

from __future__ import annotations

import sys
from typing import Any

import torch

_NAMED_OTHERWISE = {"percentile": "torch.quantile, with q / 100,"}


def counterpart(function: Any) -> str | None:
    """What to write in place of a function of numpy's, where torch has it."""
    name = getattr(function, "__name__", "")
    known = _NAMED_OTHERWISE.get(name)
    if known is None:
        within = [part for part in (_module(function) or "").split(".")[1:] if part in ("fft", "linalg")]
        place: Any = getattr(torch, within[0]) if within else torch
        found = getattr(place, name, None)
        if not callable(found):
            return f"Use .to(torch.{name}) on the tensor itself." if isinstance(found, torch.dtype) else None
        known = ".".join(["torch", *within[:1], name])
    return f"Use {known} on the tensor itself, whose dtype and shape the program knows."


def is_array(value: Any) -> bool:
    """Whether an object is one of numpy's arrays."""
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and issubclass(type(value), numpy.ndarray)  # the user's code is not to be asked


def is_numpy(function: Any) -> bool:
    """Whether a callable is one of numpy's."""
    return any((module or "").split(".")[0] == "numpy" for module in (function.__class__.__module__, _module(function)))


def _module(function: Any) -> str | None:
    module = getattr(function, "__module__", None)
    return module if isinstance(module, str) else None
