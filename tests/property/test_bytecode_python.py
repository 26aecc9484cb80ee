"""Generated functions of plain Python do the same in the interpreter as in CPython."""

from __future__ import annotations

import inspect
import linecache
import warnings
from pathlib import Path
from types import FunctionType
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.property.plain_python import functions
from tests.property.test_programs import SEED, folder
from tests.property.test_programs import load as load_file
from tests.property.ways import to_segments
from tests.unit.bytecode.both import compare, seen

__all__ = ["folder"]  # the fixture

FEW, QUICK, SOME, BATCH, BATCHES = 8, 200, 20, 100, 40  # functions
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


_DRAWN = """
def drawn(a, b, items):
    found = []
    for each in program(a, b, items):
        found.append(each)
    return found
"""


def compare_in_segments(folder: Path, source: str, calls: list[tuple[Any, ...]]) -> None:
    """Calls give, raise and print the same in segments; where the function is a generator, one that draws from it."""
    function = load_file(source + _DRAWN, folder)
    if inspect.isgeneratorfunction(function):
        function = function.__globals__["drawn"]
    static = to_segments(function)
    for args in calls:
        expected, actual = seen(function, *args), seen(static, *args)
        for told in (expected, actual):
            _without_places(told.error)
        assert actual == expected


def _without_places(error: Any) -> None:
    """Take the places out of what is told of an exception: in segments, one more may be shown."""
    if isinstance(error, dict):
        error.pop("lines", None)
    for each in error.values() if isinstance(error, dict) else error if isinstance(error, (tuple, list)) else ():
        _without_places(each)


def check(count: int, seed: int, folder: Path | None = None) -> None:
    """Compare so many different functions, each on a few arguments; the seed says which.

    Args:
        count: of functions.
        seed: of what is drawn.
        folder: for files of the functions, which are run in segments then, rather than in the interpreter.
    """
    passed: set[str] = set()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count * 5 // 4,  # some are drawn twice
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(functions(), st.lists(arguments, min_size=2, max_size=2))
    def agrees(source: str, calls: list[tuple[Any, ...]]) -> None:
        hypothesis.note(source)
        try:
            function = load(source)
        except SyntaxError:
            hypothesis.reject()
        if folder is not None:
            hypothesis.note(repr(calls))
            compare_in_segments(folder, source, calls)
        for args in calls if folder is None else ():
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


def test_a_few_functions_agree_with_cpython_in_segments(folder: Path) -> None:
    check(FEW, -1 - SEED, folder)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_functions_agree_with_cpython_in_segments(folder: Path, batch: int) -> None:
    check(SOME, SEED * 1000 + batch, folder)
