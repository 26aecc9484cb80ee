"""Functions that torch compiled already, and the Python that those of ``torch.jit.script`` keep."""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any

import torch
from torch.jit._state import _try_get_jit_cached_function

from stillgraph.core.files import path_in_torch
from stillgraph.core.lookup import class_member, own_attributes


def original_of(compiled: Any) -> FunctionType | None:
    """The Python function that ``torch.jit.script`` compiled; None for anything else.

    None for what ``torch.jit.trace`` made of a function: its conditions are decided, those of the function are not.
    None too for a function that was read from a file.
    """
    if not isinstance(compiled, torch.jit.ScriptFunction):
        return None
    function = getattr(compiled, "_torchdynamo_inline", None)
    if not isinstance(function, FunctionType):
        return None
    known = _try_get_jit_cached_function(function)
    return function if known is not None and known.qualified_name == compiled.qualified_name else None


def is_compiled(target: Any) -> bool:
    """Whether ``torch.compile`` made a function, method or module, or the ``forward`` of one: it runs under Dynamo."""
    if isinstance(target, functools.partial):
        return is_compiled(target.func)
    if isinstance(target, torch.nn.Module):
        forward = class_member(type(target), "forward")
        return "_torchdynamo_orig_callable" in (own_attributes(target) or {}) or is_compiled(forward)
    function = target.__func__ if isinstance(target, MethodType) else target
    return behind_compiler(function) is not None and "_torchdynamo_disable" not in vars(function)


def behind_compiler(function: Any) -> Any:
    """What ``torch.compile``, or ``torch.compiler.disable``, made a function of; None for any other function."""
    if not isinstance(function, FunctionType):
        return None
    is_dynamos = function.__code__.co_filename.startswith(_DYNAMO)  # `functools.wraps` copies the attributes alone
    return vars(function).get("_torchdynamo_orig_callable") if is_dynamos else None


_DYNAMO = path_in_torch("_dynamo", "")
