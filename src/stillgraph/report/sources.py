"""The source of the functions that a capture ran, as they stand in their files."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from stillgraph.program.record import RanFunction


@dataclass(frozen=True)
class FunctionText:
    """The lines of a function.

    Attributes:
        ran: what is known of it.
        lines: its text, from ``ran.line`` on.
    """

    ran: RanFunction
    lines: tuple[str, ...]

    @property
    def last(self) -> int:
        """The number of its last line."""
        return self.ran.line + len(self.lines) - 1

    @cached_property
    def tree(self) -> ast.Module | None:
        """Its syntax tree with the line numbers of the file; None for what is no statement, a lambda say."""
        try:
            tree = ast.parse(textwrap.dedent("\n".join(self.lines)))
        except (SyntaxError, ValueError):
            return None
        return ast.increment_lineno(tree, self.ran.line - 1)

    @cached_property
    def shift(self) -> int:
        """By how many columns it is indented in its file."""
        return len(self.lines[0]) - len(self.lines[0].lstrip()) if self.lines else 0


def function_texts(functions: Iterable[RanFunction]) -> tuple[FunctionText, ...]:
    """The text of each function that has one; what stands inside another of them is part of that one's."""
    read = [text for each in functions if (text := _read(each)) is not None]
    by_place = {(text.ran.file, text.ran.line, text.last): text for text in reversed(read)}
    kept = [text for text in read if by_place[text.ran.file, text.ran.line, text.last] is text]
    return tuple(text for text in kept if not any(_is_around(other, text) for other in kept if other is not text))


def _is_around(other: FunctionText, text: FunctionText) -> bool:
    return other.ran.file == text.ran.file and other.ran.line <= text.ran.line and other.last >= text.last


def _read(function: RanFunction) -> FunctionText | None:
    lines = linecache.getlines(function.file)[function.line - 1 :]
    if not lines:
        return None
    try:
        block = inspect.getblock(lines)
    except (IndentationError, SyntaxError, tokenize.TokenError):
        block = lines[:1]
    text = [line.rstrip("\n") for line in block]
    while text and not text[-1].strip():
        text.pop()
    return FunctionText(function, tuple(text)) if text else None
