"""What the source of a program does with a place, as far as the text tells: whether it is written alone, or first."""

from __future__ import annotations

import ast
from typing import Any

from stillgraph.deploy.description.texts import functions_naming, mentions
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Attribute, Cell, Global, Slot, Source

_WRITING = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "clear", "discard"})
"""Methods of containers that give nothing back, and do not fail for what a container holds."""


def is_only_written(program: Program, place: Source) -> bool:
    """Whether no function that the program is made of reads the container at a place, or the one it lies in."""
    name = _name_of(place)
    functions = None if name is None else functions_naming(program, name)
    return functions is not None and all(_is_write(each) for tree in functions for each in mentions(tree, name))


def is_written_first(program: Program, place: Source) -> bool:
    """Whether the function that was captured gives an attribute of its receiver a value before it does anything else
    with it, in any case."""
    if not isinstance(place, Attribute) or place.base != Argument(0):
        return False
    functions = functions_naming(program, place.name)
    if functions is None or len(functions) != 1 or program.location is None:
        return False
    (function,) = functions
    if not isinstance(function, ast.FunctionDef) or function.name != program.location.function.rpartition(".")[2]:
        return False
    first = next(each for each in function.body if any(True for _ in mentions(each, place.name)))
    if not isinstance(first, ast.Assign) or not function.args.args:
        return False
    (target, *others), receiver = first.targets, function.args.args[0].arg
    owner = target.value if isinstance(target, ast.Attribute) else None
    of_receiver = isinstance(owner, ast.Name) and owner.id == receiver
    return of_receiver and not others and not any(True for _ in mentions(first.value, place.name))


def _name_of(place: Source) -> str | None:
    """The name by which code reaches a place."""
    current: Any = place
    while current is not None and not isinstance(current, (Attribute, Slot, Global, Cell)):
        current = getattr(current, "base", None)
    return None if current is None else str(current.name)


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
