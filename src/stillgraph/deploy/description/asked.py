"""What the code that a program is made of asks of its tensors, so that an answer may be in the program."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from stillgraph.deploy.description.texts import codes, functions_naming, mentions, names
from stillgraph.program.guards import FunctionGuard
from stillgraph.program.program import Program

_LAYOUT = ("stride", "is_contiguous", "storage_offset", "as_strided", "as_strided_")
_GRADIENTS = ("requires_grad", "is_leaf", "grad_fn")
_TORCH = str(Path(torch.__file__).parent)


def asks_layout(program: Program) -> bool:
    """Whether the user's code asks how a tensor lies in memory."""
    return _asks(program, _LAYOUT, _is_called)


def asks_gradients(program: Program) -> bool:
    """Whether the user's code asks whether a tensor requires a gradient."""
    return _asks(program, _GRADIENTS, _is_read)


def handles_errors(program: Program) -> bool:
    """Whether the user's code has a ``try``: what it takes may be what torch raises for gradients."""
    own = _own(program)
    return any(code.co_exceptiontable for guard in own for code in codes(guard.code))


def _asks(program: Program, words: tuple[str, ...], is_asking: Callable[[list[ast.AST]], bool]) -> bool:
    own = _own(program)
    own_alone = replace(program, guards=tuple(own))
    for name in words:
        if any(names(guard.code, name) for guard in own):
            functions = functions_naming(own_alone, name)
            if functions is None or any(is_asking(way) for tree in functions for way in mentions(tree, name)):
                return True
    return False


def _own(program: Program) -> list[FunctionGuard]:
    return [g for g in program.guards if isinstance(g, FunctionGuard) and not g.code.co_filename.startswith(_TORCH)]


def _is_called(way: list[ast.AST]) -> bool:
    return len(way) > 1 and isinstance(way[1], ast.Call) and way[1].func is way[0]


def _is_read(way: list[ast.AST]) -> bool:
    return isinstance(way[0], ast.Attribute) and isinstance(way[0].ctx, ast.Load)
