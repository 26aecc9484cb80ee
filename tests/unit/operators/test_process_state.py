"""What the whole process shares: asked again before each call, asked by each call, or refused; never a constant."""

from __future__ import annotations

import csv
import faulthandler
import gc
import itertools
import locale
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

import stillgraph as sg
from stillgraph.operators.outside import process_state
from stillgraph.trace.code.chance import CLOCKS

HERE = os.getcwd()
KEPT = [1]
READ: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], tuple[Any, Any, Any]]] = {
    "gc.isenabled": (lambda: gc.isenabled(), lambda on: gc.enable() if on else gc.disable(), (True, False, True)),
    "gc.get_threshold": (lambda: gc.get_threshold(), lambda to: gc.set_threshold(to), (700, 701, 700)),
    "getswitchinterval": (lambda: sys.getswitchinterval(), sys.setswitchinterval, (0.005, 0.25, 0.005)),
    "gettrace": (lambda: sys.gettrace() is None, sys.settrace, (None, None, None)),
    "getcwdb": (lambda: os.getcwdb(), os.chdir, (HERE, "/", HERE)),
    "abspath": (lambda: os.path.abspath("a"), os.chdir, (HERE, "/", HERE)),
    "Path.cwd": (lambda: pathlib.Path.cwd(), os.chdir, (HERE, "/", HERE)),
    "Path.resolve": (lambda: pathlib.Path("a").resolve(), os.chdir, (HERE, "/", HERE)),
    "Path.absolute": (lambda: pathlib.Path("a").absolute(), os.chdir, (HERE, "/", HERE)),
    "faulthandler": (
        lambda: faulthandler.is_enabled(),
        lambda on: faulthandler.enable(sys.__stderr__) if on else faulthandler.disable(),
        (True, False, True),
    ),
    "field_size_limit": (lambda: csv.field_size_limit(), csv.field_size_limit, (1000, 2000, 131072)),
    "getsignal": (
        lambda: signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN,
        lambda to: signal.signal(signal.SIGUSR1, to),
        (signal.SIG_DFL, signal.SIG_IGN, signal.SIG_DFL),
    ),
    "setlocale": (
        lambda: locale.setlocale(locale.LC_CTYPE),
        lambda to: locale.setlocale(locale.LC_CTYPE, to),
        ("C.UTF-8", "C", "C.UTF-8"),
    ),
    "geterr": (lambda: numpy.geterr()["over"], lambda to: numpy.seterr(over=to), ("warn", "ignore", "warn")),
    "tempdir": (lambda: tempfile.gettempdir(), lambda to: setattr(tempfile, "tempdir", to), ("/a", "/b", None)),
    "warn_only": (
        lambda: torch.is_deterministic_algorithms_warn_only_enabled(),
        lambda to: torch.use_deterministic_algorithms(False, warn_only=to),
        (False, True, False),
    ),
    "mha": (
        lambda: torch.backends.mha.get_fastpath_enabled(),
        torch.backends.mha.set_fastpath_enabled,
        (True, False, True),
    ),
}


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("what", READ)
def test_what_is_set_is_asked_for_again(what: str, full: bool) -> None:
    read, put, values = READ[what]

    def function(x: Any) -> Any:
        return x + 1, read()

    static = sg.to_static(function, backend="eager", full_graph=full)
    try:
        for value in values:
            put(value)
            assert static(torch.ones(2))[1] == read()
    finally:
        put(values[-1])


@pytest.mark.parametrize("full", [True, False])
def test_what_is_asked_for_belongs_to_the_function(full: bool, tmp_path: pathlib.Path) -> None:
    """Such as a list that it sorts, and lengthens."""

    def function(x: Any) -> Any:
        files = os.listdir(tmp_path)
        files.sort()
        files.append("end")
        return x + len(files), files

    for name in ("b", "a", "c"):
        (tmp_path / name).touch()
    static = sg.to_static(function, backend="eager", full_graph=full)
    for name in ("c", "c", "d"):
        (tmp_path / name).touch()
        assert static(torch.ones(2))[1] == function(torch.ones(2))[1]
    assert static.cache_info().programs == 2


@pytest.mark.parametrize("full", [True, False])
def test_the_time_zone_is_asked_for_again(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return x + 1, time.localtime(0).tm_hour, time.ctime(0), time.mktime((2020, 1, 1, 0, 0, 0, 0, 0, 0))

    static = sg.to_static(function, backend="eager", full_graph=full)
    try:
        for zone in ("UTC", "EST5EDT", "UTC"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert static(torch.ones(2))[1:] == function(torch.ones(2))[1:]
    finally:
        monkeypatch.undo()
        time.tzset()


MOMENTARY: dict[str, Callable[[], Any]] = {
    "os.times": lambda: os.times(),
    "gc.get_count": lambda: gc.get_count(),
    "getrefcount": lambda: sys.getrefcount(KEPT),
    "getsizeof": lambda: sys.getsizeof(KEPT),
    "getweakrefcount": lambda: weakref.getweakrefcount(READ),
    "threading.enumerate": lambda: len(threading.enumerate()),
}


@pytest.mark.parametrize("what", MOMENTARY)
def test_what_tells_the_moment_is_refused(what: str) -> None:
    def function(x: Any) -> Any:
        return x + 1, MOMENTARY[what]()

    with pytest.raises(sg.CaptureError, match="tells how things stand at the moment") as caught:
        sg.to_static(function, backend="eager")(torch.ones(2))
    assert caught.value.reason.code == "SG305"


SET: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "setrecursionlimit": (lambda: sys.setrecursionlimit(5000), sys.getrecursionlimit),
    "setswitchinterval": (lambda: sys.setswitchinterval(0.25), sys.getswitchinterval),
    "settrace": (lambda: sys.settrace(None), sys.gettrace),
    "gc.disable": (lambda: gc.disable(), gc.isenabled),
    "gc.set_threshold": (lambda: gc.set_threshold(1), gc.get_threshold),
    "setlocale": (lambda: locale.setlocale(locale.LC_CTYPE, "C"), lambda: locale.setlocale(locale.LC_CTYPE)),
    "field_size_limit": (lambda: csv.field_size_limit(5), csv.field_size_limit),
    "seterr": (lambda: numpy.seterr(all="ignore"), numpy.geterr),
    "set_num_threads": (lambda: torch.set_num_threads(2), torch.get_num_threads),
    "set_printoptions": (lambda: torch.set_printoptions(precision=2), lambda: repr(torch.ones(1) / 3)),
    "a setting of cudnn": (
        lambda: setattr(torch.backends.cudnn, "benchmark", True),
        lambda: torch.backends.cudnn.benchmark,
    ),
}


@pytest.mark.parametrize("what", SET)
def test_nothing_is_set_in_a_capture(what: str) -> None:
    act, read = SET[what]
    before = read()

    def function(x: Any) -> Any:
        act()
        return x + 1

    with pytest.raises(sg.CaptureError, match="the whole process shares") as caught:
        sg.to_static(function, backend="eager")(torch.ones(2))
    assert caught.value.reason.code == "SG305"
    assert read() == before


def test_each_call_collects_garbage() -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        gc.collect()
        return x + 1

    def tell(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 2:
            seen.append(info)

    static = sg.to_static(function, backend="eager")
    static(torch.ones(2))
    gc.callbacks.append(tell)
    try:
        static(torch.ones(2))
    finally:
        gc.callbacks.remove(tell)
    assert len(seen) == 1


def test_python_sets_it_between_segments() -> None:
    def function(x: Any) -> Any:
        y = x + 1
        sys.setswitchinterval(0.25)
        return y * 2

    static, before = sg.to_static(function, backend="eager", full_graph=False, strict=True), sys.getswitchinterval()
    try:
        for _ in range(3):
            sys.setswitchinterval(before)
            torch.testing.assert_close(static(torch.ones(2)), torch.ones(2) * 4)
            assert sys.getswitchinterval() == 0.25
    finally:
        sys.setswitchinterval(before)


def test_each_function_is_of_one_kind() -> None:
    """Those that both ask and set are told apart by how many arguments they are given."""
    kinds = {
        "clocks": set(CLOCKS),
        "settings": {*process_state.SETTINGS} - process_state.QUERIES_WITHOUT.keys(),
        "momentary": set(process_state.MOMENTARY),
        "setters": set(process_state.SETTERS),
    }
    for one, other in itertools.combinations(kinds, 2):
        assert not kinds[one] & kinds[other], (one, other)
    assert {*process_state.SETTINGS} & {*process_state.SETTERS} == process_state.QUERIES_WITHOUT.keys()


def test_a_mask_is_not_set_by_a_capture() -> None:
    before = os.umask(0o022)
    try:
        with pytest.raises(sg.CaptureError):
            sg.to_static(lambda x: (os.umask(0o077), x + 1), backend="eager")(torch.ones(2))
        static = sg.to_static(lambda x: (os.umask(0o027), x + 1), backend="eager", full_graph=False, strict=True)
        assert [static(torch.ones(2))[0] for _ in range(3)] == [0o022, 0o027, 0o027]
    finally:
        os.umask(before)
