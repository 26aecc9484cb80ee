"""Debuggers in captured functions: which one is started, in whose frame, and which lines a tracer sees."""

from __future__ import annotations

import bdb
import inspect
import pdb
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.operators.outside import debugging


def line_of(function: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


# ---- which lines are gone through
def called(y: Tensor, limit: int) -> Tensor:
    for _ in range(limit):
        y = y + 1
    return y


def with_everything(x: Tensor) -> Any:
    total = x.sum()
    found = []
    if total > 0:
        y = x * 3
        y = y - 1
    elif total < -5:
        y = x * 7
    else:
        y = x - 5
    while y.sum() > 4:
        y = y / 2
        if y.max() > 1:
            continue
        y = y - 1
    for row in x:
        found.append(row)
    try:
        y = called(y, 2)
        y = y + len(found)
    finally:
        total = total + 1
    with torch.no_grad():
        y = y * 2
    return y, total


@pytest.mark.parametrize("sign", [1, -1])
def test_a_tracer_sees_every_line(sign: int) -> None:
    """As an IDE's breakpoints do: by the user's file and line."""
    seen: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != __file__:
            return None
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    static = sg.to_static(with_everything, backend="eager")
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        static(torch.ones(2) * sign)
    finally:
        sys.settrace(before)
    for function in (called, with_everything):
        lines, first = inspect.getsourcelines(function)
        wanted = {
            first + index
            for index, line in enumerate(lines[1:], 1)
            if line.strip() and line.strip() not in ("else:", "try:", "finally:")
        }
        assert {line for file, line in seen if file == __file__} >= wanted


class Breaking(bdb.Bdb):
    """A debugger that notes where it stops."""

    def __init__(self) -> None:
        super().__init__()
        self.stops: list[tuple[str, int, dict[str, Any]]] = []

    def user_line(self, frame: FrameType) -> None:
        if self.break_here(frame):
            self.stops.append((frame.f_code.co_filename, frame.f_lineno, dict(frame.f_locals)))
        self.set_continue()


@pytest.mark.parametrize("text", ["y = y - 1", "y = x * 7", "y = x - 5", "continue", "y = y + len", "return y, total"])
def test_breakpoints_at_lines(text: str) -> None:
    static = sg.to_static(with_everything, backend="eager")
    debugger = Breaking()
    line = line_of(with_everything, text)
    assert debugger.set_break(__file__, line) is None
    before = sys.gettrace()
    try:
        debugger.runcall(static, torch.ones(2))
    finally:
        sys.settrace(before)
        bdb.Breakpoint.clearBreakpoints()
    assert (debugger.canonic(__file__), line) in {(debugger.canonic(file), at) for file, at, _ in debugger.stops}


# ---- which debugger
class Noted:
    """Stands for what a breakpoint calls: the frames it is called from, innermost first."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, int, set[str], Any]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        frame = sys._getframe(1)
        names = {name for name in frame.f_locals if not name.endswith("_")}
        code = frame.f_code
        self.calls.append((code.co_filename, code.co_name, frame.f_lineno, names, (args, kwargs)))


def stops_in_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x + 1
        breakpoint("here", depth=1)
        y = y * 2
    else:
        y = x
    return y


def test_a_hook_of_the_users_is_called_from_the_users_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = Noted()
    monkeypatch.setattr(sys, "breakpointhook", noted)
    static = sg.to_static(stops_in_an_arm, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(static(torch.ones(2)), torch.full((2,), 4.0))
    assert static.cache_info().programs == 1
    ((file, _, line, names, given),) = noted.calls
    assert (file, line) == (__file__, line_of(stops_in_an_arm, "breakpoint("))
    assert names >= {"x", "y"}
    assert given == (("here",), {"depth": 1})


def pdbs_own(*, header: str | None = None) -> None:
    """Stands for ``pdb.set_trace``, in whose place pytest has put its own."""
    raise AssertionError("it would stop in the operator")


pdbs_own.__module__, pdbs_own.__name__ = "pdb", "set_trace"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Where this package's debugger is started, instead of that."""
    places: list[tuple[str, int]] = []

    def set_trace(self: Any, frame: FrameType) -> None:
        places.append((frame.f_code.co_filename, frame.f_lineno))

    monkeypatch.setattr(debugging._Debugger, "set_trace", set_trace)
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    return places


def plain(x: Tensor) -> Tensor:
    breakpoint()
    return x + 1


def imported_inside(x: Tensor) -> Tensor:
    import pdb

    if x.sum() > 0:
        pdb.set_trace()
        x = x + 1
    return x + 1


def imported_by_name(x: Tensor) -> Tensor:
    from pdb import set_trace

    set_trace(header="look")
    return x + 1


@pytest.mark.parametrize(
    ("function", "text"), [(plain, "breakpoint()"), (imported_inside, "pdb.set_trace()"), (imported_by_name, "(header")]
)
def test_pdb_is_started_in_the_users_frame(
    function: Any, text: str, started: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdb, "set_trace", pdbs_own)
    static = sg.to_static(function, backend="eager")
    x = -torch.ones(2)
    for _ in range(2):
        torch.testing.assert_close(static(x), x + 1)
    assert started == [(__file__, line_of(function, text))]


def test_breakpoints_can_be_switched_off(started: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    sg.to_static(plain, backend="eager")(torch.ones(2))
    assert started == []


def with_its_own(x: Tensor) -> Tensor:
    y = x + 1
    Stops().set_trace()
    z = y * 2
    return z


class Stops(bdb.Bdb):
    def user_line(self, frame: FrameType) -> None:
        STOPS.append((frame.f_code.co_filename, frame.f_code.co_name))
        self.set_continue()


STOPS: list[tuple[str, str]] = []


def test_a_debugger_of_the_users_stops_at_the_next_line() -> None:
    before = sys.gettrace()
    try:
        sg.to_static(with_its_own, backend="eager")(torch.ones(2))
    finally:
        sys.settrace(before)
    assert [(__file__, "with_its_own")] == STOPS


def quits(x: Tensor) -> Tensor:
    if x.sum() > 0:
        breakpoint()
    return x


def test_leaving_the_debugger_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def hook() -> None:
        raise bdb.BdbQuit

    monkeypatch.setattr(sys, "breakpointhook", hook)
    with pytest.raises(bdb.BdbQuit) as caught:
        sg.to_static(quits, backend="eager")(torch.ones(2))
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:] == ["quits", "hook"]
