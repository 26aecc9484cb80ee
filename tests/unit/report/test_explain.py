from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.program.record import START_UP
from stillgraph.trace.code.watch import EARLIER, RECORDING, Watch


def shapes_differ(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x
    else:
        y = x.unsqueeze(0)
    return y + 1


def halving(x: Tensor) -> Tensor:
    try:
        if x.abs().sum() > 100:
            raise ValueError
    except ValueError:
        x = x / 100
    return x if x.abs().sum() < 1 else halving(x[:2] / 2) + 1


def explanation(function: Any) -> Any:
    return sg.to_static(function, backend="eager").explain(torch.ones(3))


def test_a_split_is_counted_and_reported() -> None:
    explained = explanation(shapes_differ)
    (split,) = explained.program.splits
    assert split.place == "y"
    assert split.location.line == shapes_differ.__code__.co_firstlineno + 5
    assert "split: 'y' is used once per path at test_explain.py:" in str(explained)
    assert "split: the result is another one on each path" in str(explained)


def test_what_is_staged() -> None:
    kinds = [construct.kind for construct in explanation(halving).staged]
    assert kinds[0] == "recursion"
    assert set(kinds) == {"recursion", "try", "if"}


def test_a_loop_that_is_tried_both_ways_is_counted_once() -> None:
    def function(x: Tensor) -> Tensor:
        for row in (x, x + 1):
            y = row if row.sum() > 0 else row[None]
            x = x + y.sum()
        return x

    assert len(explanation(function).program.splits) == 2


# ---- the time it takes
FRESH = """
import torch
import stillgraph as sg

def straight(x):
    return x + 1

def branching(x):
    return x + 1 if x.sum() > 0 else x

def told(function):
    explanation = sg.to_static(function, backend="eager").explain(torch.ones(3))
    names = [phase.name for phase in explanation.phases]
    own = [phase.seconds for phase in explanation.phases if phase.name not in ("torch's start-up", "lowering")]
    print(", ".join(names), abs(sum(own) - explanation.seconds) < 1e-6, sep=": ")

told(straight)
told(branching)
told(branching)
"""


def test_the_start_up_of_torch_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "fresh.py").write_text(FRESH)
    ran = subprocess.run([sys.executable, tmp_path / "fresh.py"], capture_output=True, text=True, check=True)
    capture = "rewriting, recording, guards, everything else, lowering"
    assert ran.stdout.splitlines() == [
        f"torch's start-up, {capture}: True",
        f"{capture}: True",
        f"{capture}: True",
    ]


def test_attempts_that_are_given_up_do_not_swallow_the_start_up() -> None:
    watch = Watch()
    watch.begin()
    with watch.phase(RECORDING), watch.phase(START_UP):
        pass
    watch.begin()
    with watch.phase(RECORDING):
        pass
    record = watch.record()
    assert [phase.name for phase in record.phases] == [START_UP, EARLIER, RECORDING]
    assert record.start_up == record.phases[0].seconds > 0


def printing(x: Tensor) -> Tensor:
    steps = 0
    while x.sum() > 1:
        x = x / 2
        steps += 1
        sys.stderr.write("halved\n")
    print("many", steps, sep=": ")
    return x


def test_what_is_printed_is_an_effect() -> None:
    explained = explanation(printing)
    assert explained.effects == ("print('many', steps, sep=': ')", "sys.stderr.write('halved\\n')")
    text = str(explained)
    assert "effects: 2\n    print('many', steps, sep=': ')\n" in text
    assert "\n  print('many', steps, sep=': ')  " in text  # in the program, without a result


GUARDS = """
import torch, stillgraph as sg

def halved(x, limit):
    steps = 0
    while x.sum() > limit:
        x = x / 2
        steps += 1
    return x, steps

static = sg.to_static(halved, backend="eager")
args = torch.ones(3), torch.tensor(0.5)
static(*args)  # the first capture of the process, in which torch starts up
first, again = static.explain(), static.explain(*args)
assert first.sizes.guards == again.sizes.guards
assert {g.text for g in first.guards} == {g.text for g in again.guards}, (first.guards, again.guards)
assert not any("torch.nn.functional" in g.text for g in first.guards)
"""


def test_torchs_start_up_leaves_no_guards(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(GUARDS)
    done = subprocess.run([sys.executable, str(tmp_path / "first.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
