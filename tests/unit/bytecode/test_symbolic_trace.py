"""`symbolic_trace` keeps what it has made, and nobody else sees that."""

from __future__ import annotations

import copy
import functools
import gc
import io
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

X = torch.tensor([1.0, 2.0])


class Told(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        print("sum", y.sum().item())
        return y * 2 if y.sum() > 0 else y - 1


def doubled(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x - 1


def saved(module: Any) -> Any:
    written = io.BytesIO()
    torch.save(module, written)
    written.seek(0)
    return torch.load(written, weights_only=False)


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickled": lambda module: pickle.loads(pickle.dumps(module)),
    "copied": copy.deepcopy,
    "copied flatly": copy.copy,
    "saved": saved,
}


@pytest.mark.parametrize("how", COPIES)
def test_a_module_is_copied_and_saved(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    eager = Told()
    module = sg.symbolic_trace(copy.deepcopy(eager), strict=True)
    module(X)
    assert set(vars(module)) - set(vars(eager)) == {"forward"}
    made = sg.symbolic_trace(COPIES[how](module), strict=True)
    for x in (X, -X, X * 4, -X * 4):
        torch.testing.assert_close(made(x), eager(x))
        torch.testing.assert_close(module(x), eager(x))
    assert made.forward.explain().breaks


def traced_and_copied() -> list[Any]:
    """Functions that have something kept, and their static functions, as weak references."""

    def local(x: Tensor) -> Tensor:
        return x * 2

    static = sg.symbolic_trace(local, strict=True)
    static(X)
    assert sg.symbolic_trace(local, strict=True) is static

    @functools.wraps(local)
    def around(x: Tensor) -> Tensor:
        return local(x) + 1

    torch.testing.assert_close(sg.symbolic_trace(around, strict=True)(X), X * 2 + 1)
    by_value = pickle.loads(pickle.dumps(vars(local)))  # as cloudpickle does
    vars(around).update(by_value)
    torch.testing.assert_close(sg.symbolic_trace(around, strict=True)(X), X * 2 + 1)
    return [weakref.ref(each) for each in (local, static, around)]


def test_what_is_kept_goes_with_its_function() -> None:
    ends = traced_and_copied()
    gc.collect()
    assert [each() for each in ends] == [None, None, None]


def test_only_the_last_is_kept() -> None:
    def local(x: Tensor) -> Tensor:
        return x * 2

    made = [weakref.ref(sg.symbolic_trace(local, strict=strict)) for strict in (True, False, True, False)]
    gc.collect()
    assert [each() is None for each in made] == [True, True, True, False]


@pytest.mark.parametrize("make", [lambda: doubled, Told, lambda: Told().forward], ids=["function", "module", "method"])
def test_what_was_rolled_back_is_made_anew(make: Callable[[], Any]) -> None:
    target = make()
    static = sg.symbolic_trace(target, strict=True)
    held = static.forward if isinstance(static, nn.Module) else static
    static(X)
    held.rollback()
    for again in (sg.symbolic_trace(target, strict=True), sg.symbolic_trace(static, strict=True)):
        held = again.forward if isinstance(again, nn.Module) else again
        for x in (X, -X):
            torch.testing.assert_close(again(x), target(x))
        assert held.cache_info().programs > 0


def test_a_forward_that_was_replaced_is_captured() -> None:
    module = sg.symbolic_trace(Told(), strict=True)
    module(X)
    module.forward = doubled
    assert sg.symbolic_trace(module, strict=True) is module
    for x in (X, -X):
        torch.testing.assert_close(module(x), doubled(x))
    assert module.forward.cache_info().programs == 1


@pytest.mark.parametrize("full_graph", [True, False])
def test_a_static_method_is_made_static_again(full_graph: bool) -> None:
    module = Told()
    module.forward = sg.to_static(lambda module, x: doubled(x), backend="eager").__get__(module)
    method = sg.to_static(module.forward, full_graph=full_graph, backend="eager")
    for x in (X, -X):
        torch.testing.assert_close(method(x), doubled(x))
    assert method.cache_info().programs == 1
