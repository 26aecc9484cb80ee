"""What is left to Python as a whole: functions whose call only makes what runs their body later."""

from __future__ import annotations

import functools
import inspect
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch

from stillgraph.bytecode.breaks import Why
from stillgraph.bytecode.called import code_called
from stillgraph.core.location import Location, start_of
from stillgraph.core.lookup import class_member

_KINDS = (
    (inspect.CO_GENERATOR, "SG306", "is a generator: its body runs where its values are asked for"),
    (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR, "SG103", "is asynchronous: its body runs where it is awaited"),
)


def why_left(original: Any) -> tuple[Why, Location] | None:
    """Why a function is left to Python, and where it begins; None for one that is not."""
    code = _code(original)
    if code is None:
        return None
    for flags, reason, text in _KINDS:
        if code.co_flags & flags:
            return Why(f"'{code.co_name}' {text}", reason), start_of(code)
    return None


def may_pack(original: Any) -> bool:
    """Whether a function can be given parcels: all that sees its arguments first is interpreted."""
    if isinstance(original, torch.nn.Module):
        return code_called(original) is not None and may_pack(original.forward)
    if isinstance(original, MethodType):
        original = original.__func__
    return isinstance(original, FunctionType) and why_left(original) is None


def _code(original: Any) -> CodeType | None:
    """The code that a call runs first."""
    while isinstance(original, functools.partial):
        original = original.func
    found = code_called(original)
    if found is None and not isinstance(original, (type, torch.nn.Module)):
        found = code_called(class_member(type(original), "__call__"))
    return found
