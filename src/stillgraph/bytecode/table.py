"""What each operation of `decode` does: a handler in `handlers/`, a way for control to go, or a refusal by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from stillgraph.bytecode.decode import Instruction
from stillgraph.bytecode.frame import Handler
from stillgraph.bytecode.handlers import containers, exceptions, functions, generators, values, variables

HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **variables.HANDLERS,
        **values.HANDLERS,
        **containers.HANDLERS,
        **functions.HANDLERS,
        **exceptions.HANDLERS,
        **generators.HANDLERS,
    }
)

CONTROL = frozenset(
    {
        *("JUMP", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE"),
        *("FOR_ITER", "RETURN_VALUE", "YIELD_VALUE", "SEND", "CLEANUP_THROW"),
    }
)
"""What `interpreter.py` does itself."""

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "END_ASYNC_FOR", "BEFORE_ASYNC_WITH", "ASYNC_GEN_WRAP"),
            "it is asynchronous",
        ),
        **dict.fromkeys(
            (
                *("LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_LOCALS", "LOAD_FROM_DICT_OR_GLOBALS"),
                *("SETUP_ANNOTATIONS", "IMPORT_STAR", "PRINT_EXPR"),
            ),
            "it is the body of a class or module, which Python runs",
        ),
        "TYPE_PARAMETER": "it makes a generic function or class",
    }
)
"""What no function that is interpreted has in it, or what is left to Python, and why."""


MOVES = frozenset(
    {
        *("LOAD_FAST", "LOAD_FAST_AND_CLEAR", "STORE_FAST", "DELETE_FAST", "MAKE_CELL", "COPY_FREE_VARS", "LOAD_CONST"),
        *("PUSH_NULL", "POP_TOP", "COPY", "SWAP", "JUMP", "POP_EXCEPT", "LOAD_GLOBAL", "LOAD_ASSERTION_ERROR"),
    }
)
"""What does not look at the values that it moves."""

_TAKEN: dict[str, Any] = {
    **dict.fromkeys(("BINARY_OP", "COMPARE_OP", "IS_OP", "CONTAINS_OP", "BINARY_SUBSCR", "STORE_ATTR"), 2),
    **dict.fromkeys(("DELETE_SUBSCR", "FORMAT_WITH_SPEC", "SET_FUNCTION_ATTRIBUTE", "IMPORT_NAME", "SEND"), 2),
    **dict.fromkeys(("CHECK_EXC_MATCH", "CHECK_EG_MATCH", "PREP_RERAISE_STAR", "MATCH_KEYS", "END_SEND"), 2),
    **dict.fromkeys(("LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "STORE_SUBSCR", "BINARY_SLICE", "MATCH_CLASS"), 3),
    **dict.fromkeys(("STORE_SLICE", "WITH_EXCEPT_START"), 4),
    **dict.fromkeys(("LOAD_DEREF", "DELETE_DEREF", "DELETE_GLOBAL", "LOAD_BUILD_CLASS", "RETURN_GENERATOR"), 0),
    **dict.fromkeys(("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE", "RAISE_VARARGS"), int),
    **dict.fromkeys(("LIST_APPEND", "SET_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "RERAISE"), lambda n: n + 1),
    "DICT_MERGE": lambda n: n + 4,
    "MAP_ADD": lambda n: n + 2,
    "BUILD_MAP": lambda n: 2 * n,
    "BUILD_CONST_KEY_MAP": lambda n: n + 1,
    "CALL": lambda n: n + 2,
    "CALL_KW": lambda n: n + 3,
    "CALL_FUNCTION_EX": lambda keywords: 3 + keywords,
    "CLEANUP_THROW": 3,
}


def taken(each: Instruction) -> int:
    """How many values from the top of the stack an instruction looks at."""
    found = _TAKEN.get(each.name, 1)
    return found if isinstance(found, int) else int(found(each.argument))
