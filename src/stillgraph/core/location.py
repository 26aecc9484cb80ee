"""Places in the user's source."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass, field
from types import CodeType


@dataclass(frozen=True)
class Location:
    """A line, and where it is known a span of columns, of a user's file. Lines count from 1, columns from 0.

    Attributes:
        end_column: the first column behind the span; None where it goes on in the next line.
        callers: the lines that called the function, in a capture; the captured function's own comes first.
    """

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    function: str | None = None
    callers: tuple[Location, ...] = field(default=(), compare=False, repr=False)

    def source_line(self) -> str | None:
        """The text of the line without its newline, or None where the file cannot be read."""
        text = linecache.getline(self.file, self.line)
        return text.rstrip("\n") if text else None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def start_of(code: CodeType) -> Location:
    """Where a function starts: its name, behind ``def``; where there is none, as of a lambda, its first line."""
    line, name = code.co_firstlineno, code.co_name
    for number in range(line, line + _MOST_DECORATORS):
        text = linecache.getline(code.co_filename, number)
        found = re.match(rf"\s*(?:async\s+)?def\s+({re.escape(name)})\b", text)
        if found is not None:
            start, end = (len(text[:index].encode()) for index in found.span(1))
            return Location(code.co_filename, number, start, end, name)
    return Location(code.co_filename, line, function=name)


_MOST_DECORATORS = 50
