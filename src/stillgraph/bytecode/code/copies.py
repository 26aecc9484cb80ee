"""Instructions that CPython has written down twice, made one again.

A ``while`` has its test at its top and at its bottom, and short ends of functions stand wherever something leads to
them. Two instructions are one if they do the same, stand for the same place of the source, find as much on the stack
(the copy of a ``finally`` on the way to a ``return`` has the value below) and go on alike.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from stillgraph.bytecode.code.decode import JUMPS, Decoded, Instruction
from stillgraph.bytecode.code.depths import depths

_ALONE = frozenset(
    {"RETURN_GENERATOR", "YIELD_VALUE", "GET_YIELD_FROM_ITER", "SEND", "END_SEND", "CLEANUP_THROW", "GET_AWAITABLE"}
)  # what a generator that waits is found by
_OPPOSITE = {"POP_JUMP_IF_FALSE": "POP_JUMP_IF_TRUE", "POP_JUMP_IF_NONE": "POP_JUMP_IF_NOT_NONE"}


def without_copies(decoded: Decoded) -> Decoded:
    """The same program, in which each copy of an instruction is a jump to the first one."""
    kinds = _kinds(decoded)
    first: dict[int, int] = {}
    instructions = list(decoded.instructions)
    for index, kind in enumerate(kinds):
        original = first.setdefault(kind, index)
        if original != index and instructions[index].name != "JUMP":
            instructions[index] = replace(instructions[index], name="JUMP", argument=original)
    return replace(decoded, instructions=tuple(instructions))


def _kinds(decoded: Decoded) -> list[int]:
    """A number for each instruction, the same for those that are one: by what they do, then by where they lead to."""
    count = len(decoded.instructions)
    ways = [_ways(decoded, index) for index in range(count)]
    deep = depths(decoded, JUMPS)
    kinds = _numbered([(_doing(decoded, index), deep.get(index)) for index in range(count)])
    while True:
        finer = _numbered([(kinds[index], *(kinds[way] for way in ways[index])) for index in range(count)])
        if max(finer) == max(kinds):
            return finer
        kinds = finer


def _numbered(keys: list[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _doing(decoded: Decoded, index: int) -> Hashable:
    each = decoded.instructions[index]
    if each.name == "JUMP" or each.name in _ALONE or each.positions is None or each.positions.lineno is None:
        return index  # what has no place, as the end of a handler, is like others that stand at other depths
    handler = decoded.handler(index)
    caught = None if handler is None else (handler.depth, handler.pushes_place)
    return _OPPOSITE.get(each.name, each.name), _argument(each), each.positions, caught


def _argument(each: Instruction) -> Any:
    if each.name.startswith("POP_JUMP") or each.name == "FOR_ITER":
        return None
    return id(each.argument) if each.name == "LOAD_CONST" else each.argument


def _ways(decoded: Decoded, index: int) -> list[int]:
    """Where an instruction leads to, past jumps; of a condition first where it is true."""
    each = decoded.instructions[index]
    if each.name == "RETURN_VALUE" or each.name in _ALONE or each.name in ("RAISE_VARARGS", "RERAISE", "JUMP"):
        ways = []
    elif each.name in _OPPOSITE:
        ways = [index + 1, each.argument]
    elif each.name.startswith("POP_JUMP") or each.name == "FOR_ITER":
        ways = [each.argument, index + 1]
    else:
        ways = [index + 1]
    handler = decoded.handler(index)
    if handler is not None:
        ways.append(handler.target)
    return [decoded.past_jumps(way) for way in ways if way < len(decoded.instructions)]
