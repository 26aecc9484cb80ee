"""Whole train steps in the captured function: optimizers, schedulers, clipping."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import stillgraph as sg
from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager, refused

STEPS = {
    "SGD": (lambda parameters: torch.optim.SGD(parameters, 0.1), False, False),
    "SGD with momentum": (lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9), False, False),
    "Adam": (lambda parameters: torch.optim.Adam(parameters, 0.1), False, False),
    "AdamW, clipped": (lambda parameters: torch.optim.AdamW(parameters, 0.1), True, False),
    "SGD, scheduled": (lambda parameters: torch.optim.SGD(parameters, 0.1), False, True),
}


@pytest.mark.parametrize(("opt_make", "clip", "sched"), STEPS.values(), ids=STEPS.keys())
def test_train_step(opt_make: Any, clip: bool, sched: bool) -> None:
    def scenario(wrap: Wrap) -> Any:
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
        opt = opt_make(net.parameters())
        sc = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)

        def step(x, y):
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            if loss > 1:
                loss = loss * 0.5
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()
            if sched:
                sc.step()
            return loss.detach()

        step = wrap(step)
        out = []
        for k in range(5):
            torch.manual_seed(k)
            loss = step(torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 1, dtype=torch.float64))
            out.append((loss, [p.detach().clone() for p in net.parameters()], opt.param_groups[0]["lr"]))
        return out

    as_in_eager(scenario)()


@as_in_eager
def test_zero_grad_only(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()
    opt = torch.optim.SGD(lin.parameters(), 0.1)

    def f(x):
        opt.zero_grad()
        if x.sum() > 0:
            return lin(x).sum()
        return lin(x * 2).sum()

    f = wrap(f)
    out = []
    for a in (P, N):
        loss = f(V(*a))
        g0 = lin.weight.grad
        loss.backward()
        out.append((loss, g0, lin.weight.grad.clone()))
        opt.step()
    return out


@as_in_eager
def test_opt_step_only(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()
    opt = torch.optim.SGD(lin.parameters(), 0.1)

    def f(x):
        if x.sum() > 0:
            opt.step()
        return x

    f = wrap(f)
    out = []
    for a in (P, N):
        lin(V(*a)).sum().backward()
        f(V(*a))
        out.append(lin.weight.detach().clone())
    return out


@as_in_eager
def test_grad_accum_inside_loop(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()
    opt = torch.optim.SGD(lin.parameters(), 0.1)

    def step(batches):
        opt.zero_grad()
        total = 0.0
        for b in batches:
            loss = lin(b).pow(2).mean()
            if loss > 0.5:
                loss = loss * 0.5
            loss.backward()
            total += loss.item()
        if total > 0.1:
            opt.step()
        return total

    step = wrap(step)
    out = []
    for k in range(4):
        torch.manual_seed(k)
        out.append(
            (step(torch.randn(3, 2, 3, dtype=torch.float64) * (0.01 if k == 2 else 1)), lin.weight.detach().clone())
        )
    return out


@as_in_eager
def test_train_many_steps_inside(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()
    opt = torch.optim.Adam(lin.parameters(), 0.1)

    def fit(x, y, steps):
        for i in range(steps):  # noqa: B007
            opt.zero_grad()
            loss = nn.functional.mse_loss(lin(x), y)
            if loss < 0.05:
                break
            loss.backward()
            opt.step()
        return loss.detach(), i

    fit = wrap(fit)
    torch.manual_seed(0)
    x = torch.randn(8, 3, dtype=torch.float64)
    y = x @ V(1.0, 2.0, 3.0, g=False)[:, None]
    return [(fit(x, y, torch.tensor(k)), lin.weight.detach().clone()) for k in (3, 50, 200)]


@as_in_eager
def test_opt_momentum_state_kept(wrap: Wrap) -> Any:
    w = nn.Parameter(V(*P).detach())
    opt = torch.optim.SGD([w], 0.1, momentum=0.9)

    def f(x):
        opt.zero_grad()
        loss = (w * x).pow(2).sum()
        if loss > 1e-3:
            loss.backward()
            torch.nn.utils.clip_grad_norm_([w], 1.0)
            opt.step()
        return loss.detach(), w.norm().detach()

    f = wrap(f)
    out = []
    for i in range(6):
        if i == 3:
            opt.param_groups[0]["lr"] = 0.01
        if i == 4:
            opt.load_state_dict(copy.deepcopy(opt.state_dict()))
        out.append((f(V(*P, g=False)), w.detach().clone()))
    return out


@as_in_eager
def test_sched_inside(wrap: Wrap) -> Any:
    w = nn.Parameter(V(*P).detach())
    opt = torch.optim.SGD([w], 0.1)
    sc = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)

    def f(x):
        opt.zero_grad(set_to_none=True)
        loss = (w * x).pow(2).sum()
        loss.backward()
        opt.step()
        sc.step()
        return loss.detach()

    f = wrap(f)
    return [(f(V(*P, g=False)), w.detach().clone(), opt.param_groups[0]["lr"]) for _ in range(4)]


@as_in_eager
def test_zero_grad_no_none(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()

    def f(x):
        lin.zero_grad(set_to_none=False)
        loss = lin(x).sum()
        if loss > 0:
            loss = loss * 2
        loss.backward()
        return loss.detach(), lin.weight.grad.clone()

    f = wrap(f)
    return [f(V(*a, g=False)) for a in (P, N, P)]


@as_in_eager
def test_grad_clip_manual(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()

    def f(x):
        lin.zero_grad()
        loss = lin(x).pow(2).sum()
        loss.backward()
        norm = torch.sqrt(sum((p.grad**2).sum() for p in lin.parameters()))
        if norm > 1:
            for p in lin.parameters():
                p.grad.mul_(1 / norm)
        return norm

    f = wrap(f)
    return [(f(V(*a, g=False)), [p.grad.clone() for p in lin.parameters()]) for a in (P, (0.01, 0.0, 0.0))]


@pytest.mark.parametrize("name", ["state_dict", "add_param_group"])
def test_other_methods_of_optimizers_are_refused(name: str) -> None:
    optimizer = torch.optim.SGD([V(*P)], 0.1)
    text = refused(lambda x: (getattr(optimizer, name)(), x)[1], V(*P))
    assert f"SGD.{name} is called inside the function" in text


def test_a_step_with_a_closure_is_refused() -> None:
    optimizer = torch.optim.SGD([V(*P)], 0.1)
    assert "SGD.step is called with an argument" in refused(lambda x: optimizer.step(lambda: x.sum()), V(*P))


def test_a_rate_that_the_call_changes_is_not_read() -> None:
    optimizer = torch.optim.SGD([V(*P)], 0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def f(x):
        scheduler.step()
        return x * optimizer.param_groups[0]["lr"]

    assert "optimizer.param_groups[0] is used after ExponentialLR.step, which may have changed it" in refused(f, V(*P))


@as_in_eager
def test_a_rate_is_read_before_its_scheduler_steps(wrap: Wrap) -> Any:
    weight = nn.Parameter(V(*P))
    optimizer = torch.optim.SGD([weight], 0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def f(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        rate = optimizer.param_groups[0]["lr"]
        optimizer.step()
        scheduler.step()
        return rate, x * rate

    f = wrap(f)
    return [(f(V(*P) * k), weight.detach().clone()) for k in range(6)]


def test_code_that_is_not_rewritten_does_not_step_on_fake_tensors() -> None:
    weight = V(*P)
    optimizer = torch.optim.SGD([weight], 0.1, momentum=0.9)

    @sg.not_to_static
    def step():
        optimizer.step()

    def f(x):
        (x * weight).sum().backward()
        step()
        return x

    assert "SGD.step is called by code that is not rewritten" in refused(f, V(*P))
    assert not optimizer.state
    assert weight.grad is None


SCHEDULES = {
    "StepLR": lambda opt: torch.optim.lr_scheduler.StepLR(opt, 2),
    "LambdaLR": lambda opt: torch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 0.5**epoch),
    "ChainedScheduler": lambda opt: torch.optim.lr_scheduler.ChainedScheduler(
        [torch.optim.lr_scheduler.StepLR(opt, 2), torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)]
    ),
    "OneCycleLR": lambda opt: torch.optim.lr_scheduler.OneCycleLR(opt, 0.5, total_steps=20),
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES.keys())
@pytest.mark.parametrize("steps", ["inside", "outside", "on a condition"])
def test_the_last_learning_rate_is_that_of_the_run(schedule: Any, steps: str) -> None:
    def scenario(wrap: Wrap) -> Any:
        net = nn.Linear(3, 1).double()
        opt = torch.optim.SGD([{"params": [parameter]} for parameter in net.parameters()], 0.1)
        scheduler = schedule(opt)
        log: list[float] = []

        def step(x):
            opt.zero_grad()
            loss = net(x).pow(2).sum()
            loss.backward()
            opt.step()
            before = scheduler.get_last_lr()[0]
            if steps == "inside" or (steps == "on a condition" and x.sum() > 0):
                scheduler.step()
            log.append(scheduler.get_last_lr()[-1])
            return loss.detach() * max(scheduler.get_last_lr()), before, {"lr": scheduler.get_last_lr()}

        step = wrap(step)
        out = []
        for k in range(6):
            out.append(step(V(*(P if k % 3 else N), g=False)))
            if steps == "outside":
                scheduler.step()
        return out, log, scheduler.state_dict().get("last_epoch")

    as_in_eager(scenario)()


def test_the_last_learning_rates_are_the_schedulers() -> None:
    optimizer = torch.optim.SGD([V(*P)], 0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def change(x):
        scheduler.get_last_lr()[0] = 1.0
        return x

    assert "a list is changed" in refused(change, V(*P))

    @sg.not_to_static
    def rate():
        return scheduler.get_last_lr()[0]

    def unseen(x):
        scheduler.step()
        return x * rate()

    assert "a learning rate is read in a function that steps its scheduler" in refused(unseen, V(*P))


@pytest.mark.parametrize("rate", [1, torch.tensor(0.1)])
def test_learning_rates_that_are_no_floats_are_refused(rate: Any) -> None:
    optimizer = torch.optim.SGD([V(*P)], rate)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    assert "StepLR.get_last_lr is called" in refused(lambda x: x * scheduler.get_last_lr()[0], V(*P))


AVERAGES: dict[str, dict[str, Any]] = {
    "the mean": {},
    "exponential": {"multi_avg_fn": torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)},
    "exponential, one by one": {"avg_fn": torch.optim.swa_utils.get_ema_avg_fn(0.9)},
    "the mean, one by one": {"avg_fn": torch.optim.swa_utils.get_swa_avg_fn()},
    "of the user's": {"avg_fn": lambda averaged, parameter, count: averaged * 0.5 + 0.5 * parameter / (1 + 0 * count)},
}


@pytest.mark.parametrize("buffers", [False, True])
@pytest.mark.parametrize("name", AVERAGES)
def test_averaged_models(name: str, buffers: bool) -> None:
    def scenario(wrap: Wrap) -> Any:
        net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).double()
        averaged = torch.optim.swa_utils.AveragedModel(net, use_buffers=buffers, **AVERAGES[name])
        optimizer = torch.optim.SGD(net.parameters(), 0.1)

        def step(x):
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            averaged.update_parameters(net)
            return loss.detach()

        step = wrap(step)
        out = []
        for k in range(4):
            torch.manual_seed(k)
            out.append((step(torch.randn(4, 3).double()), [v.clone() for v in averaged.state_dict().values()]))
        return out

    as_in_eager(scenario)()
