"""What an instruction calls, and whose frame that runs."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Iterable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import torch

from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.code.prepared import prepared
from stillgraph.bytecode.machine.frame import NULL, Frame
from stillgraph.core.lookup import class_member
from stillgraph.core.parcel import Parcel, opened
from stillgraph.operators.outside.caches import can_be_asked
from stillgraph.trace.values.callables import contents

SHOWING_VARIABLES = (builtins.locals, builtins.vars, builtins.dir, builtins.eval, builtins.exec)
"""Functions that may look at the variables of the frame which calls them."""


def called(frame: Frame, each: Instruction) -> Any:
    """What an instruction calls."""
    position: int = each.argument + (2 if each.name == "CALL" else 3)  # below the arguments, and names or dict
    first, second = frame.peek(position), frame.peek(position - 1)
    return second if first is NULL else first


def shows_parcels(frame: Frame, function: Any) -> bool:
    """Whether a function may look at the variables of a frame that has parcels among them, which nobody is to see."""
    if not any(function is each for each in SHOWING_VARIABLES):
        return False
    held = map(contents, frame.slots)
    return any(type(contents(each) if isinstance(each, CellType) else each) is Parcel for each in held)


def arguments(frame: Frame, each: Instruction) -> tuple[Any, ...] | None:
    """What an instruction hands to what it calls, by position and by keyword; None where that is not on the stack."""
    if each.name == "CALL_FUNCTION_EX":
        return None
    above = 0 if each.name == "CALL" else 1  # the names of keywords
    values = tuple([frame.peek(position + above) for position in range(each.argument, 0, -1)])
    first, second = frame.peek(each.argument + above + 2), frame.peek(each.argument + above + 1)
    return values if first is NULL else (second, *values)


def keeps_results(frame: Frame, each: Instruction, function: Any) -> bool:
    """Whether a function with a cache is called that no program can ask, so that Python has to put into it."""
    if not isinstance(function, functools._lru_cache_wrapper):
        return False
    given = arguments(frame, each)
    return given is None or not can_be_asked(function, tuple(map(opened, given)))


def counts_results(frames: Iterable[Frame], function: Any) -> bool:
    """Whether a function with a cache is called that the code of a frame may ask for its counts, wherever it is."""
    if not isinstance(function, functools._lru_cache_wrapper):
        return False
    return any("cache_info" in frame.code.co_names for frame in frames)


def keywords_at(code: CodeType, index: int) -> tuple[str, ...] | None:
    """The names of the keywords with which an instruction calls, which stand in the code; None where they do not."""
    before = prepared(code).decoded.instructions[index - 1]
    return before.argument if before.name == "LOAD_CONST" and isinstance(before.argument, tuple) else None


def code_called(function: Any) -> CodeType | None:
    """The code of the frame whose result is that of a call; None where something may come between."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, MethodType):
        function = function.__func__
    if isinstance(function, torch.nn.Module) and type(function).__call__ is torch.nn.Module.__call__:
        hooks = (function._forward_hooks, function._forward_pre_hooks)
        if any(hooks) or function._backward_hooks or function._backward_pre_hooks:
            return None
        function = getattr(function.forward, "__func__", function.forward)
    if not isinstance(function, FunctionType):
        function = class_member(type(function), "__call__")
    return function.__code__ if isinstance(function, FunctionType) else None
