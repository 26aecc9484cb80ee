"""`explain_miss`: which fact differs, in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

ROWS = torch.ones(1, 2)


class Scaled(nn.Module):
    rate = 3

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.factor = 1
        self.table = {"a": 1}

    def forward(self, x: Tensor) -> Tensor:
        if hasattr(self, "late"):
            return x
        return self.linear(x) * self.factor * self.table["a"] * self.rate


CHANGES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda m: setattr(m, "factor", 3), "args[0].factor should be 1, but is 3"),
    (lambda m: m.eval(), "args[0].training should be True, but is False"),
    (lambda m: m.table.update(a=2), "args[0].table['a'] should be 1, but is 2"),
    (lambda m: m.linear.register_forward_hook(print), "len(args[0].linear._forward_hooks) should be 0, but is 1"),
    (lambda m: setattr(m, "late", 1), "args[0].__dict__ should lack 'late', but has it"),
    (lambda m: m.linear.requires_grad_(False), "args[0].linear.weight should be Parameter float32[2, 2] on cpu with"),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES)
def test_says_what_has_changed(change: Callable[[Any], Any], sentence: str) -> None:
    module = sg.to_static(Scaled(), backend="eager")
    assert module.forward.explain_miss(ROWS) == "nothing has been captured yet"
    module(ROWS)
    assert module.forward.explain_miss(ROWS) is None
    change(module)
    assert str(module.forward.explain_miss(ROWS)).startswith(sentence)
    assert module.forward.cache_info().programs == 1


def test_says_what_is_different_about_the_arguments() -> None:
    function = sg.to_static(lambda x, n: x * n, backend="eager")
    function(ROWS, 2)
    assert function.explain_miss(ROWS, 3) == "args[1] should be 2, but is 3"
    assert str(function.explain_miss(ROWS.double(), 2)).startswith("args[0] should be Tensor float32[1, 2]")
    assert function.explain_miss(ROWS, n=2) == (
        "its number of arguments, or their names, differ from those of the calls so far"
    )


def test_the_most_similar_program_counts() -> None:
    function = sg.to_static(lambda x, n, m: x * n + m, backend="eager")
    function(ROWS, 1, 1)
    function(ROWS, 2, 2)
    assert function.explain_miss(ROWS, 1, 5) == "args[2] should be 1, but is 5"


def test_a_replaced_method(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sg.to_static(Scaled(), backend="eager")
    module(ROWS)
    monkeypatch.setattr(Scaled, "forward", lambda self, x: x)
    assert module.forward.explain_miss(ROWS) == "Scaled.__dict__['forward'] should be what it was, but was replaced"
