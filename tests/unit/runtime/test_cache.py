from __future__ import annotations

import warnings
from typing import Any

import pytest

from stillgraph.program.guards import ConstantGuard
from stillgraph.program.sources import Item
from stillgraph.runtime.calls.cache import CacheInfo, CapturedCall, ProgramCache, call_structure
from stillgraph.runtime.guards.checking import compile_guards
from tests.unit.runtime.programs import X, program_of


def captured(*args: Any, guards: Any = None, **kwargs: Any) -> CapturedCall:
    """A captured call that fits these arguments only."""
    guards = [ConstantGuard(X, args[0])] if guards is None else guards
    program = program_of(lambda: (), (), guards)
    run: Any = None
    finish: Any = None
    return CapturedCall(program, call_structure(args, kwargs), compile_guards((), guards), run, finish)


def add(cache: ProgramCache, *args: Any, **kwargs: Any) -> CapturedCall:
    call = captured(*args, **kwargs)
    cache.add(call, args, kwargs)
    return call


def found(cache: ProgramCache, *args: Any, **kwargs: Any) -> CapturedCall | None:
    hit = cache.find(args, kwargs)
    return None if hit is None else hit[0]


def test_a_program_is_found_by_its_guards() -> None:
    cache = ProgramCache("f", 4)
    one, two = add(cache, 1), add(cache, 2)
    assert [found(cache, 1), found(cache, 2), found(cache, 3)] == [one, two, None]


def test_calls_of_another_structure_are_told_apart_before_any_guard() -> None:
    cache = ProgramCache("f", 8)
    calls = [((1,), {}), ((1, 2), {}), ((1,), {"a": 2}), ((1,), {"b": 2}), ((1,), {"a": 2, "b": 3})]
    kept = [add(cache, *args, **kwargs) for args, kwargs in calls]
    assert [found(cache, *args, **kwargs) for args, kwargs in calls] == kept
    assert found(cache, 1, c=2) is None
    assert found(cache, 1, 2, 3) is None


def test_the_most_recently_used_comes_first() -> None:
    cache = ProgramCache("f", 4)
    one, two, three = add(cache, 1), add(cache, 2), add(cache, 3)
    assert cache.programs == (three.program, two.program, one.program)
    found(cache, 1)
    assert cache.programs == (one.program, three.program, two.program)
    found(cache, 3)
    assert cache.programs == (three.program, one.program, two.program)


def test_the_least_recently_used_is_evicted_whatever_its_structure() -> None:
    cache = ProgramCache("f", 2)
    one = add(cache, 1)
    add(cache, 2, 2)
    found(cache, 1)
    with pytest.warns(RuntimeWarning):
        three = add(cache, 3)
    assert [found(cache, 1), found(cache, 2, 2), found(cache, 3)] == [one, None, three]
    assert cache.info() == CacheInfo(hits=3, misses=3, programs=2, evictions=1, size=2)


def test_one_warning_says_what_keeps_changing() -> None:
    cache = ProgramCache("package.f", 2)
    first, second = Item(X, 0), Item(X, 1)

    def add_pair(pair: list[int]) -> None:
        guards = [ConstantGuard(first, pair[0]), ConstantGuard(second, pair[1])]
        cache.add(captured(pair, guards=guards), (pair,), {})

    add_pair([0, 0])
    add_pair([1, 5])
    sentence = r"package.f already has 2 programs.*: args\[0\]\[1\] should be 5, but is 6\."
    with pytest.warns(RuntimeWarning, match=sentence):
        add_pair([1, 6])  # the program for [1, 5] is the most similar
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add_pair([1, 7])
    assert cache.info().evictions == 2


def test_a_warning_where_only_the_structure_changes() -> None:
    cache = ProgramCache("f", 1)
    add(cache, 1)
    with pytest.warns(RuntimeWarning, match="its number of arguments, or their names, differ"):
        add(cache, 1, 2)


def test_clearing_keeps_the_counts() -> None:
    cache = ProgramCache("f", 2)
    add(cache, 1)
    found(cache, 1)
    cache.clear()
    assert found(cache, 1) is None
    assert cache.info() == CacheInfo(hits=1, misses=1, programs=0, evictions=0, size=2)


@pytest.mark.parametrize("size", [0, -1])
def test_a_cache_of_nothing(size: int) -> None:
    with pytest.raises(ValueError, match="at least one program"):
        ProgramCache("f", size)
