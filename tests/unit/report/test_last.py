"""`explain()` without arguments: the program that was used last."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.report import models


def test_the_program_used_last_is_explained(tmp_path: Path) -> None:
    static = sg.to_static(models.halve, backend="eager", dynamic=False)
    static(torch.ones(3, 4), torch.tensor(1.0))
    static(torch.full((2, 4), 4.0), torch.tensor(1.0))
    static(torch.ones(3, 4), torch.tensor(1.0))
    before = static.cache_info()
    explanation = static.explain()
    assert static.cache_info() == before
    assert explanation.program is static.programs[0]
    assert explanation.program.inputs[0].value.shape == (3, 4)
    assert explanation.cache is not None
    assert explanation.cache.this_call is None
    assert explanation.boxes[0].visits == 2
    marks = {line.text.strip(): line.mark for line in explanation.functions[0].lines}
    assert marks["while x.norm() > limit:"] == "staged"
    assert marks["for i in range(3):"] == "evaluated"
    assert marks['if mode == "mean":'] == "specialised"
    assert marks["steps = 0"] == ""  # nobody watched the lines
    assert "<!doctype html>" in explanation.to_html(tmp_path / "last.html").read_text()


def test_before_any_call_it_says_what_to_do() -> None:
    static = sg.to_static(models.halve, backend="eager")
    with pytest.raises(TypeError, match=r"halve has no program to explain yet: call it first, or give explain\(\)"):
        static.explain()
    module = sg.to_static(models.Block(4), backend="eager")
    with pytest.raises(TypeError, match="call it first"):
        module.forward.explain()  # type: ignore[operator]


def test_a_function_without_parameters_is_captured() -> None:
    explanation = sg.to_static(lambda: torch.ones(2) + 1, backend="eager").explain()
    assert explanation.nodes == 2
    assert explanation.phases[0].name == "rewriting"


def test_a_module_is_explained() -> None:
    module = sg.to_static(models.Block(4), backend="eager")
    module(torch.ones(2, 4))
    explanation = module.forward.explain()  # type: ignore[operator]
    assert [function.name for function in explanation.functions] == ["Block.forward"]


class Scaled(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    @sg.to_static(backend="eager")
    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


def test_of_a_method_the_program_of_this_object_is_explained() -> None:
    two, three = Scaled(2.0), Scaled(3.0)
    two(torch.ones(2))
    three(torch.ones(2))
    assert "* 2.0" in str(two.forward.explain())
    assert "* 3.0" in str(three.forward.explain())
    with pytest.raises(TypeError, match="call it first"):
        Scaled(4.0).forward.explain()


def test_a_miss_names_the_parameter() -> None:
    static = sg.to_static(models.halve, backend="eager")
    static(torch.ones(3, 4), torch.tensor(1.0), 2)
    assert static.explain_miss(torch.ones(3, 4), torch.tensor(1.0), 3) == "scale should be 2, but is 3"
