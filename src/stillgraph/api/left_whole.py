"""What is left to Python as a whole: functions whose call does not run their body, or hides it."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, MethodType
from typing import Any

import torch

from stillgraph.bytecode.segments.breaks import reason_of
from stillgraph.bytecode.segments.called import code_called
from stillgraph.bytecode.segments.whys import Why, why_of
from stillgraph.core.location import Location, start_of
from stillgraph.core.lookup import class_member, stated
from stillgraph.core.reasons import REASONS
from stillgraph.operators.torch.torchscript import refuse_module

_KINDS = (
    (inspect.CO_GENERATOR, "SG306", "is a generator: its body runs where its values are asked for"),
    (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR, "SG103", "is asynchronous: its body runs where it is awaited"),
)
_COMPILED = (torch.ScriptMethod, torch.jit.ScriptModule)


def why_left(original: Any) -> tuple[Why, Location | None] | None:
    """Why a function is left to Python, and where it begins, if that is known; None for one that is not."""
    found = _behind(original)
    if isinstance(found, _COMPILED):
        return reason_of(refuse_module(found)), None
    if isinstance(found, functools._lru_cache_wrapper):
        kept = code_called(found.__wrapped__)
        name = stated(found, "__name__", "it")
        return why_of("kept", name), None if kept is None else start_of(kept)
    code = code_called(found)
    if code is None:
        return None
    for flags, reason, text in _KINDS:
        if code.co_flags & flags:
            return Why(f"'{code.co_name}' {text}", reason, REASONS[reason].hint), start_of(code)
    return None


def may_pack(original: Any) -> bool:
    """Whether a function can be given parcels: all that sees its arguments first is interpreted."""
    if isinstance(original, torch.nn.Module):
        return code_called(original) is not None and may_pack(original.forward)
    if isinstance(original, MethodType):
        original = original.__func__
    return isinstance(original, FunctionType) and why_left(original) is None


def _behind(original: Any) -> Any:
    """What a call runs first."""
    while isinstance(original, functools.partial):
        original = original.func
    if isinstance(original, MethodType):
        original = original.__func__
    if isinstance(original, (FunctionType, functools._lru_cache_wrapper, type, torch.nn.Module)):
        return original
    call = class_member(type(original), "__call__")
    return call if isinstance(call, (FunctionType, functools._lru_cache_wrapper)) else original
