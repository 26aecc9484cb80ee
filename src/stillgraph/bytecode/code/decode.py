"""CPython's bytecode as one instruction set, whichever version wrote it: the only module that knows versions.

What `OPERATIONS` (`instruction_set.py`) lists is what an interpreter has to handle. Where versions differ, the newest
one's way is taken, and what an older one does in one instruction becomes several. So:

- Variables are *slots*: parameters and local variables, then cells, then free variables. The slot of a cell or free
  variable holds the cell.
- A call finds two values below its arguments: the function and either the first argument or `PUSH_NULL`'s nothing, in
  either order (`CALL`).
- Conditional jumps take any value and ask for its truth.
- A jump's argument is the index of the instruction it leads to.

The instructions are described in the documentation of Python's `dis` module, for each version its own.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


JUMPS = _names("JUMP POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE FOR_ITER SEND")


KEEPS_NAMESPACE = sys.version_info < (3, 13)
"""Whether ``locals()`` of a function gives the same dict in each call of it, and keeps what is put there."""


class UnknownInstruction(Exception):
    """This version of Python has an instruction of which `decode` does not know what it does."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name in `OPERATIONS`, its argument, and the piece of source it belongs to."""

    name: str
    argument: Any
    positions: dis.Positions | None


@dataclass(frozen=True, slots=True)
class Handler:
    """Where an exception leads that is raised by an instruction from ``start`` to before ``end``.

    The stack is cut to ``depth``. What tells the instruction that raised is pushed where ``pushes_place``, then the
    exception.
    """

    start: int
    end: int
    target: int
    depth: int
    pushes_place: bool


@dataclass(frozen=True, slots=True)
class Decoded:
    """A code object's instructions, its handlers (the first that covers an instruction is its), its slots' names."""

    instructions: tuple[Instruction, ...]
    handlers: tuple[Handler, ...]
    slots: tuple[str, ...]

    def handler(self, index: int) -> Handler | None:
        """The one for an exception that the instruction raises."""
        return next((each for each in self.handlers if each.start <= index < each.end), None)

    def past_jumps(self, index: int) -> int:
        """Where control comes to from an instruction that may be a mere jump."""
        passed: set[int] = set()
        while self.instructions[index].name == "JUMP" and index not in passed:  # ``while True: pass`` is a circle
            passed.add(index)
            index = self.instructions[index].argument
        return index


@lru_cache(maxsize=4096)
def decode(code: CodeType) -> Decoded:
    """The instructions of a code object.

    Raises:
        UnknownInstruction: there is one that this module does not know.
    """
    begins: dict[int, int] = {}  # of each offset, the index of the first instruction that comes of it or after it
    made: list[tuple[str, Any, dis.Positions | None]] = []
    names: tuple[str, ...] | None = None
    bytecode = dis.Bytecode(code)
    originals = list(bytecode)
    for each in originals:
        begins[each.offset] = len(made)
        if each.opname == "KW_NAMES":
            names = code.co_consts[each.arg or 0]
        elif each.opname == "CALL" and names is not None:
            made += [("LOAD_CONST", names, each.positions), ("CALL_KW", each.arg, each.positions)]
            names = None
        else:
            made += [(name, argument, each.positions) for name, argument in _normalised(each)]
    begins[len(code.co_code)] = len(made)
    leads = _ends_of_loops(originals)
    instructions = (
        Instruction(name, _target(name, leads.get(argument, argument), begins), positions)
        if name in JUMPS
        else Instruction(name, argument, positions)
        for name, argument, positions in made
    )
    handlers = (
        Handler(begins[each.start], begins[each.end], begins[each.target], each.depth, each.lasti)
        for each in bytecode.exception_entries  # type: ignore[attr-defined]  # of 3.11 to 3.13
    )
    return Decoded(tuple(instructions), tuple(handlers), _slots(code))


def _target(name: str, offset: int, begins: Mapping[int, int]) -> int:
    if name == "SEND" and sys.version_info < (3, 12):
        return begins[offset] - 1  # the END_SEND that the original lacks
    return begins[offset]


def _slots(code: CodeType) -> tuple[str, ...]:
    cells = tuple(name for name in code.co_cellvars if name not in code.co_varnames)
    return code.co_varnames + cells + code.co_freevars


def _ends_of_loops(originals: list[dis.Instruction]) -> dict[int, int]:
    """Where a loop goes on whose iterator is exhausted: behind what is there to clear the stack up."""
    ends = {}
    for here, each in enumerate(originals):
        if each.opname == "END_FOR":
            ends[each.offset] = originals[here + (2 if sys.version_info >= (3, 13) else 1)].offset
    return ends


def _normalised(each: dis.Instruction) -> Iterator[tuple[str, Any]]:
    if each.opname in _DROPPED:
        return
    if each.opname in _AS_THEY_ARE:
        yield each.opname, each.argval
    elif each.opname in _RENAMED:
        yield _RENAMED[each.opname], each.argval
    elif each.opname in _BY_NUMBER:
        yield each.opname, each.arg
    elif each.opname in _OTHERWISE:
        yield from _OTHERWISE[each.opname](each.arg or 0, each)
    else:
        version = ".".join(map(str, sys.version_info[:2]))
        raise UnknownInstruction(f"{each.opname} of Python {version}")


_DROPPED = _names("CACHE EXTENDED_ARG NOP RESUME PRECALL END_FOR TO_BOOL")
_AS_THEY_ARE = _names(
    """LOAD_CONST STORE_GLOBAL DELETE_GLOBAL LOAD_NAME STORE_NAME DELETE_NAME LOAD_LOCALS LOAD_FROM_DICT_OR_GLOBALS
    SETUP_ANNOTATIONS PUSH_NULL POP_TOP STORE_ATTR DELETE_ATTR BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR BINARY_SLICE
    STORE_SLICE LIST_TO_TUPLE GET_LEN FORMAT_SIMPLE FORMAT_WITH_SPEC GET_ITER FOR_ITER LOAD_BUILD_CLASS RETURN_VALUE
    IMPORT_NAME IMPORT_FROM PUSH_EXC_INFO POP_EXCEPT CHECK_EXC_MATCH CHECK_EG_MATCH PREP_RERAISE_STAR
    LOAD_ASSERTION_ERROR BEFORE_WITH WITH_EXCEPT_START MATCH_KEYS MATCH_MAPPING MATCH_SEQUENCE RETURN_GENERATOR
    GET_YIELD_FROM_ITER SEND END_SEND CLEANUP_THROW GET_AITER GET_ANEXT END_ASYNC_FOR BEFORE_ASYNC_WITH ASYNC_GEN_WRAP
    POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE"""
)
_BY_NUMBER = _names(
    """LOAD_FAST LOAD_FAST_AND_CLEAR STORE_FAST DELETE_FAST MAKE_CELL COPY_FREE_VARS LOAD_DEREF STORE_DEREF DELETE_DEREF
    LOAD_FROM_DICT_OR_DEREF COPY SWAP BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP BUILD_STRING
    BUILD_SLICE LIST_APPEND SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE UNPACK_SEQUENCE CONVERT_VALUE
    CALL CALL_KW SET_FUNCTION_ATTRIBUTE RAISE_VARARGS RERAISE MATCH_CLASS GET_AWAITABLE"""
)
_RENAMED = {
    "JUMP_FORWARD": "JUMP",
    "JUMP_BACKWARD": "JUMP",
    **{
        f"POP_JUMP_{direction}_IF_{what}": f"POP_JUMP_IF_{what}"
        for direction in ("FORWARD", "BACKWARD")
        for what in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}

_Pieces = list[tuple[str, Any]]


def _load_global(arg: int, each: dis.Instruction) -> _Pieces:
    loaded, nothing = ("LOAD_GLOBAL", each.argval), ("PUSH_NULL", None)
    if not arg & 1:
        return [loaded]
    return [loaded, nothing] if sys.version_info >= (3, 13) else [nothing, loaded]


def _load_attribute(arg: int, each: dis.Instruction) -> _Pieces:
    is_method = sys.version_info >= (3, 12) and arg & 1
    return [("LOAD_METHOD" if is_method else "LOAD_ATTR", each.argval)]


def _load_of_class(arg: int, each: dis.Instruction) -> _Pieces:
    return [("LOAD_LOCALS", None), ("LOAD_FROM_DICT_OR_DEREF", arg)]


def _comparison(arg: int, each: dis.Instruction) -> _Pieces:
    return [("COMPARE_OP", dis.cmp_op[arg >> _COMPARISON_BITS])]


_COMPARISON_BITS = {11: 0, 12: 4, 13: 5}.get(sys.version_info[1], 5)


def _jump_or_pop(jump: str) -> Callable[[int, dis.Instruction], _Pieces]:
    return lambda arg, each: [("COPY", 1), (jump, each.argval), ("POP_TOP", None)]


def _format(arg: int, each: dis.Instruction) -> _Pieces:
    conversion, has_spec = arg & 3, arg & 4
    convert: _Pieces = [("CONVERT_VALUE", conversion)] if conversion else []
    if not has_spec:
        return [*convert, ("FORMAT_SIMPLE", None)]
    swap: _Pieces = [("SWAP", 2)] if conversion else []
    return [*swap, *convert, *swap, ("FORMAT_WITH_SPEC", None)]


def _make_function(arg: int, each: dis.Instruction) -> _Pieces:
    attributes: _Pieces = [("SET_FUNCTION_ATTRIBUTE", flag) for flag in (8, 4, 2, 1) if arg & flag]
    return [("MAKE_FUNCTION", None), *attributes]


def _intrinsic(arg: int, each: dis.Instruction) -> _Pieces:
    name = each.argrepr.removeprefix("INTRINSIC_")
    if name == "UNARY_POSITIVE":
        return [("UNARY_OP", "+")]
    if name == "PRINT":
        return [("PRINT_EXPR", None)]
    return [("TYPE_PARAMETER", name) if name in _OF_TYPES else (name, None)]


def _jump_to_send(arg: int, each: dis.Instruction) -> _Pieces:
    """The end of the loop around a SEND. What 3.11's takes from the stack at last, later ones take with END_SEND."""
    jump: _Pieces = [("JUMP", each.argval)]
    return jump if sys.version_info >= (3, 12) else [*jump, ("END_SEND", None)]


_OF_TYPES = _names(
    """TYPEVAR PARAMSPEC TYPEVARTUPLE SUBSCRIPT_GENERIC TYPEALIAS TYPEVAR_WITH_BOUND TYPEVAR_WITH_CONSTRAINTS
    SET_FUNCTION_TYPE_PARAMS SET_TYPEPARAM_DEFAULT"""
)

# For an instruction that is more than another name: what it becomes, of its argument and of what dis tells.
_OTHERWISE: dict[str, Callable[[int, dis.Instruction], _Pieces]] = {
    "LOAD_CLOSURE": lambda arg, each: [("LOAD_FAST", arg)],
    "LOAD_FAST_CHECK": lambda arg, each: [("LOAD_FAST", arg)],
    "LOAD_FAST_LOAD_FAST": lambda arg, each: [("LOAD_FAST", arg >> 4), ("LOAD_FAST", arg & 15)],
    "STORE_FAST_LOAD_FAST": lambda arg, each: [("STORE_FAST", arg >> 4), ("LOAD_FAST", arg & 15)],
    "STORE_FAST_STORE_FAST": lambda arg, each: [("STORE_FAST", arg >> 4), ("STORE_FAST", arg & 15)],
    "LOAD_CLASSDEREF": _load_of_class,
    "LOAD_GLOBAL": _load_global,
    "LOAD_ATTR": _load_attribute,
    "LOAD_METHOD": lambda arg, each: [("LOAD_METHOD", each.argval)],
    "LOAD_SUPER_ATTR": lambda arg, each: [("LOAD_SUPER_METHOD" if arg & 1 else "LOAD_SUPER_ATTR", each.argval)],
    "UNARY_POSITIVE": lambda arg, each: [("UNARY_OP", "+")],
    "UNARY_NEGATIVE": lambda arg, each: [("UNARY_OP", "-")],
    "UNARY_INVERT": lambda arg, each: [("UNARY_OP", "~")],
    "UNARY_NOT": lambda arg, each: [("UNARY_OP", "not")],
    "BINARY_OP": lambda arg, each: [("BINARY_OP", each.argrepr)],
    "COMPARE_OP": _comparison,
    "IS_OP": lambda arg, each: [("IS_OP", "is not" if arg else "is")],
    "CONTAINS_OP": lambda arg, each: [("CONTAINS_OP", "not in" if arg else "in")],
    "UNPACK_EX": lambda arg, each: [("UNPACK_EX", (arg & 0xFF, arg >> 8))],
    "JUMP_IF_TRUE_OR_POP": _jump_or_pop("POP_JUMP_IF_TRUE"),
    "JUMP_IF_FALSE_OR_POP": _jump_or_pop("POP_JUMP_IF_FALSE"),
    "FORMAT_VALUE": _format,
    "IMPORT_STAR": lambda arg, each: [("IMPORT_STAR", None), ("POP_TOP", None)],
    "PRINT_EXPR": lambda arg, each: [("PRINT_EXPR", None), ("POP_TOP", None)],
    "CALL_FUNCTION_EX": lambda arg, each: [("CALL_FUNCTION_EX", bool(arg & 1))],
    "MAKE_FUNCTION": _make_function,
    "RETURN_CONST": lambda arg, each: [("LOAD_CONST", each.argval), ("RETURN_VALUE", None)],
    "YIELD_VALUE": lambda arg, each: [("YIELD_VALUE", None)],
    "CALL_INTRINSIC_1": _intrinsic,
    "CALL_INTRINSIC_2": _intrinsic,
    "JUMP_BACKWARD_NO_INTERRUPT": _jump_to_send,
}
