"""Libraries run by themselves during a capture; what they may not do there is refused, whatever their handlers say."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stillgraph as sg
from tests.importing import installed
from tests.unit.bytecode.segmented import CALLS, X, agrees, reasons

LIBRARY = """
    import os
    import time

    class NoClock(Exception):
        pass

    def now():
        try:
            return time.time()
        except:
            return 0.0

    def now_or_none():
        try:
            return time.time()
        except Exception:
            return None

    def converted():
        try:
            return time.time()
        except Exception as error:
            raise NoClock("there is no clock") from error

    def times(n):
        for _ in range(n):
            yield now()

    def appended(path):
        try:
            with open(path, "a") as file:
                file.write("x")
        except:
            return False
        return True

    def removed(path):
        try:
            os.remove(path)
        except:
            return False
        return True

    def quietly(function):
        try:
            return function()
        except:
            return None

    class Clock:
        def __enter__(self):
            self.begun = now()
            return self

        def __exit__(self, *_):
            return None

        @property
        def elapsed(self):
            return now() - self.begun

        def __bool__(self):
            return now() > 0
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return installed(tmp_path, "library_of_stillgraph_tests", LIBRARY, monkeypatch)


def is_time(value: Any) -> bool:
    return isinstance(value, float) and value > 1


def of_all(library: Any, x: Any) -> Any:
    return x * 2, is_time(library.now())


def of_exceptions(library: Any, x: Any) -> Any:
    return x * 2, is_time(library.now_or_none())


def of_its_own(library: Any, x: Any) -> Any:
    try:
        found = library.converted()
    except library.NoClock:
        found = 0.0
    return x * 2, is_time(found)


def in_a_loop(library: Any, x: Any) -> Any:
    found = []
    for each in library.times(2):
        x = x + 1
        found.append(is_time(each))
    return x, found


def in_a_comprehension(library: Any, x: Any) -> Any:
    return x * 2, [is_time(each) for each in library.times(2)]


def in_a_branch(library: Any, x: Any) -> Any:
    if x.sum() > 0:
        x = x + is_time(library.now())
    return x * 2


def by_a_test(library: Any, x: Any) -> Any:
    return x * 2 if library.Clock() else x


def of_a_manager(library: Any, x: Any) -> Any:
    with library.Clock() as clock:
        y = x * 2
    return y, is_time(clock.begun), clock.elapsed < 1e6


FUNCTIONS = [of_all, of_exceptions, of_its_own, in_a_loop, in_a_comprehension, in_a_branch, by_a_test, of_a_manager]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_what_handlers_of_a_library_keep_is_still_refused(function: Any, library: ModuleType) -> None:
    agrees(lambda record: lambda x: function(library, x), *CALLS)


def test_each_call_asks_the_clock(library: ModuleType) -> None:
    static = sg.to_static(lambda x: (x * 2, library.now()), full_graph=False, strict=True, backend="eager")
    times = [static(X)[1] for _ in range(3)]
    assert times == sorted(set(times)), times
    assert any("time is called by code that is not rewritten" in each for each in reasons(static))


def test_a_file_is_written_once_in_each_call(library: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "text"
    static = sg.to_static(lambda x: (x * 2, library.appended(path)), full_graph=False, strict=True, backend="eager")
    for count in (1, 2, 3):
        assert static(X)[1] is True
        assert path.read_text() == "x" * count


def test_a_full_graph_is_refused(library: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.touch()
    static = sg.to_static(lambda x: (x * 2, library.removed(path)), backend="eager")
    for _ in range(2):
        with pytest.raises(sg.CaptureError, match="changes what is outside the program"):
            static(X)
        assert path.exists()


class Printing:
    def __call__(self) -> None:
        print("called")


def test_what_a_library_calls_back_is_refused_in_a_full_graph(library: ModuleType) -> None:
    printing = Printing()
    with pytest.raises(sg.CaptureError, match="print is called by code that is not rewritten"):
        sg.to_static(lambda x: (x * 2, library.quietly(printing)), backend="eager")(X)
