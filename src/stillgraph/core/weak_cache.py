"""Remembering what was found out about an object, for no longer than the object lives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from stillgraph.core.identity_cache import IdentityCache

K = TypeVar("K")
V = TypeVar("V")


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
