"""Whether the code that a program is made of asks how a tensor lies in memory."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import torch

from stillgraph.deploy.description.texts import functions_naming, mentions, names
from stillgraph.program.guards import FunctionGuard
from stillgraph.program.program import Program

_LAYOUT = ("stride", "is_contiguous", "storage_offset", "as_strided", "as_strided_")
_TORCH = str(Path(torch.__file__).parent)


def asks_layout(program: Program) -> bool:
    """Whether the user's code asks how a tensor lies in memory, so that an answer may be in the program."""
    own = [g for g in program.guards if isinstance(g, FunctionGuard) and not g.code.co_filename.startswith(_TORCH)]
    own_alone = replace(program, guards=tuple(own))
    for name in _LAYOUT:
        if any(names(guard.code, name) for guard in own):
            functions = functions_naming(own_alone, name)
            if functions is None or any(_is_called(way) for tree in functions for way in mentions(tree, name)):
                return True
    return False


def _is_called(way: list[ast.AST]) -> bool:
    return len(way) > 1 and isinstance(way[1], ast.Call) and way[1].func is way[0]
