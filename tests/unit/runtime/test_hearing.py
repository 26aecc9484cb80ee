"""What a check hears: its own thread, and no other; everything is as before afterwards."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.runtime.comparing.hearing import heard

LOGGER = logging.getLogger("tests.hearing")


def elsewhere(call: Callable[[], None]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def tell(what: str) -> None:
    print("print", what)
    print("error", what, file=sys.stderr)
    LOGGER.warning("log %s", what)
    warnings.warn(f"warn {what}", stacklevel=1)


def test_one_thread_is_heard_and_others_are_not(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    out, err, handle, show = sys.stdout, sys.stderr, logging.Logger.handle, warnings.showwarning
    with warnings.catch_warnings(record=True) as warned, heard() as texts:
        tell("here")
        elsewhere(lambda: tell("there"))
    assert texts == {
        "what is printed": "print here\n",
        "what goes to stderr": "error here\n",
        "the warnings": "UserWarning: warn here\n",
        "what is logged": "WARNING tests.hearing: log here\n",
    }
    assert capsys.readouterr() == ("print there\n", "error there\n")
    assert caplog.messages == ["log there"]
    assert [str(each.message) for each in warned] == ["warn there"]
    assert (sys.stdout, sys.stderr, logging.Logger.handle, warnings.showwarning) == (out, err, handle, show)


def test_all_is_put_back_where_the_block_raises() -> None:
    before = sys.stdout, sys.stderr, logging.Logger.handle, warnings.showwarning
    with pytest.raises(ZeroDivisionError), heard():
        print(1 / 0)
    assert (sys.stdout, sys.stderr, logging.Logger.handle, warnings.showwarning) == before


def test_a_stream_that_another_thread_kept_is_the_one_around_it(capsys: pytest.CaptureFixture[str]) -> None:
    with heard():
        kept = sys.stdout
    kept.write("later\n")
    assert capsys.readouterr().out == "later\n"


def test_what_another_thread_put_back_meanwhile_stays() -> None:
    entered, leave, real = threading.Event(), threading.Event(), sys.stdout
    theirs = io.StringIO()

    def redirecting() -> None:
        with contextlib.redirect_stdout(theirs):
            entered.set()
            leave.wait()

    def staying() -> None:
        done.wait()

    done = threading.Event()
    threads = [threading.Thread(target=redirecting), threading.Thread(target=staying)]
    for thread in threads:
        thread.start()
    entered.wait()
    with heard():
        leave.set()
        threads[0].join()
    assert sys.stdout is real
    done.set()
    threads[1].join()


def test_a_check_while_another_thread_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def printing(x: Tensor) -> Tensor:
        if x.sum() > 0:
            print("mine")
        return x + 1

    lines, stop = [0], threading.Event()

    def work() -> None:
        while not stop.is_set():
            print("worker", lines[0])
            lines[0] += 1

    static = sg.to_static(printing, backend="eager")
    static(torch.ones(2))
    capsys.readouterr()
    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(3):
            static.verify(torch.ones(2))
    finally:
        stop.set()
        worker.join()
    assert capsys.readouterr().out.splitlines() == [f"worker {line}" for line in range(lines[0])]
