"""Readable text of rewritten code, and from which of the user's lines each of its lines came."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from stillgraph.source.tree import without_warnings


@dataclass(frozen=True)
class Listing:
    """Text and where it came from.

    Attributes:
        text: the source of a rewritten function.
        lines: line of the text -> line of the user's file.
    """

    text: str
    lines: dict[int, int]


def listing(node: ast.stmt | ast.expr) -> Listing:
    """Print a rewritten function, with an empty line after each function nested in it."""
    try:
        text = ast.unparse(node)
    except RecursionError:
        return Listing("# nested too deeply to be printed", {1: node.lineno})
    statement = node if isinstance(node, ast.stmt) else ast.Expr(node, lineno=node.lineno, col_offset=node.col_offset)
    try:
        with without_warnings():
            printed = ast.parse(text).body[0]
    except SyntaxError:                     # over a hundred levels of indentation, which Python refuses to read
        return Listing(text, {1: node.lineno})
    came_from: dict[int, int] = {}
    gaps: set[int] = set()
    docstrings: set[int] = set()
    for new, old in zip(_statements(printed), _statements(statement), strict=True):
        came_from.setdefault(new.lineno, old.lineno)
        last = new.end_lineno or new.lineno
        if isinstance(new, ast.FunctionDef) and new is not printed:
            gaps.add(last)
        if isinstance(new, ast.Expr) and isinstance(new.value, ast.Constant):
            docstrings.update(range(new.lineno, last + 1))
    return _spaced(text.split("\n"), came_from, gaps, docstrings)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements, in the same order for a tree and for what its text is parsed to."""
    for child in ast.walk(node):
        if isinstance(child, ast.stmt):
            yield child


def _spaced(lines: list[str], came_from: dict[int, int], gaps: set[int], docstrings: set[int]) -> Listing:
    """Put empty lines where they help reading, and number the lines anew.

    Args:
        lines: the text.
        came_from: number of a line of it -> the user's line.
        gaps: numbers of the lines after which there is to be an empty one.
        docstrings: numbers of the lines that are not to be touched.
    """
    made: list[str] = []
    numbers: dict[int, int] = {}
    origin = came_from.get(1, 1)
    for number, line in enumerate(lines, 1):
        if not line and number not in docstrings and made and (not made[-1] or made[-1].endswith(":")):
            continue
        made.append(line)
        origin = came_from.get(number, origin)
        numbers[len(made)] = origin
        following = lines[number] if number < len(lines) else ""
        if number in gaps and following.strip():
            made.append("")
            numbers[len(made)] = origin
    return Listing("\n".join(made), numbers)
