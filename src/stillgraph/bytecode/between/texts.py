"""An instruction as the piece of Python that it is, given the names of the values that it takes from the stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stillgraph.bytecode.code.decode import Instruction

NOTHING = None  # in the place of what `PUSH_NULL` has pushed
Names = Sequence[str | None]


def _call(each: Instruction, names: Names, keywords: Sequence[str] = ()) -> str:
    first, second, *given = names
    function, args = (second, given) if first is NOTHING else (first, given)
    if first is not NOTHING and second is not NOTHING:
        args = [second, *given]
    split = len(args) - len(keywords)
    shown = [*map(str, args[:split]), *(f"{name}={value}" for name, value in zip(keywords, args[split:]))]
    return f"{function}({', '.join(shown)})"


def _call_ex(each: Instruction, names: Names) -> str:
    first, second, *given = names
    shown = [f"*{given[0]}", *(f"**{value}" for value in given[1:])]
    return f"{second if first is NOTHING else first}({', '.join(shown)})"


def _attribute(each: Instruction, names: Names) -> str:
    return f"{names[-1]}.{each.argument}"


def _between(each: Instruction, names: Names) -> str:
    return f"{names[0]} {each.argument} {names[1]}"


def _update(each: Instruction, names: Names) -> str:
    return f"{names[0]}.update({names[-1]})"


def _variable(each: Instruction, names: Names) -> str:
    return "a variable that functions share"


def _match(each: Instruction, names: Names) -> str:
    return "match a pattern"


def _generator(each: Instruction, names: Names) -> str:
    return "a generator"


def _handler(each: Instruction, names: Names) -> str:
    return "handle an exception"


_CONVERSIONS = {1: "str", 2: "repr", 3: "ascii"}

_TEXTS: dict[str, Callable[[Instruction, Names], str]] = {
    "CALL": _call,
    "CALL_FUNCTION_EX": _call_ex,
    "LOAD_ATTR": _attribute,
    "LOAD_METHOD": _attribute,
    "BINARY_OP": _between,
    "COMPARE_OP": _between,
    "IS_OP": _between,
    "CONTAINS_OP": _between,
    "UNARY_OP": lambda each, names: f"{each.argument} {names[0]}",
    "BINARY_SUBSCR": lambda each, names: f"{names[0]}[{names[1]}]",
    "STORE_SUBSCR": lambda each, names: f"{names[1]}[{names[2]}] = {names[0]}",
    "DELETE_SUBSCR": lambda each, names: f"del {names[0]}[{names[1]}]",
    "STORE_ATTR": lambda each, names: f"{names[1]}.{each.argument} = {names[0]}",
    "DELETE_ATTR": lambda each, names: f"del {names[0]}.{each.argument}",
    "STORE_GLOBAL": lambda each, names: f"{each.argument} = {names[0]}",
    "RETURN_VALUE": lambda each, names: f"return {names[0]}",
    "GET_ITER": lambda each, names: f"iter({names[0]})",
    "FOR_ITER": lambda each, names: f"next({names[0]})",
    "RAISE_VARARGS": lambda each, names: f"raise {' from '.join(map(str, names))}".strip(),
    "RERAISE": lambda each, names: f"raise {names[-1]}",
    "BEFORE_WITH": lambda each, names: f"enter({names[0]})",
    "WITH_EXCEPT_START": lambda each, names: f"{names[0]}(...)",
    "CHECK_EXC_MATCH": lambda each, names: f"isinstance({names[0]}, {names[1]})",
    "FORMAT_SIMPLE": lambda each, names: f"format({names[0]})",
    "FORMAT_WITH_SPEC": lambda each, names: f"format({names[0]}, {names[1]})",
    "BUILD_STRING": lambda each, names: " + ".join(map(str, names)),
    "BUILD_TUPLE": lambda each, names: f"({', '.join(map(str, names))},)",
    "BUILD_LIST": lambda each, names: f"[{', '.join(map(str, names))}]",
    "LIST_APPEND": lambda each, names: f"{names[0]}.append({names[-1]})",
    "SET_ADD": lambda each, names: f"{names[0]}.add({names[-1]})",
    "MAP_ADD": lambda each, names: f"{names[0]}[{names[-2]}] = {names[-1]}",
    "MAKE_CELL": lambda each, names: "make a variable for inner functions",
    "MAKE_FUNCTION": lambda each, names: "define a function",
    "SET_FUNCTION_ATTRIBUTE": lambda each, names: "define a function",
    "IMPORT_NAME": lambda each, names: f"import {each.argument}",
    "POP_JUMP_IF_TRUE": lambda each, names: f"bool({names[0]})",
    "POP_JUMP_IF_FALSE": lambda each, names: f"bool({names[0]})",
    "POP_JUMP_IF_NONE": lambda each, names: f"{names[0]} is None",
    "POP_JUMP_IF_NOT_NONE": lambda each, names: f"{names[0]} is None",
    "UNPACK_SEQUENCE": lambda each, names: f"tuple({names[0]})",
    "UNPACK_EX": lambda each, names: f"list({names[0]})",
    "BINARY_SLICE": lambda each, names: f"{names[0]}[{names[1]}:{names[2]}]",
    "STORE_SLICE": lambda each, names: f"{names[1]}[{names[2]}:{names[3]}] = {names[0]}",
    "BUILD_SLICE": lambda each, names: f"slice({', '.join(map(str, names))})",
    "BUILD_SET": lambda each, names: f"{{{', '.join(map(str, names))}}}",
    "BUILD_MAP": lambda each, names: f"{{{', '.join(f'{k}: {v}' for k, v in zip(names[::2], names[1::2]))}}}",
    "BUILD_CONST_KEY_MAP": lambda each, names: f"dict(zip({names[-1]}, ({', '.join(map(str, names[:-1]))},)))",
    "LIST_EXTEND": lambda each, names: f"{names[0]}.extend({names[-1]})",
    "SET_UPDATE": _update,
    "DICT_UPDATE": _update,
    "DICT_MERGE": _update,
    "LIST_TO_TUPLE": lambda each, names: f"tuple({names[0]})",
    "CONVERT_VALUE": lambda each, names: f"{_CONVERSIONS[each.argument]}({names[0]})",
    "LOAD_SUPER_ATTR": lambda each, names: f"super().{each.argument}",
    "LOAD_SUPER_METHOD": lambda each, names: f"super().{each.argument}",
    "LOAD_BUILD_CLASS": lambda each, names: "define a class",
    "LOAD_DEREF": _variable,
    "LOAD_FROM_DICT_OR_DEREF": _variable,
    "STORE_DEREF": _variable,
    "DELETE_DEREF": _variable,
    "DELETE_GLOBAL": lambda each, names: f"del {each.argument}",
    "IMPORT_FROM": lambda each, names: f"{names[0]}.{each.argument}",
    "GET_LEN": lambda each, names: "the length of what is matched",
    "MATCH_CLASS": _match,
    "MATCH_KEYS": _match,
    "MATCH_MAPPING": _match,
    "MATCH_SEQUENCE": _match,
    "GET_YIELD_FROM_ITER": lambda each, names: f"iter({names[0]})",
    "SEND": lambda each, names: f"{names[0]}.send({names[-1]})",
    "YIELD_VALUE": lambda each, names: f"yield {names[0]}",
    "END_SEND": _generator,
    "CLEANUP_THROW": _generator,
    "RETURN_GENERATOR": _generator,
    "STOPITERATION_ERROR": _generator,
    "CHECK_EG_MATCH": _handler,
    "PREP_RERAISE_STAR": _handler,
    "PUSH_EXC_INFO": _handler,
}


def text_of(each: Instruction, names: Names, keywords: Sequence[str] = ()) -> str:
    """The text of an instruction.

    Args:
        each: the instruction.
        names: of the values that it takes, the topmost last.
        keywords: the names of a call's keywords.
    """
    if each.name == "CALL_KW":
        return _call(each, names[:-1], keywords)
    write = _TEXTS.get(each.name)
    return f"{each.name.lower()}({', '.join(map(str, names))})" if write is None else write(each, names)


_WITHOUT_RESULT = frozenset(
    {
        *("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "RAISE_VARARGS", "RERAISE"),
        *("STORE_FAST", "DELETE_FAST", "RETURN_VALUE", "LIST_APPEND", "SET_ADD", "MAP_ADD"),
        *("STORE_SLICE", "STORE_DEREF", "DELETE_DEREF", "DELETE_GLOBAL", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE"),
        *("DICT_MERGE", "PUSH_EXC_INFO", "STOPITERATION_ERROR"),
        *("MAKE_CELL", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE"),
    }
)


def gives_result(each: Instruction) -> bool:
    """Whether an instruction leaves something on the stack that is to be named."""
    return each.name not in _WITHOUT_RESULT
