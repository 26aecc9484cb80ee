"""Tuples that paths or loops make anew: each may be one that the code has by another name."""

from __future__ import annotations

from typing import Any


class JoinedTuples:
    """Remembers them, so that nobody takes one for another object than it is on a path."""

    def __init__(self) -> None:
        self._all: dict[int, tuple[Any, ...]] = {}

    def join(self, made: Any) -> Any:
        """Told of what was made of two values; gives it back."""
        if isinstance(made, tuple):
            self._all[id(made)] = made
        return made

    def __contains__(self, value: Any) -> bool:
        return id(value) in self._all
