"""Generated functions of plain Python do the same in the interpreter as in CPython."""

from __future__ import annotations

import linecache
import warnings
from types import FunctionType
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.property.plain_python import functions
from tests.property.test_programs import SEED
from tests.unit.bytecode.both import compare

QUICK, BATCH, BATCHES = 200, 500, 8  # functions
_FILE = "<a generated function>"

numbers = st.integers(-2, 5)
arguments = st.tuples(numbers, numbers, st.lists(numbers, max_size=4))


def load(source: str) -> FunctionType:
    """The function, whose lines can be found by those who show them."""
    linecache.cache[_FILE] = (len(source), None, source.splitlines(keepends=True), _FILE)
    names: dict[str, Any] = {"__name__": "generated"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # what it asks and what it is asked of are drawn
        exec(compile(source, _FILE, "exec"), names)
    function: FunctionType = names["program"]
    return function


def check(count: int, seed: int) -> None:
    """Compare so many different functions, each on a few arguments; the seed says which."""
    passed: set[str] = set()

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=count, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(functions(), st.lists(arguments, min_size=2, max_size=2))
    def agrees(source: str, calls: list[tuple[Any, ...]]) -> None:
        hypothesis.note(source)
        try:
            function = load(source)
        except SyntaxError:
            hypothesis.reject()
        for args in calls:
            hypothesis.note(repr(args))
            compare(function, *args)
        passed.add(source)

    agrees()
    assert len(passed) > count // 2


def test_functions_agree_with_cpython() -> None:
    check(QUICK, -1 - SEED)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_functions_agree_with_cpython(batch: int) -> None:
    check(BATCH, SEED * 1000 + batch)
