from __future__ import annotations

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.passes.whole_graph import lower_whole
from stillgraph.runtime.native.function_writer import read_source
from tests.unit.passes.captured import SAMPLES

X = torch.tensor([1.0, 2.0])


def straight(x: Tensor) -> Tensor:
    return x * 2


def printing(x: Tensor) -> Tensor:
    if x.sum() > 0:
        print(x)
    return x


def raising(x: Tensor) -> Tensor:
    if x.sum() > 10:
        raise ValueError("large")
    return x


def growing(x: Tensor) -> Tensor:
    while x.sum() < 20:
        x = torch.cat([x, x])
    return x


def sized(x: Tensor) -> Tensor:
    while x.sum() < 20:
        x = x + torch.ones(int(x.sum())).sum()
    return x


def divided(x: Tensor) -> Tensor:
    while x.sum() < 20:
        x = x + 1 / int(x.max())
    return x


@pytest.mark.parametrize("function", [straight, printing, raising, growing, sized, divided])
def test_what_the_native_lowering_does_better(function: object) -> None:
    assert lower_whole(sg.export(function, (X,))) is None


@pytest.mark.parametrize("name", ["branch", "loop", "branch_in_loop", "broken_loop"])
def test_the_module_takes_and_gives_tensors(name: str) -> None:
    sample = SAMPLES[name]
    program, _ = sample.capture()
    whole = lower_whole(program)
    assert whole is not None
    with torch.no_grad():
        for call in sample.calls:
            given = whole.module(*(read_source(taken.source, call, {}) for taken in program.inputs))
            expected = sample.fresh()(*call)
            expected = expected if isinstance(expected, tuple) else (expected,)
            for result, want in zip(whole.results, expected, strict=True):
                value = result.constant if result.output is None else given[result.output]
                torch.testing.assert_close(value if result.kind is None else result.kind(value.item()), want)


def test_an_input_handed_back_is_that_input() -> None:
    def both(x: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        y = x + 1 if p else x
        return x, y

    whole = lower_whole(sg.export(both, (X, torch.tensor(True))))
    assert whole is not None
    assert whole.results[0].input == 0
