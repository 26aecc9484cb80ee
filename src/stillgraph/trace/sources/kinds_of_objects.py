"""Kinds of objects, as the search for objects takes them: torch's machinery, loggers, functions that are made anew."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import torch

from stillgraph.core.lookup import behind_proxy, own_attributes
from stillgraph.core.parcel import Parcel

ATOMS = (
    int,
    float,
    complex,
    bytes,
    bool,
    type(None),
    torch.dtype,
    torch.device,
    ModuleType,
    CodeType,
    WrapperDescriptorType,
    MethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
)
"""What leads nowhere, or is not looked for."""


def is_anew(function: FunctionType) -> bool:
    """Whether a function is one that its place makes anew whenever it is come to; one with a name of its own stays."""
    return "<locals>" in function.__qualname__ or function.__name__ == "<lambda>"


def is_unbound(value: Any) -> bool:
    """Whether it is a function of Python's without an object that has a state (``math.sqrt``, ``dict.get``)."""
    return isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, (type, ModuleType, type(None)))


def is_alive(proxy: Any) -> bool:
    """Whether a weak proxy still stands for something."""
    try:
        return behind_proxy(proxy) is not None
    except ReferenceError:
        return False


def is_machinery(kind: type) -> bool:
    """Whether objects of a class are ours, torch's (but for those that people keep state in) or log what happens."""
    module = f"{kind.__module__}."
    if issubclass(kind, tuple) or kind is Parcel:
        return False
    if not module.startswith(("torch.", "stillgraph.", "logging.")) or issubclass(kind, _STATE_OF_TORCH):
        return False
    return not module.startswith(("torch.optim.", "torch.utils.data.", "torch.distributions.", "stillgraph.demo."))


def is_opened_by_name(value: Any) -> bool:
    """Whether it is a logger or handler, a static function, or an object of torch's that people may use."""
    module = f"{type(value).__module__}."  # of some classes of C's it is no text
    if not module.startswith(("torch.", "logging.", "stillgraph.api.")) or module.startswith("torch._"):
        return False
    return is_machinery(type(value)) and not isinstance(value, type) and type(own_attributes(value)) is dict


_STATE_OF_TORCH = (torch.Tensor, torch.nn.Module, torch.amp.GradScaler)
_VIEWED: tuple[dict[Any, Any], ...] = ({}, collections.OrderedDict())  # whose views are of classes of their own
STEPS: dict[type, tuple[str, ...]] = {
    functools.partial: ("func", "args", "keywords"),
    functools.cached_property: ("func",),
    MethodType: ("__self__", "__func__"),
    BuiltinFunctionType: ("__self__",),
    MethodWrapperType: ("__self__",),
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    property: ("fget",),
    CellType: ("cell_contents",),
    **{type(view): ("mapping",) for held in _VIEWED for view in (held.keys(), held.values(), held.items())},
}



def steps_of(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes by which an object of Python's own leads on; an empty cell leads nowhere."""
    for name in STEPS.get(type(value), ()):
        try:
            yield name, getattr(value, name)
        except ValueError:
            continue
