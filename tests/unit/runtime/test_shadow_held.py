"""The shadow check of programs that hold objects of the user's: optimizers, generators, hooks, loggers."""

from __future__ import annotations

import copy
import logging
import sys
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler

import stillgraph as sg
from stillgraph.program.operations import invoke

GENERATOR = torch.Generator()
LOGGER = logging.getLogger("tests.shadow_held")


class Recorder:
    """An object whose method is a hook."""

    def __init__(self) -> None:
        self.hits: list[Tensor] = []

    def hook(self, gradient: Tensor) -> None:
        self.hits.append(gradient)


RECORDER = Recorder()
WEIGHT = torch.ones(3, requires_grad=True)
OPTIMIZER = torch.optim.SGD([WEIGHT], lr=0.1, momentum=0.9)


class Trainer:
    """A module, its optimizer and perhaps a scheduler, which replaces the optimizer's ``step``."""

    def __init__(self, kind: Any, schedule: Any = None) -> None:
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.ReLU(), nn.Linear(4, 1))
        self.optimizer = kind(self.net.parameters(), lr=0.1)
        self.schedule = None if schedule is None else schedule(self.optimizer, 2)

    def step(self, x: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.net(x).square().mean()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        if norm > 0:
            self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        return loss.detach()


def trained(x: Tensor) -> Tensor:
    OPTIMIZER.zero_grad()
    loss = (WEIGHT * x).sum()
    loss.backward()
    OPTIMIZER.step()
    return loss.detach()


def drawing(x: Tensor) -> Tensor:
    return x + torch.rand(2, generator=GENERATOR)


def hooked(x: Tensor) -> Tensor:
    y = x * 2
    y.register_hook(RECORDER.hook)
    y.sum().backward()
    return y


@pytest.mark.parametrize("schedule", [None, lr_scheduler.StepLR, lr_scheduler.CosineAnnealingLR])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_a_training_step_passes_and_trains_as_eager_does(kind: Any, schedule: Any) -> None:
    eager, checked = Trainer(kind, schedule), Trainer(kind, schedule)
    static = sg.to_static(checked.step, backend="eager", check=9)
    for seed in range(4):
        x = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed))
        torch.manual_seed(seed)
        expected = eager.step(x)
        torch.manual_seed(seed)
        torch.testing.assert_close(static(x), expected, rtol=0, atol=0)
    torch.testing.assert_close(checked.net.state_dict(), eager.net.state_dict(), rtol=0, atol=0)
    assert checked.optimizer.param_groups[0]["lr"] == eager.optimizer.param_groups[0]["lr"]


def test_an_optimizer_as_an_argument_and_as_a_global() -> None:
    def given(optimizer: torch.optim.Optimizer, weight: Tensor, x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    static = sg.to_static(given, backend="eager", check=9)
    static.verify(optimizer, weight, torch.ones(2))
    assert weight.tolist() == [1.0, 1.0]
    assert weight.grad is None
    static(optimizer, weight, torch.ones(2))
    assert weight.tolist() == [0.5, 0.5]

    before = WEIGHT.detach().clone()
    other = sg.to_static(trained, backend="eager", check=9)
    other.verify(torch.ones(3))
    assert torch.equal(WEIGHT, before)
    other(torch.ones(3))
    torch.testing.assert_close(WEIGHT.detach(), before - 0.1)


def test_a_step_that_is_left_out_is_found() -> None:
    static: Any = sg.to_static(trained, backend="eager")
    capture = static._capture

    def without_step(args: Any, kwargs: Any) -> Any:
        program = capture(args, kwargs)
        *_, step = program.graph.graph.find_nodes(op="call_function", target=invoke)
        program.graph.graph.erase_node(step)
        program.graph.recompile()
        return program

    static._capture = without_step
    with pytest.raises(sg.CheckError, match=r"WEIGHT differs from eager's in 3 of 3 elements"):
        static.verify(torch.ones(3))


def test_generators_are_left_as_they_are() -> None:
    static = sg.to_static(drawing, backend="eager", check=9)
    before = GENERATOR.get_state()
    static.verify(torch.ones(2))
    assert torch.equal(GENERATOR.get_state(), before)
    expected = 1 + torch.rand(2, generator=copy.deepcopy(GENERATOR))
    assert torch.equal(static(torch.ones(2)), expected)

    def given(x: Tensor, generator: torch.Generator) -> Tensor:
        return x + torch.rand(2, generator=generator)

    sg.to_static(given, backend="eager", check=9)(torch.ones(2), torch.Generator())


def test_hooks_keep_nothing_of_a_check() -> None:
    static = sg.to_static(hooked, backend="eager", check=9)
    static.verify(torch.ones(2, requires_grad=True))
    assert RECORDER.hits == []
    x = torch.ones(2, requires_grad=True)
    static(x)
    assert [each.tolist() for each in RECORDER.hits] == [[1.0, 1.0]]
    assert x.grad is not None


def test_warnings_and_logs_are_compared_and_told_once(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def telling(x: Tensor) -> Tensor:
        if x.sum() > 0:
            LOGGER.warning("positive")
            warnings.warn("careful", stacklevel=1)
        sys.stdout.write("here\n")
        return x + 1

    static = sg.to_static(telling, backend="eager", check=9)
    with pytest.warns(UserWarning, match="careful") as warned:
        static(torch.ones(2))
    assert len(warned) == 1
    assert caplog.messages == ["positive"]
    assert capsys.readouterr().out == "here\n"


def test_what_acts_is_named(tmp_path: Any) -> None:
    with (tmp_path / "log.txt").open("w") as file:

        def writes(x: Tensor) -> Tensor:
            file.write("called\n")
            return x + 1

        with pytest.raises(sg.CheckError, match=r"^cannot be checked: TextIOWrapper\.write has an effect on the world"):
            sg.to_static(writes, backend="eager", check=1)(torch.ones(2))
