"""Running a torch call on fake tensors where torch's own code would ask for more than fakes can tell."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

import torch

from stillgraph.trace.symbolic import GuardOnDataDependentSymNode

_NAMES = ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
_DROPOUTS = {
    getattr(space, name + ending)
    for space in (torch, torch.nn.functional)
    for name in _NAMES
    for ending in ("", "_")
    if hasattr(space, name + ending)
}


def run_on_fakes(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a torch function gives on fakes.

    A dropout asks first whether there is any element; its result is shaped like its input in either case.
    """
    try:
        return func(*args, **kwargs)
    except GuardOnDataDependentSymNode:
        if func not in _DROPOUTS:
            raise
        given = inspect.signature(func).bind(*args, **kwargs).arguments if isinstance(func, FunctionType) else kwargs
        tensor: torch.Tensor = args[0] if args else given["input"]
        return tensor if given.get("inplace") or func.__name__.endswith("_") else tensor.clone()
