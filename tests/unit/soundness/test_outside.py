"""What is outside the program: clocks, files, other programs, chance, settings of Python's."""

from __future__ import annotations

import contextvars
import datetime
import decimal
import glob
import inspect
import locale
import logging
import os
import secrets
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.soundness.following import Box, Change, X, follows, setting


@pytest.fixture(autouse=True)
def _put_back() -> Any:
    precision, filters, argv, tf32 = decimal.getcontext().prec, warnings.filters[:], sys.argv[:], _tf32()
    yield
    decimal.getcontext().prec = precision
    warnings.filters[:] = filters  # type: ignore[index]  # it is a list
    sys.argv[:] = argv
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.backends.cuda.enable_flash_sdp(True)
    torch.sparse.check_sparse_tensor_invariants.disable()
    LOGGER.setLevel(logging.NOTSET)
    logging.disable(logging.NOTSET)
    threading.current_thread().name = "MainThread"


def _tf32() -> bool:
    return torch.backends.cuda.matmul.allow_tf32


# ---- clocks
TIMES: list[Callable[[], float]] = [time.time, time.perf_counter, time.monotonic, time.process_time]
TIMES += [time.time_ns, time.perf_counter_ns, time.monotonic_ns, time.process_time_ns, time.thread_time_ns]


@pytest.mark.parametrize("clock", TIMES, ids=lambda clock: clock.__name__)
def test_a_clock_is_read_at_every_call(clock: Callable[[], float]) -> None:
    static = sg.to_static(lambda x: (x * 2, clock()), backend="eager")
    before = clock()
    readings = [static(X)[1] for _ in range(3)]
    in_order = [before, *readings, clock()]
    assert in_order == sorted(in_order)
    assert {type(reading) for reading in readings} == {type(before)}
    assert static.cache_info().programs == 1


def test_sleeping_is_done_at_every_call() -> None:
    def naps(x: Tensor) -> Tensor:
        time.sleep(0.02)
        return x * 2

    static = sg.to_static(naps, backend="eager")
    static(X)
    start = time.perf_counter()
    static(X)
    assert time.perf_counter() - start >= 0.02


def test_code_that_times_itself(capsys: pytest.CaptureFixture[str]) -> None:
    def timed(x: Tensor) -> Tensor:
        start = time.perf_counter()
        y = x * 2
        print(f"took {time.perf_counter() - start:.3f} s")
        return y

    static = sg.to_static(timed, backend="eager")
    for _ in range(2):
        static(X)
    assert capsys.readouterr().out.count("took 0.0") == 2


# ---- files
def written(path: Path, text: str) -> Change:
    def change() -> None:
        path.write_text(text)

    return change


FILE_READERS: dict[str, Callable[[Path], Callable[[Tensor], Any]]] = {
    "os.path.exists": lambda path: lambda x: x * os.path.exists(path),
    "os.path.isfile": lambda path: lambda x: x * 2 if os.path.isfile(str(path)) else x,
    "Path.exists": lambda path: lambda x: x * path.exists(),
    "Path.is_file": lambda path: lambda x: x * path.is_file(),
    "os.listdir": lambda path: lambda x: x * len(os.listdir(path.parent)),
}


@pytest.mark.parametrize("name", FILE_READERS)
def test_whether_a_file_is_there(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    follows(FILE_READERS[name](path), written(path, "5"), path.unlink)


def test_what_is_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("2")
    follows(lambda x: x * float(path.read_text()), written(path, "5"))
    follows(lambda x: x * os.stat(path).st_size, written(path, "555"))
    follows(lambda x: x * os.path.getsize(path), written(path, "55"))


def test_a_file_that_comes_to_be(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def read(x: Tensor) -> Tensor:
        try:
            return x * float(path.read_text())
        except FileNotFoundError:
            return -x

    follows(read, written(path, "5"), path.unlink)


REFUSED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "open": (lambda x: x * len(open(__file__).read()), "open reads files"),  # noqa: SIM115  # as people write
    "with open": (lambda x: x * len(_read(__file__)), "open reads files"),
    "Path.open": (lambda x: x * len(Path(__file__).open().read()), "Path.open reads"),  # noqa: SIM115  # as people write
    "os.walk": (lambda x: x * len(list(os.walk("."))), "walk reads files"),
    "glob": (lambda x: x * len(glob.glob("*")), "glob reads files"),
    "np.load": (lambda x: x * np.load("absent.npy"), "load reads files"),
    "torch.load": (lambda x: x * torch.load("absent.pt"), "load reads files"),
    "datetime.now": (lambda x: x * datetime.datetime.now().year, "now reads the clock"),
    "date.today": (lambda x: x * datetime.date.today().year, "today reads the clock"),
    "strftime": (lambda x: x * int(time.strftime("%Y")), "strftime reads the clock"),
    "uuid4": (lambda x: (x, uuid.uuid4().hex), "uuid4 draws at random"),
    "urandom": (lambda x: (x, os.urandom(4)), "urandom draws at random"),
    "token_hex": (lambda x: (x, secrets.token_hex(4)), "token_hex draws at random"),
    "input": (lambda x: x * int(input()), "input waits for a person"),
    "_getframe": (lambda x: (x, sys._getframe(1).f_code.co_name), "sees the frames of the capture"),
    "inspect.stack": (lambda x: x * len(inspect.stack()), "sees the frames of the capture"),
}


def _read(name: str) -> str:
    with open(name) as file:
        return file.read()


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_in_a_program_is_refused(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(sg.CaptureError, match=message) as caught:
        sg.to_static(function, backend="eager")(X)
    assert "hint" in str(caught.value)


def test_a_given_time_is_formatted() -> None:
    follows(lambda x: (x, time.strftime("%Y", time.gmtime(0)), time.ctime(0)[:3]), seen=False)


def test_a_library_may_look_at_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "site-packages"
    package.mkdir()
    source = "def run(x):\n    open(__file__).close()\n    return x * 2 if x.sum() > 0 else x\n"
    (package / "stillgraph_test_files.py").write_text(source)
    monkeypatch.syspath_prepend(str(package))
    import stillgraph_test_files  # type: ignore[import-not-found]  # written above

    follows(lambda x: stillgraph_test_files.run(x), seen=False)


# ---- settings
LOGGER = logging.getLogger("stillgraph.test.outside")
VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE")


def in_autocast(x: Tensor) -> Any:
    with torch.autocast("cpu"):
        return (x[:, None] @ x[None]).dtype


def set_filters() -> None:
    warnings.filters.insert(0, warnings.filters[0])  # type: ignore[attr-defined]  # it is a list


SETTINGS: dict[str, tuple[Callable[[Tensor], Any], Change]] = {
    "autocast's dtype": (in_autocast, partial(torch.set_autocast_dtype, "cpu", torch.float16)),
    "get_autocast_dtype": (
        lambda x: x * (torch.get_autocast_dtype("cpu") is torch.float16),
        partial(torch.set_autocast_dtype, "cpu", torch.float16),
    ),
    "flash_sdp_enabled": (
        lambda x: x * torch.backends.cuda.flash_sdp_enabled(),
        partial(torch.backends.cuda.enable_flash_sdp, False),
    ),
    "allow_tf32": (
        lambda x: x * torch.backends.cuda.matmul.allow_tf32,
        setting(torch.backends.cuda.matmul, allow_tf32=True),
    ),
    "sparse invariants": (
        lambda x: x * torch.sparse.check_sparse_tensor_invariants.is_enabled(),
        torch.sparse.check_sparse_tensor_invariants.enable,
    ),
    "isEnabledFor": (lambda x: x * LOGGER.isEnabledFor(logging.DEBUG), partial(LOGGER.setLevel, logging.DEBUG)),
    "the level of a parent": (
        lambda x: x * LOGGER.getEffectiveLevel(),
        partial(logging.getLogger("stillgraph.test").setLevel, 17),
    ),
    "logging as a whole": (lambda x: x * LOGGER.isEnabledFor(logging.ERROR), partial(logging.disable, logging.ERROR)),
    "decimals": (lambda x: x * decimal.getcontext().prec, lambda: setattr(decimal.getcontext(), "prec", 7)),
    "the name of the thread": (
        lambda x: x * (threading.current_thread().name == "other"),
        lambda: setattr(threading.current_thread(), "name", "other"),
    ),
    "filters of warnings": (lambda x: x * len(warnings.filters), set_filters),
    "arguments": (lambda x: x * len(sys.argv), lambda: sys.argv.append("another")),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting(name: str) -> None:
    function, change = SETTINGS[name]
    follows(function, change)


def test_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        follows(lambda x: (x, locale.getlocale()), partial(locale.setlocale, locale.LC_CTYPE, "C"), seen=False)
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


def test_what_a_context_variable_holds() -> None:
    held, other = Box(rate=2.0, weight=torch.ones(3)), Box(rate=3.0, weight=torch.ones(3) * 2)
    token = VARIABLE.set(held)
    try:
        follows(
            lambda x: x * VARIABLE.get().rate * VARIABLE.get().weight,
            setting(held, rate=5.0),
            setting(held, weight=torch.zeros(3)),
            partial(VARIABLE.set, other),
            setting(other, rate=7.0),
        )
    finally:
        VARIABLE.reset(token)
