from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.program.printer import type_text
from tests.unit.trace.agreement import P, program_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.zeros(2, 3), "f32[2, 3]"),
        (torch.zeros((), dtype=torch.int64), "i64[]"),
        (torch.zeros(1, dtype=torch.bfloat16), "bf16[1]"),
        (torch.zeros(1, dtype=torch.bool), "bool[1]"),
        (torch.zeros(0, dtype=torch.uint8), "u8[0]"),
        (torch.zeros(1, dtype=torch.complex64), "c64[1]"),
    ],
)
def test_types(value: Any, text: str) -> None:
    assert type_text(value) == text


def halve(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    steps = 0
    while x.norm() > limit:
        x = x / 2
        steps += 1
    return x, steps


def test_a_loop() -> None:
    lines = str(program_of(halve, P, torch.tensor(1.0))).splitlines()
    assert lines[0].startswith("program halve(x: f32[3], limit: f32[])")
    assert lines[0].endswith(f"test_printer.py:{halve.__code__.co_firstlineno}")
    assert any(line.startswith("guards") and "grad mode is on" in line for line in lines)
    (loop,) = (i for i, line in enumerate(lines) if "while (" in line)
    assert lines[loop + 1].strip().startswith("test")
    assert any(line.strip().startswith("body") for line in lines[loop:])
    assert lines[-1].strip().startswith("return")


def choose(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x[1:] + 1
    return x.clamp(min=0)[1:]


def test_a_branch_and_its_lines() -> None:
    lines = str(program_of(choose, P)).splitlines()
    first = choose.__code__.co_firstlineno
    (branch,) = (i for i, line in enumerate(lines) if " if " in line)
    assert lines[branch].endswith(f"test_printer.py:{first + 1}")
    assert "then" in lines[branch + 1]
    assert any("x[1:]" in line and line.endswith(f":{first + 2}") for line in lines)
    assert any("clamp(min=0)" in line for line in lines)


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.steps = 0

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        return self.linear(x)


def test_parameters_state_and_effects() -> None:
    text = str(program_of(Steps(), P))
    assert "linear_weight: f32[3, 3]" in text
    assert "training is on" in text
    assert any(line.strip().startswith("effect") and "steps" in line for line in text.splitlines())


def test_symbolic_sizes() -> None:
    program = program_of(choose, P, input_spec=[sg.InputSpec([None])])
    first, *rest = str(program).splitlines()
    assert "x: f32[3]" not in first
    assert any("[?]" in line for line in rest if line.startswith("guards"))


def settle(x: Tensor) -> tuple[Tensor, str]:
    status = "start"
    while status != "done":
        x = x + 1
        status = "done" if x.sum() > 9 else "step"
    return x, status


def test_a_constant_that_a_loop_carries() -> None:
    text = str(program_of(settle, P))
    assert "'done' or 'step'" in text.splitlines()[0]
    assert "x_1, status = while (x = add, status = return_value)" in text
    assert "test eq = status == 0" in text


# ---- sizes in words
def test_open_sizes_have_words() -> None:
    batch = sg.Dim("batch")
    spec = [sg.InputSpec([batch, None]), sg.InputSpec([batch])]
    given = (torch.ones(4, 3), torch.ones(4))
    text = str(sg.export(lambda x, y: x * y[:, None] if x.sum() > 0 else x, given, input_spec=spec))
    assert "(x: f32[batch, x_dim_1], y: f32[batch])" in text
    assert "x_dim_0 == batch; batch != 1; x_dim_1 != 1;" in text
    assert not re.search(r"\bs\d+\b", text)


def test_a_variable_that_is_called_like_a_size_keeps_its_name() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        s1 = x.sum()
        return x * s1 if s1 > 0 else x

    text = str(sg.export(f, (torch.ones(4),), input_spec=[sg.InputSpec([None])]))
    assert "(x: f32[x_dim_0]) -> f32[x_dim_0]" in text
