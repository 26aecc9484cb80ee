"""The two front ends, as a capture asks for them: source that is rewritten, and bytecode that is interpreted."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch

from stillgraph.bytecode.entry import convert as bytecode
from stillgraph.bytecode.segments.segments import Segment
from stillgraph.core.diagnostics import CaptureError, Refusal
from stillgraph.core.files import is_torch
from stillgraph.operators.calls.meanings import has_meaning
from stillgraph.operators.table import OPERATORS
from stillgraph.settings import SETTINGS
from stillgraph.source.compiled import is_converted
from stillgraph.source.convert import convert, convert_generator
from stillgraph.source.generators import around_block, inside_out
from stillgraph.trace.code.front_end import FrontEnd
from stillgraph.trace.code.names import assigned_outer_variables

Converted = tuple[FunctionType, tuple[str, ...]]
Turned = tuple[FunctionType, tuple[str, ...], str]


def _lacks_source(error: CaptureError | Refusal) -> bool:
    """Whether a function was refused because its source cannot be had."""
    refused = error.error if isinstance(error, Refusal) else error
    return refused.reason.code in ("SG101", "SG102")


# ---- source
def _plain_callee(value: Any) -> bool:
    """Whether a call of ``value`` needs no operator: torch's own functions on tensors."""
    if not isinstance(value, (FunctionType, BuiltinFunctionType)) or has_meaning(value):
        return False
    if isinstance(value, FunctionType):
        return value.__module__ in ("torch.nn.functional", "torch.functional") and is_torch(value.__code__.co_filename)
    return _is_torch_builtin(value)


def _is_torch_builtin(value: Any) -> bool:
    module = value.__module__ or getattr(type(value.__self__), "__module__", "")
    return module == "torch" or module.startswith("torch._C") or value.__self__ is torch._C._VariableFunctions


def _rewrite(function: FunctionType, watched: frozenset[str], tries: bool) -> Converted:
    converted = convert(
        function,
        OPERATORS,
        watched=watched,
        plain_callee=_plain_callee,
        keep_steps=SETTINGS.logbook.code_level > 0,
        tries=tries,
    )
    SETTINGS.logbook.rewritten(function, converted)
    return converted.function, converted.written_cells


def rewritten(function: FunctionType) -> str:
    """The source of a function, rewritten."""
    return convert(function, OPERATORS, plain_callee=_plain_callee).code


def _turn_inside_out(function: FunctionType, watched: frozenset[str], tries: bool, manages: bool) -> Turned | None:
    turn = around_block if manages else inside_out
    turned = convert_generator(
        function, OPERATORS, watched=watched, plain_callee=_plain_callee, tries=tries, turn=turn
    )
    if turned is None or turned.emit is None:
        return None
    SETTINGS.logbook.rewritten(function, turned)
    return turned.function, turned.written_cells, turned.emit


# ---- bytecode
def _interpret(function: FunctionType, watched: frozenset[str], tries: bool) -> Converted:
    return interpret_in(None, function)


def _interpret_inside_out(
    function: FunctionType, watched: frozenset[str], tries: bool, manages: bool
) -> Turned | None:
    return turn_inside_out_in(None, function, manages)


def interpret_in(segment: Segment | None, function: FunctionType) -> Converted:
    """In the interpreter, which asks the capture itself what it knows."""
    return bytecode.convert(function, segment), assigned_outer_variables(function.__code__)


def turn_inside_out_in(segment: Segment | None, function: FunctionType, manages: bool) -> Turned | None:
    """The same for a generator turned inside out."""
    turned = bytecode.convert_generator(function, segment, manages)
    return None if turned is None else (turned[0], assigned_outer_variables(function.__code__), turned[1])


# ---- one after the other
def _convert(function: FunctionType, watched: frozenset[str], tries: bool) -> Converted:
    try:
        return _rewrite(function, watched, tries)
    except (CaptureError, Refusal) as error:
        if not _lacks_source(error):
            raise
        return _interpret(function, watched, tries)


def _convert_inside_out(
    function: FunctionType, watched: frozenset[str], tries: bool, manages: bool
) -> Turned | None:
    try:
        turned = _turn_inside_out(function, watched, tries, manages)
    except (CaptureError, Refusal) as error:
        if not _lacks_source(error):
            raise
        turned = None
    # Bytecode knows more expressions.
    return _interpret_inside_out(function, watched, tries, manages) if turned is None else turned


BYTECODE = FrontEnd(_interpret, _interpret_inside_out, is_converted, SETTINGS.skips)
"""Bytecode."""

SOURCE = FrontEnd(_convert, _convert_inside_out, is_converted, SETTINGS.skips, BYTECODE)
"""Source; bytecode, where a function has no source, or objects of users' classes have methods that do something."""
