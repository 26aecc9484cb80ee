"""Code of the user's that Python calls as it stands: a stand-in could mislead it, and nobody sees what it writes.

Where an attribute or an operator of rewritten code leads there, a front end can follow it. Where a function written in
C has called it, nobody can.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from stillgraph.core.files import is_dependency, is_ours, is_standard_library
from stillgraph.core.identity_cache import weakly_cached
from stillgraph.core.lookup import class_member

# What gives the same whether its operands are values or stand for them: operations of torch's, and no questions. Of a
# list of unknown length a subscript does not.
_UNTROUBLED = frozenset(
    {
        *("RESUME", "NOP", "CACHE", "COPY_FREE_VARS", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST"),
        *("LOAD_DEREF", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_ATTR", "BINARY_OP", "UNARY_NEGATIVE"),
        *("BUILD_TUPLE", "RETURN_VALUE", "RETURN_CONST"),
    }
)
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR")
_WRITES = frozenset(
    {
        *("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "STORE_GLOBAL", "STORE_DEREF"),
        *("DELETE_ATTR", "DELETE_SUBSCR", "DELETE_GLOBAL", "DELETE_DEREF"),
    }
)
_CHANGES = frozenset(
    {
        *("append", "extend", "insert", "pop", "popleft", "appendleft", "extendleft", "popitem", "remove", "clear"),
        *("discard", "update", "setdefault", "rotate", "setattr", "delattr", "__setattr__"),
    }
)
_QUESTIONS = frozenset({"IS_OP", "COMPARE_OP", "CONTAINS_OP", "UNARY_NOT", "MATCH_CLASS"})

PROPERTIES = (property, functools.cached_property)


def way_of(frame: FrameType, is_rewritten: Callable[[CodeType], bool]) -> str | None:
    """By what an expression of rewritten code has led to code that does more than compute.

    Args:
        frame: of that code.
        is_rewritten: whether code is.

    Returns:
        The name of an attribute; "" for an operator; None where a function has called it.
    """
    caller = frame.f_back
    while caller is not None and is_standard_library(caller.f_code.co_filename):
        caller = caller.f_back  # that of a ``cached_property`` is written in Python
    if caller is None or is_ours(caller.f_code.co_filename) or is_dependency(caller.f_code.co_filename):
        return None
    if not is_rewritten(caller.f_code) and _does_more_than_compute(caller.f_code):
        return None  # it was called by a function written in C
    if not _does_more_than_compute(frame.f_code) or is_debuggers(frame, is_rewritten):
        return None
    done = _instruction(caller)
    if done.opname.startswith(("CALL", "PRECALL")):
        return None
    return str(done.argval) if done.opname in _ATTRIBUTES else ""


def properties_beside(frame: FrameType) -> set[str]:
    """The names of the properties that the object has whose getter runs."""
    names = frame.f_code.co_varnames[:1]
    spaces = (vars(base) for name in names for base in type(frame.f_locals.get(name)).__mro__)
    return {name for space in spaces for name, member in space.items() if isinstance(member, PROPERTIES)}


def _instruction(frame: FrameType) -> dis.Instruction:
    code, at = frame.f_code.co_code, frame.f_lasti
    while dis.opname[code[at]] == "CACHE":
        at -= 2
    return next(each for each in dis.get_instructions(frame.f_code) if each.offset == at)


def is_debuggers(frame: FrameType | None, is_rewritten: Callable[[CodeType], bool]) -> bool:
    """Whether what runs is told what rewritten code does, as a debugger is, or is what a breakpoint calls."""
    told = [sys.gettrace(), sys.breakpointhook]
    ran = set()
    while frame is not None and not is_rewritten(frame.f_code):
        ran.add(frame.f_code)
        frame = frame.f_back
        told.append(None if frame is None else frame.f_trace)
    return any(_code_of(each) in ran for each in told)


def _code_of(function: Any) -> CodeType | None:
    both = (function, class_member(type(function), "__call__"))
    codes = (getattr(getattr(each, "__func__", each), "__code__", None) for each in both)
    return next((code for code in codes if code is not None), None)


@weakly_cached
def _does_more_than_compute(code: CodeType) -> bool:
    """Whether code may write something, call something, or decide by what is None or of which type."""
    return any(each.opname not in _UNTROUBLED for each in dis.get_instructions(code))


@weakly_cached
def may_write(code: CodeType) -> bool:
    """Whether code may change an object."""
    return not _CHANGES.isdisjoint(code.co_names) or any(each.opname in _WRITES for each in dis.get_instructions(code))


@weakly_cached
def may_ask(code: CodeType) -> bool:
    """Whether code may decide by what is None."""
    names = (each.opname for each in dis.get_instructions(code))
    return any(name in _QUESTIONS or name.startswith("POP_JUMP") for name in names)
