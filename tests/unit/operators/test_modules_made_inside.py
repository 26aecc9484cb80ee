"""Modules that the function makes: anywhere, also on one path only or in each iteration of a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree


class Scaled(nn.Module):
    def __init__(self, scale: float = 2.0) -> None:
        super(Scaled, self).__init__()  # noqa: UP008  # as libraries have it
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return -x * self.scale


class Around(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return -self.function(-x)


class Affine(nn.Module):
    offset: Tensor

    def __init__(self, size: int, fill: float = 1.0) -> None:
        self.size = size  # before torch has made its tables
        super().__init__()
        self.weight = nn.Parameter(torch.full((size,), fill))
        self.register_buffer("offset", torch.arange(float(size)))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.offset


class Stack(nn.Module):
    def __init__(self, size: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Affine(size) for _ in range(depth)])
        self.norm = nn.LayerNorm(size)

    def forward(self, x: Tensor) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


# ---- anywhere
def one(x: Tensor) -> Any:
    return Around(torch.exp)(Scaled()(x))


def in_a_constant_loop(x: Tensor) -> Any:
    for scale in range(1, 4):
        x = Scaled(scale)(x)
    return x


def nested(x: Tensor) -> Any:
    return Stack(3, 2)(x)


def of_a_class_made_inside(x: Tensor) -> Any:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.full((3,), 2.0))

        def forward(self, y: Tensor) -> Tensor:
            return y * self.weight

    return Inner()(x)


def drawn(x: Tensor) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), Scaled(), nn.Dropout()).eval()(x)


def listed(x: Tensor) -> Any:
    layers = nn.ModuleList()
    for scale in range(1, 4):
        layers.append(Scaled(scale))
    for layer in layers:
        x = layer(x)
    return x, len(list(layers.parameters()))


def by_name(x: Tensor) -> Any:
    layers = nn.ModuleDict({"a": Scaled(), "b": Scaled(3.0)})
    return layers["b" if len(x) == 3 else "a"](x)


def loaded(x: Tensor) -> Any:
    module = Affine(3)
    module.load_state_dict({"weight": x.clone(), "offset": x * 2})
    return module(x)


def written(x: Tensor) -> Any:
    module = Affine(3)
    module.offset += x
    with torch.no_grad():
        module.weight.mul_(2)
    return module(x)


def trained(x: Tensor) -> Any:
    module = Affine(3)
    module(x).sum().backward()
    return module.weight.grad


@pytest.mark.parametrize(
    "function",
    [one, in_a_constant_loop, nested, of_a_class_made_inside, drawn, listed, by_name, loaded, written, trained],
)
def test_anywhere(function: Callable[[Tensor], Any]) -> None:
    agree(function, P, N)


# ---- on a path
def on_one_path(x: Tensor) -> Any:
    function: Callable[[Tensor], Tensor] = torch.exp
    if x[0] > 0:
        x = -x
        function = Around(function)
    return function(x)


def used_on_one_path(x: Tensor) -> Any:
    if x.sum() > 0:
        x = Affine(3)(x)
    return x


def on_both_paths(x: Tensor) -> Any:
    if x.sum() > 0:
        module = Affine(3)
    else:
        module = Affine(3, 5.0)
    return module(x)


def of_two_classes(x: Tensor) -> Any:
    module: nn.Module
    if x.sum() > 0:
        module = Affine(3)
    else:
        module = nn.Linear(3, 3, bias=False)
        nn.init.ones_(module.weight)
    return module(x)


def of_torchs_class(x: Tensor) -> Any:
    if x.sum() > 0:
        module = nn.Linear(3, 3, bias=False)
        nn.init.ones_(module.weight)
    else:
        module = nn.Linear(3, 3, bias=False)
        nn.init.zeros_(module.weight)
    return module(x)


def changed_on_one_path(x: Tensor) -> Any:
    module = Scaled()
    stack = nn.Sequential(module, Affine(3))
    if x.sum() > 0:
        module.scale = 5.0
        stack[1].offset.add_(1)
    return stack(x)


def replaced_on_one_path(x: Tensor) -> Any:
    stack = nn.Sequential(Scaled(), Scaled(3.0))
    if x.sum() > 0:
        stack[0] = Scaled(7.0)
    return stack(x)


def in_a_loop(x: Tensor) -> Any:
    while x.abs().sum() < 30:
        x = Scaled(3.0)(x)
    return x


def collected(x: Tensor) -> Any:
    modules = []
    for i in range(2):
        if x[i] > 0:
            modules.append(Scaled(i + 1.0))
    for module in modules:
        x = module(x)
    return x


@pytest.mark.parametrize(
    "function",
    [
        on_one_path,
        used_on_one_path,
        on_both_paths,
        of_two_classes,
        of_torchs_class,
        changed_on_one_path,
        replaced_on_one_path,
        in_a_loop,
        collected,
    ],
)
def test_on_a_path(function: Callable[[Tensor], Any]) -> None:
    agree(function, P, N, P / 2)


# ---- what torch's own methods write to them
def registered_on_one_path(x: Tensor) -> Any:
    module, stack = Affine(3), nn.Sequential(Scaled())
    if x.sum() > 0:
        module.register_buffer("offset", x * 2)
        stack.add_module("0", Scaled(5.0))
    return stack(module(x)), len(module.state_dict())


def replaced_in_a_loop(x: Tensor) -> Any:
    module = Affine(3)
    while x.abs().sum() < 30:
        module.register_buffer("offset", module.offset + 1)
        x = module(x)
    return x, module.offset


@pytest.mark.parametrize("function", [registered_on_one_path, replaced_in_a_loop])
def test_what_torch_writes(function: Callable[[Tensor], Any]) -> None:
    agree(function, P, N, P / 2)


def test_a_module_more_on_one_path_is_refused() -> None:
    def more(x: Tensor) -> Any:
        stack = nn.Sequential(Scaled())
        if x.sum() > 0:
            stack.append(Scaled(3.0))
        return stack(x)

    with pytest.raises(sg.CaptureError, match=r"on one path only \(in 'stack\.1'\)"):
        sg.to_static(more, backend="eager")(P)


def _with_one_more(kind: Callable[[], Any], add: Callable[[Any], Any]) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        container = kind()
        if x.sum() > 0:
            add(container)
        return len(container), x

    return function


@pytest.mark.parametrize(
    "function",
    [
        _with_one_more(nn.ModuleList, lambda modules: modules.append(Scaled())),
        _with_one_more(nn.ModuleDict, lambda modules: modules.update({"a": Scaled()})),
        _with_one_more(nn.ParameterList, lambda parameters: parameters.append(nn.Parameter(torch.ones(2)))),
        _with_one_more(nn.ParameterDict, lambda parameters: parameters.update({"a": nn.Parameter(torch.ones(2))})),
    ],
)
def test_an_element_more_of_a_container_is_refused(function: Callable[[Tensor], Any]) -> None:
    for x in (P, N):
        with pytest.raises(sg.CaptureError, match="made or deleted on one path only") as refused:
            sg.to_static(function, backend="eager")(x)
        assert refused.value.reason.code == "SG204"
