"""What the source of a program does with a place, as far as the text tells: whether it is written alone, or first.

The guards of a program stand wherever the capture looked, which is more than what the code reads.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from stillgraph.program.guards import Argument, Attribute, Cell, FunctionGuard, Global, Slot, Source
from stillgraph.program.program import Program

_WRITING = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "clear", "discard"})
"""Methods of containers that give nothing back, and do not fail for what a container holds."""


def is_only_written(program: Program, place: Source) -> bool:
    """Whether no function that the program is made of reads the container at a place, or the one it lies in."""
    name = _name_of(place)
    functions = None if name is None else _functions(program, name)
    return functions is not None and all(_is_write(each) for tree in functions for each in _mentions(tree, name))


def is_written_first(program: Program, place: Source) -> bool:
    """Whether the function that was captured gives an attribute of its receiver a value before it does anything else
    with it, in any case."""
    if not isinstance(place, Attribute) or place.base != Argument(0):
        return False
    functions = _functions(program, place.name)
    if functions is None or len(functions) != 1 or program.location is None:
        return False
    (function,) = functions
    if not isinstance(function, ast.FunctionDef) or function.name != program.location.function.rpartition(".")[2]:
        return False
    first = next(each for each in function.body if any(True for _ in _mentions(each, place.name)))
    if not isinstance(first, ast.Assign) or not function.args.args:
        return False
    (target, *others), receiver = first.targets, function.args.args[0].arg
    owner = target.value if isinstance(target, ast.Attribute) else None
    of_receiver = isinstance(owner, ast.Name) and owner.id == receiver
    return of_receiver and not others and not any(True for _ in _mentions(first.value, place.name))


_LAYOUT = ("stride", "is_contiguous", "storage_offset", "as_strided", "as_strided_")
_TORCH = str(Path(torch.__file__).parent)


def asks_layout(program: Program) -> bool:
    """Whether the user's code asks how a tensor lies in memory, so that an answer may be in the program."""
    own = [g for g in program.guards if isinstance(g, FunctionGuard) and not g.code.co_filename.startswith(_TORCH)]
    own_alone = replace(program, guards=tuple(own))
    for name in _LAYOUT:
        if any(_names(guard.code, name) for guard in own):
            functions = _functions(own_alone, name)
            if functions is None or any(_is_called(way) for tree in functions for way in _mentions(tree, name)):
                return True
    return False


def _is_called(way: list[ast.AST]) -> bool:
    return len(way) > 1 and isinstance(way[1], ast.Call) and way[1].func is way[0]


def _name_of(place: Source) -> str | None:
    """The name by which code reaches a place."""
    current: Any = place
    while current is not None and not isinstance(current, (Attribute, Slot, Global, Cell)):
        current = getattr(current, "base", None)
    return None if current is None else str(current.name)


def _functions(program: Program, name: str) -> list[ast.AST] | None:
    """The functions that have a name in them; None where one of them cannot be read."""
    found: dict[CodeType, ast.AST] = {}
    for guard in program.guards:
        if not isinstance(guard, FunctionGuard) or guard.code in found or not _names(guard.code, name):
            continue
        if any(name in code.co_consts for code in _codes(guard.code)):
            return None  # as of getattr(self, "seen")
        try:
            (found[guard.code],) = ast.parse(textwrap.dedent(inspect.getsource(guard.code))).body
        except (OSError, TypeError, SyntaxError, ValueError):
            return None
    return [*found.values()] or None


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _names(code: CodeType, name: str) -> bool:
    return any(name in (*c.co_names, *c.co_freevars, *c.co_cellvars, *c.co_consts) for c in _codes(code))


def _mentions(tree: ast.AST, name: str | None) -> Iterator[list[ast.AST]]:
    """The way to each place in a tree where the name stands: itself first, then what it stands in."""
    def walk(node: ast.AST, around: list[ast.AST]) -> Iterator[list[ast.AST]]:
        if (isinstance(node, ast.Attribute) and node.attr == name) or (isinstance(node, ast.Name) and node.id == name):
            yield [node, *around]
        for child in ast.iter_child_nodes(node):
            yield from walk(child, [node, *around])

    return walk(tree, [])


def _is_write(way: list[ast.AST]) -> bool:
    """Whether a mention of a container does nothing but write to it."""
    match way:
        case [ast.Attribute() | ast.Name(), ast.Attribute(attr=method), ast.Call(), ast.Expr(), *_]:
            return method in _WRITING
        case [mention, ast.Subscript(ctx=ast.Store(), value=held), ast.Assign(), *_]:
            return held is mention
        case [mention, ast.AugAssign(op=ast.Add(), target=target), *_]:
            return target is mention
    return False
