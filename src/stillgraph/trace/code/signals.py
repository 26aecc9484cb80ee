"""Signals that unwind a capture. They are no `Exception`, so that user code cannot catch them by accident."""

from __future__ import annotations

from typing import Any


class Restart(BaseException):
    """Begin the capture anew, knowing more; `Knowledge.learn` says what follows from each ``kind``."""

    def __init__(self, kind: str, what: Any) -> None:
        super().__init__(kind, what)
        self.kind = kind
        self.what = what


class Diverged(BaseException):
    """Every path from here on raises in the program itself; nothing after this point is reached."""
