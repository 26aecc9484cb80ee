"""Remembering what was worked out for an object by its identity, for no longer than the object lives."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class IdentityCache(Generic[K, V]):
    """What is known of objects that may be equal and yet not the same.

    Two code objects, say, are equal if their text and lines are, even if they come from different files. What is kept
    must not lead back to the object.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, Hashable], tuple[weakref.ref[K], V]] = {}
        self._lock = threading.RLock()

    def get(self, of: K, make: Callable[[], V], kind: Hashable = None) -> V:
        """What is known of an object; ``make`` works it out.

        Args:
            of: the object.
            make: called where nothing is known, or only of an object that was at the same place before.
            kind: which of several things are asked of it.
        """
        key = id(of), kind
        known = self._known.get(key)
        if known is not None and known[0]() is of:
            return known[1]
        with self._lock:
            made = make()

            def forget(dead: weakref.ref[K]) -> None:
                found = self._known.get(key)
                if found is not None and found[0] is dead:
                    self._known.pop(key, None)

            self._known[key] = weakref.ref(of, forget), made
            return made


def weakly_cached(find_out: Callable[[K], V]) -> Callable[[K], V]:
    """Let a function of one object, a code object or a class, remember its results.

    Unlike `functools.lru_cache` this keeps no object alive: a class leads to its methods and from there to closures and
    globals, all of them the user's.

    Args:
        find_out: the function; what it gives must not lead back to the object.
    """
    known: IdentityCache[K, V] = IdentityCache()  # to hash a code object is to hash all of its constants

    @functools.wraps(find_out)
    def remembered(of: K) -> V:
        return known.get(of, functools.partial(find_out, of))

    return remembered
