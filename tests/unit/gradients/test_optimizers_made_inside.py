"""Optimizers that the function makes: the run makes one, and each step is done by it, as in eager PyTorch."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.gradients.scenarios import refused

X = torch.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
CALLS = [X, -X, X]


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def adapted(net: nn.Module, x: Tensor) -> Any:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    p = net(x).softmax(1)
    entropy = -(p * p.log()).sum(1).mean()
    optimizer.zero_grad()
    entropy.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    optimizer.step()
    return net(x), entropy.detach()


def several_steps(net: nn.Module, x: Tensor) -> Any:
    optimizer = torch.optim.Adam(params=net.parameters(), lr=0.1, betas=(0.8, 0.9))
    losses = []
    for _ in range(3):
        optimizer.zero_grad(set_to_none=False)
        loss = net(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net(x), losses


def of_a_tensor_made_inside(net: nn.Module, x: Tensor) -> Any:
    delta = torch.zeros_like(x, requires_grad=True)
    optimizer = torch.optim.SGD([delta], lr=0.5, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        (-net(x + delta).sum()).backward()
        optimizer.step()
    return delta.detach(), net(x + delta)


def in_one_arm(net: nn.Module, x: Tensor) -> Any:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if x.sum() > 0:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
    return net(x)


def in_a_loop(net: nn.Module, x: Tensor) -> Any:
    optimizer, steps = torch.optim.SGD(net.parameters(), lr=0.05), 0
    loss = net(x).pow(2).sum()
    while loss > 0.2 and steps < 20:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        loss = net(x).pow(2).sum()
    return net(x), steps


def with_options(net: Any, x: Tensor) -> Any:
    groups = [{"params": net[0].parameters()}, {"params": net[2].parameters(), "lr": 1.0}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    for _ in range(2):
        for group in optimizer.param_groups:
            group["lr"] *= 0.5
        optimizer.zero_grad()
        net(x).pow(2).sum().backward()
        optimizer.step()
    optimizer.param_groups[0]["lr"] = abs(float(x.sum())) / 100
    optimizer.step()
    return net(x), [group["lr"] for group in optimizer.param_groups]


def scheduled(net: nn.Module, x: Tensor) -> Any:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
    rates = []
    for _ in range(3):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
        scheduler.step()
        rates += scheduler.get_last_lr()
    return net(x), rates


def of_a_copy(net: nn.Module, x: Tensor) -> Any:
    own = copy.deepcopy(net)
    optimizer = torch.optim.AdamW(own.parameters(), lr=0.1)
    own(x).pow(2).sum().backward()
    optimizer.step()
    return own(x), net(x)


def kept(net: Any, x: Tensor) -> Any:
    if getattr(net, "optimizer", None) is None:
        net.optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net.optimizer.zero_grad()
    net(x).sum().backward()
    net.optimizer.step()
    return net(x), net.optimizer


def no_rate(net: nn.Module, x: Tensor) -> Any:
    try:
        return torch.optim.SGD(net.parameters(), lr=-1.0)
    except ValueError as error:
        return str(error)


FUNCTIONS: list[Callable[[Any, Tensor], Any]] = [
    *(adapted, several_steps, of_a_tensor_made_inside, in_one_arm, in_a_loop, with_options, scheduled, of_a_copy),
    *(kept, no_rate),
]


def told(function: Callable[[Any, Tensor], Any]) -> list[str]:
    """What calls give and leave in the parameters and gradients, as texts."""
    net, found = model(), []
    for x in CALLS:
        given = function(net, x)
        left = [(p.detach(), p.grad) for p in net.parameters()]
        found.append(re.sub(r"grad_fn=<\w+>", "", repr((given, left))))
    return found


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_as_in_eager(function: Callable[[Any, Tensor], Any]) -> None:
    assert told(sg.to_static(function, backend="eager")) == told(function)


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_through_bytecode(function: Callable[[Any, Tensor], Any]) -> None:
    with through_bytecode():
        assert told(sg.to_static(function, backend="eager")) == told(function)
    assert told(sg.symbolic_trace(function)) == told(function)


def test_a_check_steps_copies() -> None:
    assert told(sg.to_static(in_one_arm, backend="eager", check=1)) == told(in_one_arm)


class Own(torch.optim.SGD):
    pass


def of_an_own_class(net: nn.Module, x: Tensor) -> Any:
    optimizer = Own(net.parameters(), lr=0.1)
    net(x).sum().backward()
    optimizer.step()


def state_read(net: nn.Module, x: Tensor) -> Any:
    optimizer = torch.optim.Adam(net.parameters())
    net(x).sum().backward()
    optimizer.step()
    return len(optimizer.state)


def with_a_closure(net: nn.Module, x: Tensor) -> Any:
    torch.optim.SGD(net.parameters()).step(lambda: net(x).sum())


def scheduled_in_an_arm(net: nn.Module, x: Tensor) -> Any:
    scheduler = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(net.parameters()), 1)
    if x.sum() > 0:
        scheduler.step()


def of_paths(net: nn.Module, x: Tensor) -> Any:
    optimizer: Any = torch.optim.SGD(net.parameters()) if x.sum() > 0 else torch.optim.Adam(net.parameters())
    net(x).sum().backward()
    optimizer.step()


def set_and_returned(net: nn.Module, x: Tensor) -> Any:
    optimizer = torch.optim.SGD(net.parameters())
    optimizer.param_groups[0]["lr"] = 3.0
    return optimizer


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (of_an_own_class, "Own.step, of one that is made inside the function"),
        (state_read, "the state of a Adam is asked for, which the function makes"),
        (with_a_closure, "SGD.step is called with an argument"),
        (scheduled_in_an_arm, "StepLR.step, of one that is made inside the function, is called in a branch or loop"),
        (of_paths, "step, of one that is made inside the function"),
        (set_and_returned, "leaves it with options that no step has had"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_refused(function: Callable[[Any, Tensor], Any], text: str) -> None:
    assert text in refused(function, model(), X)
