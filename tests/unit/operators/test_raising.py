"""What a call did before it raised stays done, as in eager PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

UP, DOWN = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])


class Careful(nn.Module):
    def __init__(self, asserts: bool) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.asserts = asserts
        self.calls = 0
        self.bad = 0
        self.last: Any = None
        self.seen: list[Any] = []
        self.named: dict[str, Any] = {"calls": 0}

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.total.add_(x)
        self.seen.append(x.sum().item())
        self.named["last"] = x * 2
        if self.asserts:
            assert x.sum() > 0, f"sum is {x.sum().item()}"
        elif x.sum() < 0:
            self.bad += 1
            self.last = x
            if x.sum() < -5:
                self.last = x + 1
                raise KeyError("very low")
            raise ValueError("low")
        self.calls += 10
        return x + self.calls


def observed(module: Careful) -> Any:
    return (
        module.calls, module.bad, module.seen, module.total.tolist(), module.last is None or module.last.tolist(),
        {name: torch.as_tensor(value).tolist() for name, value in module.named.items()},
    )  # fmt: skip


@pytest.mark.parametrize("asserts", [True, False])
@pytest.mark.parametrize("first", [UP, DOWN])
def test_effects_before_an_exception(asserts: bool, first: Tensor) -> None:
    eager, static = Careful(asserts), sg.to_static(Careful(asserts), backend="eager")
    for x in (first, DOWN, UP, DOWN * 4, UP, first):
        outcomes = []
        for module in (eager, static):
            try:
                outcomes.append(module(x).tolist())
            except (ValueError, AssertionError, KeyError) as error:
                outcomes.append((type(error), str(error).split("\n")[0]))  # pytest adds lines to assertions
        assert outcomes[0] == outcomes[1]
        assert observed(static) == observed(eager)


count = 0


def test_globals_and_closures() -> None:
    total = 0

    def step(x: Tensor) -> Tensor:
        global count
        nonlocal total
        count += 1
        total += 2
        if x.sum() < 0:
            raise ValueError
        total += 100
        return x

    static = sg.to_static(step, backend="eager")
    static(UP)
    with pytest.raises(ValueError):
        static(DOWN)
    assert (count, total) == (2, 104)
