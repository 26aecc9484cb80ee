"""Which callables look into their arguments themselves, and so want of each path what that has."""

from __future__ import annotations

from types import BuiltinMethodType
from typing import Any

import torch

from stillgraph.operators.objects.changes import CONTAINERS
from stillgraph.operators.outside.hidden_state import MUTATORS

_MADE_BY_CLASS = 1 << 9  # the flag of a type that a ``class`` statement makes
_OF_VALUES = ("torch", "numpy", "datetime", "decimal")  # whose classes in C store no objects: `torch.finfo`, `np.dtype`


_TAKING_KEYS = frozenset({"add", "discard", "remove", "pop", "setdefault"})


def takes_key(function: Any) -> bool:
    """Whether a callable is a method of a dict or set whose first argument is looked up: a tuple of values, perhaps."""
    is_keyed = isinstance(function, BuiltinMethodType) and isinstance(function.__self__, (dict, set))
    return is_keyed and (function.__name__ in _TAKING_KEYS or function.__name__ == "get")


def wants_plain_arguments(function: Any, meaning: Any) -> bool:
    """Whether a callable looks into its arguments itself: Python's own, but for the methods that store them."""
    if isinstance(function, BuiltinMethodType) and isinstance(function.__self__, CONTAINERS):
        hashes = isinstance(function.__self__, (dict, set)) and function.__name__ in _TAKING_KEYS
        return hashes or function.__name__ not in MUTATORS
    if isinstance(function, type):
        written_in_c = not function.__flags__ & _MADE_BY_CLASS
        return function.__module__ == "builtins" or (written_in_c and function.__module__.startswith(_OF_VALUES))
    return meaning is not None or (isinstance(function, BuiltinMethodType) and not is_torch_builtin(function))


def is_torch_builtin(function: BuiltinMethodType) -> bool:
    """Whether a function or method that is written in C is torch's, or a tensor's."""
    return isinstance(function.__self__, torch.Tensor) or (function.__module__ or "").startswith("torch")
