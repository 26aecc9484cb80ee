"""What is told of a function without a full graph: its plan as Python, its subgraphs, and where and why they end.

`STILLGRAPH_UPDATE_GOLDEN=1` writes the texts as they are now.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

GOLDEN = Path(__file__).parents[2] / "golden" / "plan"


def told(x: Tensor) -> Tensor:
    y = (x * 2).sum()
    print(y.item())
    z = x + y
    return z * 3


def helper(x: Tensor) -> Tensor:
    y = x.relu()
    print(f"mean {y.mean().item():.1f}")
    return y + 1


def inside(x: Tensor) -> Tensor:
    return helper(x * 2) * 3


def looped(x: Tensor, names: list[str]) -> Tensor:
    for name in names:
        print(name, x.sum().item())
        x = x * 2
    return x


def chosen(x: Tensor, cache: dict[str, Any]) -> Tensor:
    key = f"{x.sum().item():.0f}"
    if key not in cache:
        cache[key] = x * 2
    return cache[key] + 1


EXAMPLES: dict[Callable[..., Any], tuple[Any, ...]] = {
    told: (torch.ones(3),),
    inside: (torch.ones(2),),
    looped: (torch.ones(2), ["a", "b", "c"]),
}


@pytest.mark.parametrize("function", EXAMPLES, ids=lambda function: function.__name__)
def test_the_plan_as_python(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for _ in range(2):
        torch.testing.assert_close(static(*EXAMPLES[function]), function(*EXAMPLES[function]))
    text = re.sub(r" +$", "", static.code, flags=re.MULTILINE) + "\n"
    path = GOLDEN / f"{function.__name__}.txt"
    if os.environ.get("STILLGRAPH_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_a_print_in_the_midst_is_one_step_between_two_regions() -> None:
    static = sg.to_static(told, full_graph=False, strict=True, backend="eager")
    static(torch.ones(3))
    lines = [line for line in static.code.splitlines() if not line.strip().startswith("#")]
    assert [line.partition("#")[0].strip() for line in lines] == [
        "def told(x: 'Tensor'):",
        "x, y, item = region_0(x)",
        "print(item)",
        "return region_1(x, y)",
    ]


def test_breaks_have_their_place_and_reason() -> None:
    static = sg.to_static(inside, full_graph=False, strict=True, backend="eager")
    static(torch.ones(2))
    explanation = static.explain()
    (step,) = explanation.breaks
    line = helper.__code__.co_firstlineno + 2
    assert (step.place.line, step.place.function) == (line, "helper")
    assert [caller.line for caller in step.callers] == [inside.__code__.co_firstlineno + 1]
    assert (step.text, step.result) == ("format(item, '.1f')", "result")
    assert step.reason == "a text that is made in it is needed behind it"
    assert len(explanation.subgraphs) == len(static.programs)
    assert f"break at {step.place}" in str(explanation)


def test_subgraphs_have_statements_and_guards() -> None:
    static = sg.to_static(told, full_graph=False, strict=True, backend="eager")
    static(torch.ones(3))
    first, second = static.explain().subgraphs
    assert (first.inputs, first.outputs) == (("x",), ("x", "y", "item"))
    assert (second.inputs, second.outputs, second.step) == (("x", "y"), (), None)
    assert [each.split("=")[0].strip() for each in first.statements[:3]] == ["mul", "sum_1", "item"]
    assert "x is float32[3] on cpu" in first.guards


def test_with_arguments_a_call_is_explained_as_a_whole() -> None:
    static = sg.to_static(told, full_graph=False, strict=True, backend="eager")
    explanation = static.explain(torch.ones(3))
    assert explanation.program is not None
    assert static.programs == ()


def test_what_needs_no_break_is_one_subgraph() -> None:
    def plain(x: Tensor) -> Tensor:
        while x.sum() < 10:
            x = x * 2 if x[0] > 0 else x - 1
            if x[1] > 100:
                break
        return x

    static = sg.to_static(plain, full_graph=False, strict=True, backend="eager")
    for x in (torch.ones(2), torch.ones(2) * 60, torch.tensor([1.0, 99.0])):
        torch.testing.assert_close(static(x), plain(x))
    assert len(static.programs) == 1
    assert static.explain().breaks == ()


def test_symbolic_trace_keeps_what_was_captured() -> None:
    module = torch.nn.Linear(2, 2)
    for _ in range(3):
        assert sg.symbolic_trace(module) is module
        module(torch.ones(2))
    assert module.forward.cache_info().programs == 1
    assert sg.symbolic_trace(told) is sg.symbolic_trace(told)
    assert sg.symbolic_trace(told) is not sg.symbolic_trace(told, strict=True)


def test_strict_is_for_calls_that_may_break() -> None:
    with pytest.raises(ValueError, match="full_graph=False"):
        sg.to_static(told, strict=True)
