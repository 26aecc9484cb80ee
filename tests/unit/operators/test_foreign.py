"""Objects of C's from before the call: a program would do to them once what each call has to do."""

from __future__ import annotations

import hashlib
import io
import mmap
import multiprocessing
import pickle
import re
import sqlite3
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.importing import installed


def connection() -> Any:
    made = sqlite3.connect(":memory:")
    made.execute("create table seen (value real)")
    return made


def cursor_count(made: Any) -> Any:
    made.execute("insert into seen values (1)")
    return made.execute("select count(*) from seen").fetchone()


def rows_in_block(made: Any) -> Any:
    with made:
        return made.total_changes


USES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "a connection": (connection, cursor_count),
    "a connection in a block": (connection, rows_in_block),
    "a method by its class": (connection, lambda made: sqlite3.Connection.execute(made, "select 1").fetchone()),
    "a checksum": (hashlib.sha1, lambda made: made.update(b"a")),
    "a checksum that is read": (hashlib.sha1, lambda made: made.hexdigest()),
    "a compressor": (zlib.compressobj, lambda made: made.compress(b"a")),
    "a lock that is tried": (threading.Lock, lambda made: made.acquire(blocking=False)),
    "a lock that is looked at": (threading.Lock, lambda made: made.locked()),
    "a lock that is kept": (threading.Lock, lambda made: made.acquire()),
    "a map of memory": (lambda: mmap.mmap(-1, 10), lambda made: made.read(1)),
    "an unpickler": (lambda: pickle.Unpickler(io.BytesIO(pickle.dumps(1))), lambda made: made.load()),
    "a scanner": (lambda: re.compile("a").scanner("aaa"), lambda made: made.match() is None),  # type: ignore[attr-defined]  # not in the stubs
    "a stream": (lambda: io.StringIO("a"), lambda made: made.readline()),
}


@pytest.mark.parametrize("what", USES)
def test_what_was_there_is_left_alone(what: str) -> None:
    make, use = USES[what]
    made = make()

    def function(x: Any) -> Any:
        y = x + 1
        return use(made), y

    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(torch.ones(2))
    assert caught.value.reason.code == "SG305"
    assert caught.value.hint


OWN: dict[str, Callable[[], Any]] = {
    "a checksum": lambda: hashlib.sha1(b"a").hexdigest(),
    "a compressor": lambda: zlib.compressobj().compress(b"a" * 100),
    "a lock": lambda: threading.Lock().acquire(blocking=False),
    "a stream in memory": lambda: io.StringIO("a\nb").readline(),
    "a connection": lambda: connection().total_changes,
}


@pytest.mark.parametrize("what", OWN)
def test_what_the_function_makes_is_its_own_affair(what: str) -> None:
    def function(x: Any) -> Any:
        return x + 1, OWN[what]()

    static = sg.to_static(function, backend="eager")
    for _ in range(2):
        assert static(torch.ones(2))[1] == OWN[what]()


LOCK = threading.Lock()


def in_a_block(x: Any) -> Any:
    with LOCK:
        return x + 1


def by_hand(x: Any) -> Any:
    LOCK.acquire()
    try:
        y = x + 1
    finally:
        LOCK.release()
    return y


@pytest.mark.parametrize("function", [in_a_block, by_hand])
def test_a_lock_that_is_given_back_changes_nothing(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for number in (1, 2):
        torch.testing.assert_close(static(torch.ones(2) * number), torch.ones(2) * number + 1)
        assert not LOCK.locked()


LIBRARY = """
    def take(lock):
        lock.acquire()

    def give_back(lock):
        lock.release()

    def both(lock):
        take(lock)
        give_back(lock)

    def fails(lock):
        lock.acquire()
        print("taken")
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    return installed(tmp_path, "locking", LIBRARY, monkeypatch)


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock, multiprocessing.Lock])
def test_a_lock_that_a_library_gives_back_is_taken_once(library: Any, make: Callable[[], Any]) -> None:
    lock = make()

    def paired(x: Any) -> Any:
        library.both(lock)
        return x + 1

    def unpaired(x: Any) -> Any:
        library.give_back(lock)
        return x + 1

    static = sg.to_static(paired, backend="eager")
    for number in (1, 2):
        torch.testing.assert_close(static(torch.ones(2) * number), torch.ones(2) * number + 1)
    lock.acquire()
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(unpaired, backend="eager")(torch.ones(2))
    assert caught.value.reason.code == "SG305"
    lock.release()  # it is taken still


def test_a_lock_that_a_library_has_taken_where_a_capture_ends_is_given_back(library: Any) -> None:
    lock = threading.Lock()

    def function(x: Any) -> Any:
        library.fails(lock)
        return x + 1

    with pytest.raises(sg.CaptureError):
        sg.to_static(function, backend="eager")(torch.ones(2))
    assert not lock.locked()


def test_a_lock_that_is_kept_is_told_where_it_is_taken() -> None:
    lock = threading.Lock()

    def function(x: Any) -> Any:
        lock.acquire()
        return x + 1

    with pytest.raises(sg.CaptureError, match="a lock is taken, and not given back in the same call") as caught:
        sg.to_static(function, backend="eager")(torch.ones(2))
    assert caught.value.location is not None
    assert caught.value.location.line == function.__code__.co_firstlineno + 1
    assert not lock.locked()


def test_a_data_base_in_a_file_is_not_opened_by_a_capture(tmp_path: Path) -> None:
    file = tmp_path / "seen.db"

    def function(x: Any) -> Any:
        return x + sqlite3.connect(file).total_changes

    with pytest.raises(sg.CaptureError, match="changes what is outside the program\\n") as caught:
        sg.to_static(function, backend="eager")(torch.ones(2))
    assert caught.value.reason.code == "SG305"
    assert not file.exists()


def test_functions_of_extensions_are_no_objects_from_before() -> None:
    function = torch._C._get_tracing_state

    def asks(x: Any) -> Any:
        return x + 1 if function() is None else x

    assert sg.to_static(asks, backend="eager")(torch.ones(2)).tolist() == [2.0, 2.0]
