from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree, agree_fresh

SCALE, ITEMS, TABLE = 2.0, [1, 2], {"a": 1}


def helper(x: Tensor) -> Tensor:
    return x + SCALE


def other_helper(x: Tensor) -> Tensor:
    return x - 1


def sevenfold(x: Tensor) -> Tensor:
    return x * 7


class Config:
    def __init__(self) -> None:
        self.rate = 1
        self.nested = {"sizes": [1, 2]}
        self.weight = torch.ones(3)


class Model(nn.Module):
    kind = 2

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.mode, self.table, self.items, self.config = 2.0, "a", {"k": 1}, [1, 2], Config()
        self.activation, self.extra = torch.relu, None
        self.linear, self.drop = nn.Linear(3, 3), nn.Dropout(0.5)
        self.layers = nn.ModuleList([nn.Linear(3, 3)])

    def forward(self, x: Tensor) -> Tensor:
        x = x * self.scale + self.table["k"] + len(self.items) + sum(self.items) + self.config.rate
        x = x + self.config.nested["sizes"][0] + self.config.weight
        if self.mode == "b":
            x = x * 10
        if self.extra is not None:
            x = x + self.extra
        for layer in self.layers:
            x = layer(x)
        return self.activation(self.drop(self.linear(x)))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "scale", 3.0),
        lambda m: setattr(m, "scale", 2),
        lambda m: setattr(m, "mode", "b"),
        lambda m: setattr(m, "extra", 5),
        lambda m: m.table.update(k=7),
        lambda m: m.items.append(3),
        lambda m: m.items.__setitem__(0, 9),
        lambda m: setattr(m, "items", [4]),
        lambda m: setattr(m.config, "rate", 5),
        lambda m: m.config.nested["sizes"].__setitem__(0, 9),
        lambda m: setattr(m.config, "weight", torch.zeros(3)),
        lambda m: m.config.weight.mul_(4),
        lambda m: setattr(m, "config", Config()),
        lambda m: setattr(m, "activation", torch.tanh),
        lambda m: setattr(m, "activation", sevenfold),
        lambda m: setattr(m, "linear", nn.Linear(3, 2)),
        lambda m: setattr(m, "linear", nn.Identity()),
        lambda m: setattr(m.linear, "bias", None),
        lambda m: m.linear.weight.data.mul_(2),
        lambda m: m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}),
        lambda m: setattr(m.drop, "p", 0.0),
        lambda m: m.eval(),
        lambda m: m.drop.eval(),
        lambda m: m.requires_grad_(False),
        lambda m: m.linear.register_forward_hook(lambda module, args, out: out * 0),
        lambda m: m.layers.append(nn.Linear(3, 3)),
        lambda m: m.layers.__delitem__(0),
    ],
)
def test_a_change_of_the_module_is_seen(change: Callable[[Model], Any]) -> None:
    agree_fresh(Model, P, change, P, P, programs=2)


def test_training_with_an_optimizer_needs_one_program() -> None:
    def step(model: nn.Module) -> None:
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        model.zero_grad()

    agree_fresh(Model, P, step, N, step, P)


def uses_globals(x: Tensor) -> Tensor:
    return helper(x) * SCALE * len(ITEMS) + TABLE["a"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("SCALE", 5.0), ("SCALE", 2), ("helper", other_helper), ("ITEMS", [1]), ("TABLE", {"a": 3})],
)
def test_a_change_of_a_global_is_seen(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    module = sys.modules[__name__]
    static = sg.to_static(uses_globals, backend="eager")
    before = uses_globals(P)
    assert torch.equal(static(P), before)
    monkeypatch.setattr(module, name, value)
    assert torch.equal(static(P), uses_globals(P))
    monkeypatch.undo()
    assert torch.equal(static(P), before)
    assert static.cache_info().programs == 2


def test_changes_inside_globals_are_seen() -> None:
    static = sg.to_static(uses_globals, backend="eager")
    for change in (lambda: ITEMS.append(3), ITEMS.pop, lambda: TABLE.update(a=9), lambda: TABLE.update(a=1)):
        assert torch.equal(static(P), uses_globals(P))
        change()
    assert torch.equal(static(P), uses_globals(P))


def closure() -> Any:
    scale, items = 2.0, [1]

    def function(x: Tensor) -> Tensor:
        return x * scale + items[-1]

    function.items = items  # type: ignore[attr-defined]
    return function


def test_a_change_inside_a_closure_is_seen() -> None:
    function = closure()
    static = sg.to_static(function, backend="eager")
    for value in (1, 5, 7):
        function.items.append(value)
        assert torch.equal(static(P), P * 2 + value)


def test_a_change_of_the_class_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Scaled(nn.Module):
        factor = 2

        def forward(self, x: Tensor) -> Tensor:
            return x * self.factor

    static = sg.to_static(Scaled(), backend="eager")
    assert torch.equal(static(P), P * 2)
    monkeypatch.setattr(Scaled, "factor", 5)
    assert torch.equal(static(P), P * 5)


def test_a_default_that_a_call_changes_is_seen() -> None:
    def counts(x: Tensor, seen: list[int] = []) -> Tensor:  # noqa: B006 - what it is about
        seen.append(1)
        return x * len(seen)

    static = sg.to_static(counts, backend="eager")
    for n in (1, 2, 3):
        assert torch.equal(static(P), P * n)


# ---- the call and the modes of the thread
def chosen(x: Tensor, n: Any = 1, *, plus: Any = 0) -> Any:
    y = x * n if x.sum() > 0 else x
    return y + plus, torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("first", "second", "programs"),
    [
        ((P,), (N,), 1),
        ((P, 2), (P, 3), 2),
        ((P, 2), (P, 2.0), 2),
        ((P, True), (P, 1), 2),
        ((P, P), (P, N), 1),
        ((P,), (P.double(),), 2),
        ((P,), (P[:2],), 2),
        ((P,), (P.clone().requires_grad_(),), 2),
        ((P.reshape(1, 3),), (P.reshape(3, 1),), 2),
    ],
)
def test_the_arguments_decide_how_many_programs(first: Any, second: Any, programs: int) -> None:
    static = agree(chosen, first, second, first, second, programs=programs)
    assert static.cache_info().programs == programs


@pytest.mark.parametrize(
    "mode",
    [
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", torch.bfloat16),
        lambda: torch.set_grad_enabled(False),
    ],
)
def test_the_modes_around_the_call(mode: Any) -> None:
    def product(x: Tensor) -> Any:
        y = x[:, None] @ x[None] if x.sum() > 0 else x[:, None] @ -x[None]
        return y.dtype, y.requires_grad, torch.is_grad_enabled(), y.float()

    x = P.clone().requires_grad_()
    static = sg.to_static(product, backend="eager")
    for _ in range(2):
        assert static(x)[:3] == product(x)[:3]
        with mode():
            assert static(x)[:3] == product(x)[:3]
        assert torch.is_grad_enabled()
    assert static.cache_info().programs == 2


def test_modes_inside_the_call_end_with_it() -> None:
    def inside(x: Tensor) -> Any:
        with torch.inference_mode():
            y = x * 2
        with torch.no_grad():
            z = x * 3
        return y.is_inference(), z.requires_grad, (x * 4).requires_grad, torch.is_grad_enabled()

    agree(inside, P.clone().requires_grad_(), N.clone().requires_grad_())


def test_conditions_on_symbolic_sizes() -> None:
    def by_size(x: Tensor) -> Any:
        n = x.shape[0]
        y = x + torch.ones(1)
        if n > 2:
            return y * 2
        elif n == 1:
            return y + 100
        return (y, n / 2 if n else 0)

    sizes = [torch.arange(float(n)) for n in (4, 3, 1, 0, 2, 1, 5)]
    agree(by_size, *sizes, programs=4, input_spec=[sg.InputSpec([None])])


def test_the_default_dtype() -> None:
    def ones(x: Tensor) -> Tensor:
        return torch.ones(3) + x

    static = sg.to_static(ones, backend="eager")
    assert static(P).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert static(P).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert static(P).dtype == torch.float32


def test_one_tensor_given_twice() -> None:
    def adds(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return y * 100 if x is y else y * 2

    static = sg.to_static(adds, backend="eager")
    x = P.clone()
    assert torch.equal(static(x, x), (P + 1) * 100)
    assert torch.equal(static(P.clone(), P.clone()), P * 2)
    shared = torch.zeros(4)
    assert torch.equal(static(shared[:3], shared[1:]), torch.tensor([2.0, 2.0, 0.0]))
