"""Keys of containers in messages and names of places."""

from __future__ import annotations

from typing import Any


def shown_key(key: Any) -> str:
    """A key's text; its class, where making a text of it may run code or ask for a value of the run."""
    if type(key) is tuple:
        return f"({', '.join(map(shown_key, key))})"
    return repr(key) if type(key).__repr__ in _PLAIN else type(key).__name__


_PLAIN = frozenset(kind.__repr__ for kind in (str, int, bool, float, bytes, type(None)))
