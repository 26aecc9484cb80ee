"""Libraries run by themselves during a capture; what they may not do there is refused, whatever their handlers say."""

from __future__ import annotations

import io
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stillgraph as sg
from tests.importing import installed
from tests.unit.bytecode.segmented import CALLS, X, agrees, reasons, to_partial

LIBRARY = """
    import contextlib
    import logging
    import os
    import sys
    import time
    import traceback
    import warnings

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

    def printed():
        try:
            return time.time() > 0
        finally:
            print("finally")

    def written(file):
        try:
            return time.time() > 0
        finally:
            file.write("written")

    def closed(file):
        try:
            file.write("first")
            return time.time() > 0
        finally:
            file.close()

    def logged():
        try:
            return time.time() > 0
        finally:
            logging.getLogger("library").warning("logged")

    def warned():
        try:
            return time.time() > 0
        finally:
            warnings.warn("warned")

    def told():
        try:
            return time.time() > 0
        except BaseException:
            traceback.print_exc(file=sys.stdout)
            raise

    def tried_again():
        for _ in range(3):
            try:
                return time.time() > 0
            except Exception:
                print("again")

    def tried_for_ever():
        while True:
            try:
                return time.time() > 0
            except Exception:
                pass

    def sent(pipe):
        try:
            return os.write(pipe, b"first")
        finally:
            os.write(pipe, b"last")

    def replaced(path):
        try:
            return time.time() > 0
        finally:
            with open(path, "a") as file:
                file.write("x")

    def read(path):
        file = open(path)
        try:
            return len(file.read())
        finally:
            file.close()

    def called_at_the_end():
        with contextlib.ExitStack() as stack:
            stack.callback(print, "called")
            return time.time() > 0

    def called_back(function):
        try:
            return function()
        finally:
            print("called back")

    @contextlib.contextmanager
    def timed(name):
        begun = time.time()
        try:
            yield
        finally:
            print(name, time.time() >= begun)

    def produced():
        try:
            yield 1
            yield time.time() > 0
        finally:
            print("closed")
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


# ---- what handlers do outside
def of_a_timed_block(library: Any, x: Any) -> Any:
    with library.timed("outer"), library.timed("inner"):
        y = x * 2
        found = library.printed()
        print(y.sum().item())
    return y, found


def of_a_generator(library: Any, x: Any) -> Any:
    for each in library.produced():
        x = x + each
        print(x.sum().item())
    return x


def of_a_generator_that_is_left(library: Any, x: Any) -> Any:
    for each in library.produced():
        x = x + each
        break
    return x, library.told()


def of_a_function_of_the_users(library: Any, x: Any) -> Any:
    return x * 2, library.called_back(lambda: print("mine"))


def of(name: str) -> Any:
    return lambda library, x: (x * 2, getattr(library, name)())


ONCE = {
    **{name: of(name) for name in ("printed", "told", "tried_again", "tried_for_ever", "called_at_the_end")},
    "a block": of_a_timed_block,
    "a generator": of_a_generator,
    "a generator that is left": of_a_generator_that_is_left,
    "a function of the user's": of_a_function_of_the_users,
}


@pytest.mark.parametrize("function", ONCE.values(), ids=ONCE)
def test_handlers_of_a_library_print_once(function: Any, library: ModuleType) -> None:
    agrees(lambda record: lambda x: function(library, x), *CALLS)
    assert sys.gettrace() is None or "stillgraph" not in str(sys.gettrace())


def test_handlers_of_a_library_write_to_streams_once(library: ModuleType) -> None:
    """To those that are open before; others they may clean up."""

    def make(record: Any) -> Any:
        file = io.StringIO()

        def f(x: Any) -> Any:
            own = io.StringIO()
            found = library.written(file), library.closed(own), library.read(__file__) > 0
            record((file.getvalue(), own.closed))
            return x * 2, found

        return f

    agrees(make, *CALLS, settled=3)  # what is in the file keeps changing


def test_a_file_that_handlers_of_a_library_write_to(library: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "text"
    static = to_partial(lambda x: (x * 2, library.replaced(path)))
    for count in (1, 2, 3):
        assert static(X)[1] is True
        assert path.read_text() == "x" * count


def test_a_library_that_writes_past_streams(library: ModuleType) -> None:
    readable, writable = os.pipe()
    static = to_partial(lambda x: (x * 2, library.sent(writable)))
    for _ in range(3):
        assert static(X)[1] == 5
        assert os.read(readable, 100) == b"firstlast"
    os.close(readable)
    os.close(writable)


def test_handlers_of_a_library_log_and_warn_once(library: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    static = to_partial(lambda x: (x * 2, library.logged(), library.warned()))
    for _ in range(3):
        caplog.clear()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            static(X)
        assert [str(each.message) for each in seen] == ["warned"]
        assert [each.getMessage() for each in caplog.records if each.name == "library"] == ["logged"]


def test_who_traces_goes_on_to_trace(library: ModuleType) -> None:
    def trace(frame: Any, event: str, argument: Any) -> None:
        pass

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        to_partial(lambda x: (x * 2, library.printed()))(X)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)


class Printing:
    def __call__(self) -> None:
        print("called")


def test_what_a_library_calls_back_is_refused_in_a_full_graph(library: ModuleType) -> None:
    printing = Printing()
    with pytest.raises(sg.CaptureError, match="print is called by code that is not rewritten"):
        sg.to_static(lambda x: (x * 2, library.quietly(printing)), backend="eager")(X)
