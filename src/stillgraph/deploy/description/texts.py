"""The text of the functions that a program is made of, and where a name stands in it.

The guards of a program stand wherever the capture looked, which is more than what the code reads.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import CodeType

from stillgraph.program.guards import FunctionGuard
from stillgraph.program.program import Program


def functions_naming(program: Program, name: str) -> list[ast.AST] | None:
    """The functions that have a name in them; None where one of them cannot be read."""
    found: dict[CodeType, ast.AST] = {}
    for guard in program.guards:
        if not isinstance(guard, FunctionGuard) or guard.code in found or not names(guard.code, name):
            continue
        if any(name in code.co_consts for code in codes(guard.code)):
            return None  # as of getattr(self, "seen")
        try:
            (found[guard.code],) = ast.parse(textwrap.dedent(inspect.getsource(guard.code))).body
        except (OSError, TypeError, SyntaxError, ValueError):
            return None
    return [*found.values()] or None


def codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes(inner)


def names(code: CodeType, name: str) -> bool:
    return any(name in (*c.co_names, *c.co_freevars, *c.co_cellvars, *c.co_consts) for c in codes(code))


def mentions(tree: ast.AST, name: str | None) -> Iterator[list[ast.AST]]:
    """The way to each place in a tree where the name stands: itself first, then what it stands in."""
    def walk(node: ast.AST, around: list[ast.AST]) -> Iterator[list[ast.AST]]:
        if (isinstance(node, ast.Attribute) and node.attr == name) or (isinstance(node, ast.Name) and node.id == name):
            yield [node, *around]
        for child in ast.iter_child_nodes(node):
            yield from walk(child, [node, *around])

    return walk(tree, [])
