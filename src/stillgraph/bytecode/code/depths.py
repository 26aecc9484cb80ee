"""The stack at each instruction: how deep it is, on which all ways there agree, and which places of it are needed.

It stands by itself, so that Pythons that have nothing else can check it.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any


def _all(names: str, effect: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), effect)


# What each instruction takes from the stack and puts there: numbers, or functions of the argument that give both.
_EFFECTS: dict[str, Any] = {
    **_all("LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_DEREF LOAD_GLOBAL LOAD_NAME LOAD_LOCALS", (0, 1)),
    **_all("STORE_FAST STORE_DEREF STORE_GLOBAL STORE_NAME POP_TOP", (1, 0)),
    **_all("DELETE_FAST MAKE_CELL COPY_FREE_VARS DELETE_DEREF DELETE_GLOBAL DELETE_NAME", (0, 0)),
    **_all("LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS UNARY_OP LOAD_ATTR LIST_TO_TUPLE", (1, 1)),
    **_all("LOAD_CONST PUSH_NULL LOAD_BUILD_CLASS LOAD_ASSERTION_ERROR", (0, 1)),
    "SETUP_ANNOTATIONS": (0, 0),
    "COPY": lambda n: (n, n + 1),
    "SWAP": lambda n: (n, n),
    **_all("BINARY_OP COMPARE_OP IS_OP CONTAINS_OP BINARY_SUBSCR", (2, 1)),
    "LOAD_METHOD": (1, 2),
    "LOAD_SUPER_ATTR": (3, 1),
    "LOAD_SUPER_METHOD": (3, 2),
    "STORE_ATTR": (2, 0),
    "DELETE_ATTR": (1, 0),
    "STORE_SUBSCR": (3, 0),
    "DELETE_SUBSCR": (2, 0),
    "BINARY_SLICE": (3, 1),
    "STORE_SLICE": (4, 0),
    **_all("BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_STRING BUILD_SLICE", lambda n: (n, 1)),
    "BUILD_MAP": lambda n: (2 * n, 1),
    "BUILD_CONST_KEY_MAP": lambda n: (n + 1, 1),
    **_all("LIST_APPEND SET_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE", lambda n: (n + 1, n)),
    "MAP_ADD": lambda n: (n + 2, n),
    "UNPACK_SEQUENCE": lambda n: (1, n),
    "UNPACK_EX": lambda n: (1, n[0] + 1 + n[1]),
    **_all("GET_LEN MATCH_MAPPING MATCH_SEQUENCE", (1, 2)),
    **_all("CONVERT_VALUE FORMAT_SIMPLE GET_ITER GET_YIELD_FROM_ITER MAKE_FUNCTION", (1, 1)),
    "FORMAT_WITH_SPEC": (2, 1),
    "JUMP": (0, 0),
    **{f"POP_JUMP_IF_{what}": (1, 0) for what in ("TRUE", "FALSE", "NONE", "NOT_NONE")},
    "FOR_ITER": (1, 2),
    "CALL": lambda n: (n + 2, 1),
    "CALL_KW": lambda n: (n + 3, 1),
    "CALL_FUNCTION_EX": lambda keywords: (3 + keywords, 1),
    "SET_FUNCTION_ATTRIBUTE": (2, 1),
    "RETURN_VALUE": (1, 0),
    "IMPORT_NAME": (2, 1),
    "IMPORT_FROM": (1, 2),
    "IMPORT_STAR": (1, 1),
    "RAISE_VARARGS": lambda n: (n, 0),
    "RERAISE": lambda n: (n + 1, n),
    "PUSH_EXC_INFO": (1, 2),
    "POP_EXCEPT": (1, 0),
    "CHECK_EXC_MATCH": (2, 2),
    "CHECK_EG_MATCH": (2, 2),
    "PREP_RERAISE_STAR": (2, 1),
    "BEFORE_WITH": (1, 2),
    "WITH_EXCEPT_START": (4, 5),
    "STOPITERATION_ERROR": (1, 1),
    "MATCH_CLASS": (3, 1),
    "MATCH_KEYS": (2, 3),
    "RETURN_GENERATOR": (0, 1),
    "YIELD_VALUE": (1, 1),
    "SEND": (2, 2),
    "END_SEND": (2, 1),
    "CLEANUP_THROW": (3, 2),
    "TYPE_PARAMETER": lambda kind: (2 if "_WITH_" in kind or kind.startswith("SET_") else 1, 1),
    "GET_AWAITABLE": (1, 1),
    "GET_AITER": (1, 1),
    "GET_ANEXT": (1, 2),
    "END_ASYNC_FOR": (2, 0),
    "BEFORE_ASYNC_WITH": (1, 2),
    "ASYNC_GEN_WRAP": (1, 1),
    "PRINT_EXPR": (1, 1),
}
_LAST = {"JUMP", "RETURN_VALUE", "RAISE_VARARGS", "RERAISE"}


def depths(decoded: Any, jumps: Set[str]) -> dict[int, int]:
    """By index how deep the stack is at each instruction that control may come to.

    Args:
        decoded: the instructions, and the handlers of their exceptions: a `Decoded`.
        jumps: the instructions whose argument is where they lead to.

    Raises:
        AssertionError: two ways there do not agree, or an instruction takes what is not there. Only the handler that
            ends the handling of an exception may be come to from several depths (a ``return`` in ``finally`` has its
            value below): it looks at the top alone, and raises again.
    """
    known: dict[int, int] = {}
    todo = [(0, 0, False)]
    while todo:
        here, depth, handles = todo.pop()
        if here in known:
            differs = f"{decoded.instructions[here]} at {here}: {known[here]} or {depth} deep"
            assert known[here] == depth or handles, differs
            continue
        known[here] = depth
        takes, puts = effect(decoded.instructions[here])
        assert depth >= takes, f"{decoded.instructions[here]} at {here} takes {takes} of {depth}"
        after = depth - takes + puts
        todo += [(way, after - 2 * ends, False) for way, ends in _ways_on(decoded, here, jumps)]
        handler = decoded.handler(here)
        if handler is not None:
            assert depth >= handler.depth
            todo.append((handler.target, _depth_in(handler), decoded.instructions[handler.target].name == "COPY"))
    return known


def needed(decoded: Any, jumps: Set[str]) -> dict[int, frozenset[int]]:
    """By index which places of the stack hold what is used from there on, rather than merely taken away.

    Args:
        decoded: see `depths`.
        jumps: see `depths`.
    """
    deep = depths(decoded, jumps)
    before: dict[int, set[int]] = {here: set() for here in deep}
    for here in deep:
        for way, _ in _ways_on(decoded, here, jumps):
            before[way].add(here)
        handler = decoded.handler(here)
        if handler is not None:
            before[handler.target].add(here)
    found: dict[int, frozenset[int]] = {here: frozenset() for here in deep}
    todo = set(deep)
    while todo:
        here = todo.pop()
        after = frozenset().union(*(found[way] for way, _ in _ways_on(decoded, here, jumps)))
        now = _needed_before(decoded.instructions[here], deep[here], after)
        handler = decoded.handler(here)
        if handler is not None:
            agrees = _depth_in(handler) == deep[handler.target]
            now |= {place for place in range(handler.depth) if not agrees or place in found[handler.target]}
        if now != found[here]:
            found[here] = now
            todo |= before[here]
    return found


def _depth_in(handler: Any) -> int:
    """How deep the stack is where a handler begins."""
    depth: int = handler.depth + handler.pushes_place + 1
    return depth


def _needed_before(instruction: Any, depth: int, after: frozenset[int]) -> frozenset[int]:
    top, other = depth - 1, depth - (instruction.argument if instruction.name in ("COPY", "SWAP") else 1)
    if instruction.name == "POP_TOP":
        return after
    if instruction.name == "COPY":
        return after - {depth} | ({other} if depth in after else set())
    if instruction.name == "SWAP":
        exchanged = {top: other, other: top}
        return frozenset(exchanged.get(place, place) for place in after)
    below = depth - effect(instruction)[0]
    return frozenset(place for place in after if place < below) | frozenset(range(below, depth))


def effect(instruction: Any) -> tuple[int, int]:
    """How many values an instruction takes from the stack, and how many it puts there."""
    known = _EFFECTS[instruction.name]
    takes, puts = known(instruction.argument) if callable(known) else known
    return takes, puts


def _ways_on(decoded: Any, here: int, jumps: Set[str]) -> Iterator[tuple[int, bool]]:
    """Where an instruction leads to, and whether a loop ends there, which takes its iterator away."""
    instruction = decoded.instructions[here]
    if instruction.name not in _LAST:
        yield here + 1, False
    if instruction.name in jumps:
        yield instruction.argument, instruction.name == "FOR_ITER"
