"""The cache of a function is asked without a call of the function: it agrees with what a call then does."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from stillgraph.core.cached_calls import held_for

CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((True,), {}),
    ((1.0,), {}),
    (("a",), {}),
    ((1, 2), {}),
    (((1, 2),), {}),
    ((1,), {"z": 3}),
    ((1,), {"z": True}),
    ((), {"z": 3, "b": 1}),
    ((), {"b": 1, "z": 3}),
    ((None,), {}),
]


def found(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return held_for(function, args, kwargs)
    except LookupError:
        return None


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("size", [None, 128, 4, 1, 0])
def test_what_is_held_is_what_a_call_hits(size: int | None, typed: bool) -> None:
    @functools.lru_cache(maxsize=size, typed=typed)
    def made(*args: Any, **kwargs: Any) -> list[Any]:
        return [args, kwargs]

    for args, kwargs in [*CALLS, *CALLS, *reversed(CALLS)]:
        before, counts = found(made, args, kwargs), made.cache_info()
        value = made(*args, **kwargs)
        hit = made.cache_info().hits > counts.hits
        assert (before is value) == hit
        assert hit or before is None
    made.cache_clear()
    assert all(found(made, args, kwargs) is None for args, kwargs in CALLS)


def test_looking_counts_as_no_call() -> None:
    @functools.cache
    def made(value: int) -> int:
        return value

    made(3)
    counts = made.cache_info()
    assert found(made, (3,), {}) == 3
    assert found(made, (4,), {}) is None
    assert made.cache_info() == counts


def test_an_argument_without_a_hash() -> None:
    @functools.cache
    def made(value: Any) -> Any:
        return value

    made(3)
    with pytest.raises(TypeError, match="unhashable"):
        held_for(made, ([],), {})
