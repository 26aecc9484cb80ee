"""Autocast: around a call, inside, in arms and loops, as a decorator."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import stillgraph as sg
from tests.unit.contexts.modes import MATRICES, TRAINED, WEIGHT, agree_in, square
from tests.unit.trace.agreement import refusal

HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}
bf16 = functools.partial(torch.autocast, "cpu", dtype=torch.bfloat16)
fp16 = functools.partial(torch.autocast, "cpu", dtype=torch.float16)


def around_an_if(x: Tensor) -> Any:
    with bf16():
        y = x @ WEIGHT
        if y.sum() > 0:
            y = y @ WEIGHT
        else:
            y = y * 2
    return y, x @ WEIGHT


def in_both_arms(x: Tensor) -> Tensor:
    if x.sum() > 0:
        with bf16():
            y = x @ WEIGHT
    else:
        with fp16():
            y = (x @ WEIGHT).bfloat16()
    return y


def in_one_arm(x: Tensor) -> Tensor:
    y = x @ WEIGHT
    if y.sum() > 0:
        with fp16():
            y = (x @ WEIGHT).float() + y
    return y


def in_a_loop(x: Tensor) -> Any:
    trips = 0
    while x.abs().sum() > 0.1:
        with bf16():
            z = x @ WEIGHT
        x = z.float() * 0.3
        trips += 1
        if trips > 5:
            break
    return x, trips


def around_a_loop(x: Tensor) -> Any:
    with bf16():
        for row in x:
            y = x @ TRAINED
            if row.sum() > 1:
                break
            x = x - y.float() * 0.1
        else:
            y = x.bfloat16()
    return y, x


def off_inside(x: Tensor) -> Any:
    with bf16():
        y = x @ WEIGHT
        with torch.autocast("cpu", enabled=False):
            if x.sum() > 0:
                z = x @ WEIGHT
            else:
                z = x @ WEIGHT + 1
        return y, z, x @ WEIGHT


def without_its_cache(x: Tensor) -> Tensor:
    with bf16(cache_enabled=False):
        y = x @ TRAINED
        if y.sum() > 0:
            y = y @ TRAINED
        else:
            y = y - 1
    return y


def by_the_device_of_an_argument(x: Tensor) -> Tensor:
    with torch.autocast(device_type=x.device.type, dtype=torch.bfloat16):
        y = x @ WEIGHT
    with torch.autocast(x.device.type, dtype=torch.float16):
        if y.sum() > 0:
            return y @ WEIGHT
    return y * 2


def cuda_off(x: Tensor) -> Tensor:
    with torch.autocast("cuda", enabled=False):
        if x.sum() > 0:
            return x @ WEIGHT
    return x


def returned_from(x: Tensor) -> Tensor:
    with bf16():
        y = x @ WEIGHT
        if x.sum() > 0:
            return y
        y = y + 1
    return y


def raised_from(x: Tensor) -> Tensor:
    try:
        with bf16():
            y = x @ WEIGHT
            if x.sum() > 0:
                raise ValueError("no")
    except ValueError:
        return x @ WEIGHT
    return y.float()


def entered_by_hand(x: Tensor) -> Any:
    mode = bf16()
    mode.__enter__()
    y = x @ WEIGHT
    mode.__exit__(None, None, None)
    return y, x @ WEIGHT


@bf16()
def decorated(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x @ WEIGHT
    return x @ WEIGHT @ WEIGHT


def many_operations(x: Tensor) -> Any:
    with bf16():
        y = F.linear(x, TRAINED)
        y += 1
        loss = F.nll_loss(torch.log(F.softmax(y, -1) + 1), torch.tensor([0, 1, 2]))
        if loss > -0.3:
            return y, loss
        return y, loss * 2


FUNCTIONS = [
    around_an_if,
    in_both_arms,
    in_one_arm,
    in_a_loop,
    around_a_loop,
    off_inside,
    without_its_cache,
    by_the_device_of_an_argument,
    cuda_off,
    returned_from,
    raised_from,
    entered_by_hand,
    decorated,
    many_operations,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_inside_a_function(function: Any) -> None:
    agree_in(lambda: function, *MATRICES, square(3.0))


def plain(x: Tensor) -> Any:
    if torch.is_autocast_enabled("cpu") and x.sum() > 0:
        return x @ WEIGHT, torch.get_autocast_dtype("cpu")
    return x @ WEIGHT - 1, None


def test_around_a_call() -> None:
    scopes = (torch.enable_grad, bf16, fp16, functools.partial(torch.autocast, "cpu", enabled=False), bf16)
    static = agree_in(lambda: plain, *[square(0.1, grad=True)] * 4, square(-0.1), around=scopes)
    assert static.cache_info().programs == 4


@pytest.mark.parametrize("flag", [True, False])
def test_switched_by_an_argument(flag: bool) -> None:
    def function(x: Tensor, flag: bool) -> Tensor:
        with bf16(enabled=flag):
            if x.sum() > 0:
                return x @ WEIGHT
            return x @ x

    agree_in(lambda: function, *((x, flag) for x in MATRICES))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(3, 3), nn.Linear(3, 3), nn.LayerNorm(3)

    def forward(self, x: Tensor) -> Any:
        with bf16():
            h = self.norm(self.first(x))
            h = self.second(h) if h.float()[0, 0] > 0 else self.second(torch.relu(self.second(h)))
            return F.mse_loss(h, x), h


class DecoratedNet(Net):
    forward = bf16()(Net.forward)


@pytest.mark.parametrize("kind", [Net, DecoratedNet])
def test_a_module_trains(kind: type[nn.Module]) -> None:
    agree_in(kind, *MATRICES)


def test_the_old_names() -> None:
    def function(x: Tensor) -> Any:
        with torch.amp.autocast("cpu", dtype=torch.bfloat16):
            a = x @ WEIGHT
        with torch.cpu.amp.autocast(dtype=torch.bfloat16):
            b = x @ WEIGHT
        return a, b

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are deprecated
        agree_in(lambda: function, square())


class Product(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x @ y

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return gradient @ y.T, x.T @ gradient


def test_a_function_with_casts_of_its_own() -> None:
    def function(x: Tensor) -> Tensor:
        with bf16():
            if x.sum() > 0:
                return Product.apply(x, WEIGHT)
            return Product.apply(x @ WEIGHT, WEIGHT)

    agree_in(lambda: function, *MATRICES)


def left_on(x: Tensor) -> Tensor:
    torch.set_autocast_enabled("cpu", True)
    return x @ WEIGHT


def switched_by_a_tensor(x: Tensor) -> Tensor:
    with bf16(enabled=x.sum() > 0):
        return x @ WEIGHT


@pytest.mark.parametrize("function", [left_on, switched_by_a_tensor])
def test_refused_with_nothing_switched(function: Any) -> None:
    assert refusal(function, square()).reason.code in ("SG305", "SG301")
    assert not torch.is_autocast_enabled("cpu")


# ---- training with a scaler
def _trained(static: bool) -> list[Any]:
    torch.manual_seed(0)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

        def forward(self, x: Tensor) -> Tensor:
            h = self.layers[0](x)
            if h.float().mean() > 0:
                h = self.layers[1](h)
            else:
                h = torch.tanh(h)
            return self.layers[2](h)

    model = Model()
    called = sg.to_static(model, backend="eager") if static else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    numbers = torch.Generator().manual_seed(1)
    history = []
    for step in range(8):
        x, y = torch.randn(5, 4, generator=numbers), torch.randn(5, 1, generator=numbers)
        y = y * (float("inf") if step in (2, 5) else 1)  # these steps overflow
        optimizer.zero_grad()
        with fp16():
            loss = F.mse_loss(called(x).float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        history.append((repr(loss.item()), scaler.get_scale(), [p.detach().clone() for p in model.parameters()]))
    return history


def test_grad_scaler_steps_and_skips_as_in_eager() -> None:
    expected, actual = _trained(False), _trained(True)
    assert {scale for _, scale, _ in expected} == {1024.0, 512.0, 256.0}
    for mine, theirs in zip(actual, expected, strict=True):
        assert mine[:2] == theirs[:2]
        assert all(map(torch.equal, mine[2], theirs[2]))


def test_a_scaler_scales_inside() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

    def function(x: Tensor) -> Tensor:
        y = x * x
        return scaler.scale(y.sum()) if y.sum() > 1 else scaler.scale(y.mean())

    agree_in(lambda: function, *MATRICES)


def test_a_scaler_that_steps_inside_is_refused_and_left_as_it_was() -> None:
    parameter = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

    def step(x: Tensor) -> None:
        scaler.scale((parameter * x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    error = refusal(step, torch.ones(3))
    assert error.reason.code == "SG305"
    assert "GradScaler.step decides by gradients" in str(error)
    step(torch.ones(3))  # in plain PyTorch it goes on working
    torch.testing.assert_close(parameter.detach(), torch.full((3,), 0.9))
