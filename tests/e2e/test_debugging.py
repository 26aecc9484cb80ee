"""Debugging a static function in a terminal: where the debugger stops, and what it shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.e2e import debugged

pytestmark = pytest.mark.slow  # each starts a process of its own
FILE = Path(debugged.__file__)
LINES = FILE.read_text().splitlines()
PROMPT = "(Pdb) "


class Terminal:
    """A program run in a terminal, and its debugger."""

    def __init__(self, **environment: str) -> None:
        env = {key: value for key, value in os.environ.items() if key != "PYTHONBREAKPOINT"} | environment
        arguments = [str(FILE)]
        self.child: Any = pexpect.spawn(sys.executable, arguments, env=env, encoding="utf-8", timeout=60, echo=False)
        self.child.setwinsize(200, 400)

    def prompt(self) -> str:
        self.child.expect_exact(PROMPT)
        return str(self.child.before).replace("\r\n", "\n")

    def say(self, command: str) -> str:
        self.child.sendline(command)
        return self.prompt()

    def finish(self) -> str:
        self.child.expect(pexpect.EOF)
        return str(self.child.before).replace("\r\n", "\n")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal(TERM="dumb")
    yield made
    made.child.close(force=True)


def place(text: str) -> tuple[str, str]:
    """The function and the line that the debugger is at."""
    at, line = [each for each in text.strip().split("\n") if each][-2:]
    assert f"{FILE}(" in at
    number = int(at.split("(")[1].split(")")[0])
    assert line == f"-> {LINES[number - 1].strip()}"
    return at.split(")", 1)[1], line.removeprefix("-> ")


def test_a_session(terminal: Terminal) -> None:
    assert place(terminal.prompt()) == ("forward()", "y = x + 1")
    assert terminal.say("p x").strip() == "<float32 tensor of shape (3,) on cpu, which the run computes>"
    assert terminal.say("total").strip() == "<float32 tensor of shape () on cpu, which the run computes>"
    assert terminal.say("p x.shape, type(self).__name__").strip() == "(torch.Size([3]), 'Model')"
    assert "->\t        y = x + 1" in terminal.say("l")
    went = [place(terminal.say("n")) for _ in range(4)]
    assert [line for _, line in went] == ["if total > 0:", "y = y * 3", "y = y - 1", "y = y - 5"]
    assert "tensor of shape (3,)" in terminal.say("p y")
    assert "tensor of shape ()" in terminal.say("p total")  # a variable of the function that the branch does not use
    assert [place(terminal.say("s"))[1] for _ in range(2)] == ["steps = 0", "while y.sum() > 4:"]
    assert place(terminal.say("c")) == ("scaled()", "return y * factor")
    shown = terminal.say("w")
    assert "stillgraph/" not in shown.replace(str(FILE), "")
    assert [line for line in shown.split("\n") if line.startswith("->")] == [
        '-> print("first", model(torch.ones(3)))',
        "-> return scaled(y), steps",
        "-> return y * factor",
    ]
    assert place(terminal.say("u")) == ("forward()", "return scaled(y), steps")
    assert terminal.say("p steps").strip() == "<int, which the run computes>"
    assert place(terminal.say("d")) == ("scaled()", "return y * factor")
    assert terminal.say("p factor").strip() == "2"
    terminal.child.sendline("c")
    rest = terminal.finish()  # nothing stops where a program is there
    assert "first (tensor([2.5000, 2.5000, 2.5000]), 2)" in rest
    assert "second (tensor([2., 2., 2.]), 3)" in rest


def test_leaving_the_debugger(terminal: Terminal) -> None:
    terminal.prompt()
    terminal.child.sendline("q")
    rest = terminal.finish()
    assert rest.strip().endswith("bdb.BdbQuit")
    assert "in forward" in rest
    assert "stillgraph/" not in rest.replace(str(FILE), "")


def test_a_breakpoint_at_a_line(terminal: Terminal) -> None:
    number = LINES.index("            y = y - 5") + 1
    terminal.prompt()
    assert "Breakpoint 1" in terminal.say(f"b {FILE}:{number}")
    assert place(terminal.say("c"))[1] == "y = y - 5"


def test_breakpoints_switched_off() -> None:
    terminal = Terminal(PYTHONBREAKPOINT="0")
    assert place(terminal.prompt())[1] == "y = x + 1"  # pdb.set_trace() is none of its business
    terminal.child.sendline("c")
    assert "second" in terminal.finish()
