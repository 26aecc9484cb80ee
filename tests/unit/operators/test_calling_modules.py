"""Modules whose classes have a ``__call__`` of their own, which calls that of torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree_fresh


class Checked(nn.Module):
    """As layers that may compute anew in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.calls = nn.Linear(3, 3), 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return super().__call__(*args, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) if x.sum() > 0 else x


class Doubled(nn.Linear):
    """Its ``forward`` is torch's."""

    def __call__(self, x: Tensor) -> Any:
        return super().__call__(x + 1) * 2


class InTurn(nn.Sequential):
    def __call__(self, x: Tensor) -> Any:
        return super().__call__(x) + 1


class Hooked(Doubled):
    def __init__(self) -> None:
        super().__init__(3, 3)
        self.register_forward_hook(lambda module, args, result: result * 3)


class Model(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return nn.Module.__call__(self.layers[0], x)


def made(kind: str) -> nn.Module:
    layers: dict[str, Any] = {
        "checked": lambda: (Checked(), Checked()),
        "doubled": lambda: (Doubled(3, 3),),
        "in turn": lambda: (InTurn(nn.Linear(3, 3), Doubled(3, 3), Checked()),),
        "hooked": lambda: (Hooked(),),
    }
    return Model(*layers[kind]())


@pytest.mark.parametrize("kind", ["checked", "doubled", "in turn", "hooked"])
def test_a_call_of_its_own(kind: str) -> None:
    agree_fresh(lambda: made(kind), torch.ones(3), -torch.ones(3))


@pytest.mark.parametrize("kind", ["checked", "hooked"])
def test_without_a_full_graph(kind: str) -> None:
    eager, x = made(kind), torch.ones(3)
    target = made(kind)
    target.load_state_dict(eager.state_dict())
    static = sg.to_static(target, backend="eager", full_graph=False, strict=True)
    assert torch.equal(static(x), eager(x))
    assert len(static.forward.explain().subgraphs) == 1


class Adding(nn.Module):
    def forward(self, x: Tensor, scale: Any = 1) -> Tensor:
        return x * scale + 2


def none_or_tuple(module: nn.Module, given: Any) -> Any:
    return (given[0] + 10,) if given[0].sum() > 0 else None


def none_or_value(module: nn.Module, given: Any) -> Any:
    return given[0] + 10 if given[0].sum() > 0 else None


def tuple_or_given(module: nn.Module, given: Any) -> Any:
    return (given[0] + 10,) if given[0].sum() > 0 else given


def value_or_tuple(module: nn.Module, given: Any) -> Any:
    return given[0] + 10 if given[0].sum() > 0 else (given[0] - 10,)


def falls_through(module: nn.Module, given: Any) -> Any:  # noqa: RET503 - it is what is tested
    if given[0].sum() > 0:
        return (given[0] + 10,)


def with_keywords(module: nn.Module, given: Any, named: Any) -> Any:
    return ((given[0] + 10,), {"scale": 3}) if given[0].sum() > 0 else None


def behind(module: nn.Module, given: Any, result: Any) -> Any:  # noqa: RET503 - as above
    if result.sum() > 4:
        return result * 2


def behind_with_keywords(module: nn.Module, given: Any, named: Any, result: Any) -> Any:
    return result * named["scale"] if result.sum() > 4 else None


HOOKS: list[Any] = [
    *(
        lambda m, hook=hook: m.register_forward_pre_hook(hook)
        for hook in (none_or_tuple, none_or_value, tuple_or_given, value_or_tuple, falls_through)
    ),
    lambda m: m.register_forward_pre_hook(with_keywords, with_kwargs=True),
    lambda m: m.register_forward_hook(behind),
    lambda m: m.register_forward_hook(behind_with_keywords, with_kwargs=True),
    lambda m: nn.modules.module.register_module_forward_pre_hook(none_or_tuple),
    lambda m: nn.modules.module.register_module_forward_hook(behind),
]


@pytest.mark.parametrize("register", HOOKS, ids=range(len(HOOKS)))
@pytest.mark.parametrize("full", [True, False])
def test_hooks_that_return_none_on_one_path(register: Any, full: bool) -> None:
    module = Adding()
    handle = register(module)
    function = sg.to_static(lambda x: module(x, scale=2), backend="eager", full_graph=full)
    try:
        for x in (torch.tensor([1.0]), torch.tensor([-1.0])):
            torch.testing.assert_close(function(x), module(x, scale=2), rtol=0, atol=0)
    finally:
        handle.remove()


class Experts(nn.Module):
    """Picks a layer by a name with a number in it, as mixtures of experts do."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleDict({f"expert_{i}": nn.Linear(3, 3) for i in range(3)})
        self.router = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        chosen = self.router(x).argmax(-1)
        out = torch.zeros_like(x)
        for index in chosen.unique():
            rows = chosen == index
            out[rows] = self.experts[f"expert_{index}"](x[rows])
        if x.sum() > 0:
            self.router = self.router.to(torch.float32)
        return out


def test_a_layer_is_picked_by_its_name() -> None:
    torch.manual_seed(0)
    agree_fresh(Experts, *((torch.randn(5, 3) * k,) for k in (1, -2, 3)))


def test_a_name_that_no_layer_has_is_eagers_error() -> None:
    class Picks(Experts):
        def forward(self, x: Tensor) -> Any:
            return self.experts[f"expert_{int(x[0, 0])}"](x)

    static: Any = sg.to_static(Picks(), backend="eager", full_graph=True)
    assert static(torch.ones(2, 3)).shape == (2, 3)
    with pytest.raises(KeyError, match="'expert_7'"):
        static(torch.full((2, 3), 7.0))
