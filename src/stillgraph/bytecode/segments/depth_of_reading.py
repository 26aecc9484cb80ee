"""Whether an instruction may go through what objects hold, however deep, in ways that are not looked at.

What code written in Python reads is seen: it is interpreted, or `ExecutedCode` tells that it ran. So this is about
what C code gets: it may compare, copy or show whatever its arguments lead to.
"""

from __future__ import annotations

import builtins
import enum
import operator
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.machine.frame import NULL
from stillgraph.bytecode.segments.called import SHOWING_VARIABLES
from stillgraph.bytecode.segments.showing import CONTAINERS
from stillgraph.core.files import is_our_module
from stillgraph.core.lookup import is_exactly
from stillgraph.core.parcel import opened

_SHALLOW = frozenset(
    {
        *("BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_ATTR", "DELETE_ATTR", "IS_OP", "STORE_DEREF"),
        *("BUILD_LIST", "BUILD_TUPLE", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "BUILD_SLICE", "LIST_APPEND", "MAP_ADD"),
        *("LIST_EXTEND", "LIST_TO_TUPLE", "DICT_UPDATE", "DICT_MERGE", "UNPACK_SEQUENCE", "UNPACK_EX", "GET_LEN"),
        *("GET_ITER", "FOR_ITER", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"),
        *("RETURN_VALUE", "YIELD_VALUE", "STORE_GLOBAL", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "LOAD_SUPER_ATTR"),
        *("LOAD_SUPER_METHOD", "RAISE_VARARGS"),
    }
)
"""Instructions that look no deeper than at what an object holds itself; its values they but move."""

_SHALLOW_CALLS = frozenset(
    map(
        id,
        (
            *(isinstance, issubclass, callable, len, id, type, super, iter, next, reversed, enumerate, zip, range),
            *(list, tuple, getattr, hasattr),
        ),
    )
)
_SHALLOW_METHODS = frozenset(
    {"append", "appendleft", "extend", "insert", "pop", "popleft", "get", "keys", "values", "items", "setdefault"}
    | {"update", "clear", "reverse"}
)
_SPECIAL_METHODS = frozenset({"__class__", "__name__", "__doc__", "__init__", "__call__", "__len__", "__getitem__"})
_LEADING = frozenset({"cell_contents", "f_locals", "f_back", "f_globals", "gi_frame", "tb_frame"})
_FLAT = (
    *(bool, int, float, complex, str, bytes, type(None), type(...), range, slice, enum.Enum, type, ModuleType),
    *(torch.Tensor, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Generator),
    *(FunctionType, MethodType),
)
_MANY = 64


def goes_deep(each: Instruction, operands: Sequence[Any]) -> bool:
    """Whether an instruction may look at what is inside of what its operands hold; a call, unless it enters a frame."""
    if each.name in _SHALLOW:
        return False
    if each.name in ("LOAD_ATTR", "LOAD_METHOD"):
        special = each.argument.startswith("__") and each.argument not in _SPECIAL_METHODS
        return (special or each.argument in _LEADING) and not _is_flat(operands[0])
    if each.name == "CONTAINS_OP" and type(operands[1]) is dict and is_exactly(operands[0], (int, str)):
        return False
    if each.name.startswith("CALL"):
        function = operands[1] if operands[0] is NULL else operands[0]
        if id(function) in _SHALLOW_CALLS:
            return _is_deep_name(function, operands)
        if any(function is shown for shown in SHOWING_VARIABLES) or function is builtins.globals:
            return True
        if _is_shallow_method(function):
            return False
        operands = [value for value in operands if value is not function or not _is_module_of_torchs(value)]
    return not all(map(_is_flat, operands))


def _is_deep_name(function: Any, operands: Sequence[Any]) -> bool:
    """Whether ``getattr`` asks for an attribute by which C code leads elsewhere; ``type`` may make a class."""
    if function is type:
        return len(operands) > 3
    names = [value for value in operands if type(value) is str] if function is getattr else []
    return any(name.startswith("__") or name in _LEADING for name in names)


def _is_shallow_method(function: Any) -> bool:
    if not isinstance(function, BuiltinFunctionType):
        return False
    return type(function.__self__) in CONTAINERS and function.__name__ in _SHALLOW_METHODS


def _is_module_of_torchs(value: Any) -> bool:
    return isinstance(value, torch.nn.Module) and type(value).__module__.startswith("torch.nn.")


def _is_flat(value: Any, depth: int = 2) -> bool:
    """Whether there is nothing to be found inside of a value but more of the like."""
    value = opened(value)
    if isinstance(value, _FLAT) or value is NULL or is_our_module(type(value).__module__):
        return not isinstance(value, MethodType) or _is_flat(value.__self__, depth)
    if isinstance(value, BuiltinFunctionType):
        return _is_flat(value.__self__, depth)
    if isinstance(value, operator.attrgetter | operator.itemgetter):
        return True
    if type(value) not in (list, tuple, torch.Size) or len(value) > _MANY or not depth:
        return False
    return all(_is_flat(each, depth - 1) for each in value)
