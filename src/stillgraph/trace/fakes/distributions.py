"""`torch.distributions`: objects whose properties keep what they compute, and whose arguments are checked in the run.

Its code is rewritten like the user's as soon as a call leads there: that makes the checks of arguments branches, and
lets the journal see what is kept.
"""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

import torch
from torch.distributions.utils import lazy_property


@functools.cache
def property_names() -> frozenset[str]:
    """The names of all properties of distributions, transforms and constraints."""
    names: set[str] = set()
    for module in filter(_is_module, vars(torch.distributions).values()):
        for kind in filter(inspect.isclass, vars(module).values()):
            names |= {name for name, value in vars(kind).items() if _is_property(value)}
    return frozenset(names)


def _is_module(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__.startswith("torch.distributions.")


def _is_property(value: Any) -> bool:
    return isinstance(value, (property, lazy_property)) and not getattr(value, "__isabstractmethod__", False)
