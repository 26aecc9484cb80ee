"""Keys of containers, and exceptions, in messages and names of places."""

from __future__ import annotations

from typing import Any


def shown_key(key: Any) -> str:
    """A key's text; its class, where making a text of it may run code or ask for a value of the run."""
    if type(key) is tuple:
        return f"({', '.join(map(shown_key, key))})"
    return repr(key) if type(key).__repr__ in _PLAIN else type(key).__name__


_PLAIN = frozenset(kind.__repr__ for kind in (str, int, bool, float, bytes, type(None)))


def brief_error(error: BaseException) -> str:
    """An exception's kind and what it says, in one line."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


_LONGEST = 160  # characters of what an exception says: torch puts its stack, and backends whole graphs, into theirs
