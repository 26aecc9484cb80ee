"""What is worked out for an object is kept by its identity, and goes with it."""

from __future__ import annotations

import gc
from types import CodeType

from stillgraph.core.identity_cache import IdentityCache


def compiled(file: str) -> CodeType:
    return compile("a = 1", file, "exec")


def test_equal_objects_are_told_apart() -> None:
    cache: IdentityCache[CodeType, str] = IdentityCache()
    one, other = compiled("file"), compiled("file")
    assert one == other
    assert (cache.get(one, lambda: "one"), cache.get(other, lambda: "other")) == ("one", "other")
    assert (cache.get(one, lambda: "again"), cache.get(one, lambda: "kind", "kind")) == ("one", "kind")


def test_what_is_known_goes_with_the_object() -> None:
    cache: IdentityCache[CodeType, str] = IdentityCache()
    code = compiled("file")
    cache.get(code, lambda: "known")
    del code
    gc.collect()
    assert cache._known == {}
