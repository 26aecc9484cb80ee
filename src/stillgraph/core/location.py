"""Places in the user's source."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field


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
