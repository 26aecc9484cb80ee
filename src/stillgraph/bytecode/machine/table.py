"""What each operation of `decode` does: a handler in `handlers/`, a way for control to go, or a refusal by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from stillgraph.bytecode.code.decode import Instruction
from stillgraph.bytecode.code.depths import effect
from stillgraph.bytecode.handlers import containers, exceptions, functions, generators, values, variables
from stillgraph.bytecode.machine.frame import Handler

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

def taken(each: Instruction) -> int:
    """How many values from the top of the stack an instruction looks at."""
    takes, _ = effect(each)
    return takes + 3 if each.name == "DICT_MERGE" else takes  # it names the function that is called in what it raises
