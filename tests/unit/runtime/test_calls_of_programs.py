"""`program(*args)`: a program runs by itself, for the calls that its guards allow."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import stillgraph as sg

UP, DOWN = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])


def stepped(x: torch.Tensor, limit: torch.Tensor, scale: float = 2.0, *, shift: int = 0) -> Any:
    steps = 0
    while x.norm() > limit:
        x = x / scale
        steps += 1
    if x.sum() > 0:
        print("up", steps)
    return {"x": x + shift, "steps": steps}


def test_it_gives_what_eager_gives(capsys: pytest.CaptureFixture[str]) -> None:
    sg.export(stepped, (UP, torch.tensor(1.0)))
    assert capsys.readouterr().out == ""
    for x in (UP, DOWN, UP * 100):
        given, wanted = x.clone().requires_grad_(), x.clone().requires_grad_()
        program_of_grad = sg.export(stepped, (given, torch.tensor(1.0)))
        found, expected = program_of_grad(given, torch.tensor(1.0)), stepped(wanted, torch.tensor(1.0))
        assert torch.equal(found["x"], expected["x"])
        assert type(found["steps"]) is int
        assert found["steps"] == expected["steps"]
        found["x"].sum().backward()
        expected["x"].sum().backward()
        assert torch.equal(given.grad, wanted.grad)  # type: ignore[arg-type]
        lines = capsys.readouterr().out.splitlines()
        assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]


@pytest.mark.parametrize(
    ("args", "kwargs", "told"),
    [
        ((UP.double(), torch.tensor(1.0)), {}, "was captured for another call: .*float64"),
        ((UP[:1], torch.tensor(1.0)), {}, "was captured for another call"),
        ((UP,), {}, "takes 2 arguments by position, not 1 argument by position"),
        ((UP, torch.tensor(1.0), 3.0), {}, "takes 2 arguments by position, not 3"),
        ((UP, torch.tensor(1.0)), {"shift": 1}, "takes 2 arguments by position, not 2 arguments by position and shift"),
    ],
)
def test_a_call_that_it_was_not_made_for_is_refused(args: Any, kwargs: Any, told: str) -> None:
    program = sg.export(stepped, (UP, torch.tensor(1.0)))
    with pytest.raises(ValueError, match=told):
        program(*args, **kwargs)


def test_names_are_given_as_in_the_call() -> None:
    program = sg.export(stepped, (UP,), {"limit": torch.tensor(1.0), "shift": 1})
    assert torch.equal(program(UP, limit=torch.tensor(1.0), shift=1)["x"], stepped(UP, torch.tensor(1.0), shift=1)["x"])
    with pytest.raises(ValueError, match="shift"):
        program(UP, limit=torch.tensor(1.0), shift=2)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen += x
        if x.sum() > 100:
            raise OverflowError(f"call {self.calls}")
        return self.seen if x.sum() > 0 else -self.seen


def test_state_is_written_also_by_a_call_that_raises() -> None:
    module = Counting()
    eager = copy.deepcopy(module)
    program = sg.export(module, (UP,))
    for x in (UP, DOWN, UP * 100, UP):
        outcomes: list[Any] = []
        for run in (lambda x: program(module, x), eager):
            try:
                outcomes.append(run(x))
            except OverflowError as error:
                outcomes.append(str(error))
        first, second = outcomes
        assert first == second if isinstance(first, str) else torch.equal(first, second)
        assert module.calls == eager.calls
        assert torch.equal(module.seen, eager.seen)


def test_open_sizes() -> None:
    program = sg.export(stepped, (torch.ones(4), torch.tensor(1.0)), input_spec=[sg.InputSpec([None]), None])
    for n in (2, 3, 7):
        x = torch.arange(float(n))
        assert torch.equal(program(x, torch.tensor(1.0))["x"], stepped(x, torch.tensor(1.0))["x"])
