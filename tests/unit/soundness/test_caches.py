"""Changes of what functions with a cache give, which is made once and then found again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.soundness.following import Box, X, follows, in_turn, setting, storing

CACHES: list[Callable[[Any], Any]] = [functools.cache, functools.lru_cache, functools.lru_cache(maxsize=2)]
caches = pytest.mark.parametrize("cache", CACHES, ids=["cache", "lru", "lru-2"])


@caches
def test_a_module(cache: Any) -> None:
    @cache
    def make() -> nn.Module:
        return nn.Dropout(1.0)

    follows(lambda x: make()(x), lambda: make().eval(), lambda: make().train(), lambda: setting(make(), p=0.0)())


@caches
def test_a_layer_with_parameters(cache: Any) -> None:
    @cache
    def make(size: int) -> nn.Linear:
        return nn.Linear(size, size)

    make(3)  # draws random numbers
    follows(lambda x: make(3)(x), lambda: make(3).weight.data.fill_(2.0), lambda: setting(make(3), bias=None)())


@caches
def test_a_tensor(cache: Any) -> None:
    @cache
    def make(value: float) -> Tensor:
        return torch.full((3,), value)

    follows(lambda x: x * make(2.0), lambda: make(2.0).fill_(7.0), make.cache_clear, lambda: make(2.0).resize_(1))


@caches
@pytest.mark.parametrize("filled", [False, True])
def test_an_object(cache: Any, filled: bool) -> None:
    @cache
    def make(name: str) -> Box:
        return Box(rate=2.0, name=name)

    if filled:
        make("a")
    box = Box(name="a")
    follows(
        lambda x: x * make(box.name).rate,
        lambda: setting(make("a"), rate=7.0)(),
        lambda: setting(make("b"), rate=9.0)(),
        setting(box, name="b"),
        make.cache_clear,
    )


@caches
def test_a_number(cache: Any) -> None:
    values = [2.0]

    @cache
    def make(value: float) -> float:
        return values[0] * value

    follows(
        lambda x: x * make(1.0),
        storing(values, 0, 5.0),  # the cache holds what it held
        make.cache_clear,
        in_turn(storing(values, 0, 6.0), make.cache_clear),
    )


def test_containers() -> None:
    @functools.cache
    def make(count: int) -> dict[str, list[float]]:
        return {"rates": [float(count)]}

    follows(
        lambda x: x * make(2)["rates"][0] * len(make(3)),
        lambda: make(2)["rates"].insert(0, 5.0),
        lambda: make(3).update(more=[]),
    )


def test_a_cache_that_is_too_small() -> None:
    factor = [2.0]

    @functools.lru_cache(maxsize=1)
    def make(value: int) -> float:
        return value * factor[0]

    follows(lambda x: x * make(1) + make(2), storing(factor, 0, 3.0), make.cache_clear)


def test_what_a_cache_holds_is_written() -> None:
    @functools.cache
    def make() -> Tensor:
        return torch.zeros(3)

    def function(x: Tensor) -> Tensor:
        return make().add_(x).clone()

    static = sg.to_static(function, backend="eager")
    assert static(X).tolist() == X.tolist()
    assert static(X).tolist() == (2 * X).tolist()
    assert make().tolist() == (2 * X).tolist()


class Scaled:
    """Has a method with a cache."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    @functools.lru_cache  # noqa: B019 - what is tested
    def scaled(self, value: float) -> Box:
        return Box(value=self.rate * value)


def test_a_method() -> None:
    box = Box(scaled=Scaled(2.0))
    follows(
        lambda x: x * box.scaled.scaled(3.0).value,
        setting(box.scaled, rate=5.0),  # the cache holds what it held
        lambda: setting(box.scaled.scaled(3.0), value=7.0)(),
        setting(box, scaled=Scaled(9.0)),
    )


def test_a_method_of_an_argument() -> None:
    static = sg.to_static(lambda x, scaled: x * scaled.scaled(3.0).value, backend="eager")
    for scaled in (Scaled(2.0), Scaled(2.0), Scaled(5.0)):
        for _ in range(2):
            assert static(X, scaled).tolist() == (X * scaled.scaled(3.0).value).tolist()
            scaled.scaled(3.0).value += 1.0


def test_recursion() -> None:
    @functools.cache
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    follows(lambda x: x * fibonacci(10), fibonacci.cache_clear, seen=False)


def test_a_cache_made_in_the_function() -> None:
    def function(x: Tensor) -> Tensor:
        @functools.cache
        def scaled(value: float) -> Tensor:
            return x * value

        return scaled(2.0) + scaled(2.0)

    follows(function, seen=False)


def test_no_staged_value_stays_in_a_cache() -> None:
    @functools.cache
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    static = sg.to_static(lambda x: doubled(x), backend="eager")
    assert static(X).tolist() == (X * 2).tolist()
    assert doubled.cache_info().currsize == 0


def test_the_context_of_what_is_made() -> None:
    @functools.cache
    def make(value: float) -> Tensor:
        return torch.full((3,), value, requires_grad=True) * 1

    def function(x: Tensor) -> Tensor:
        with torch.no_grad():
            return x * make(2.0)

    sg.to_static(function, backend="eager")(X)
    assert not make(2.0).requires_grad
