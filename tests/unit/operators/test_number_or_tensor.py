"""A value that is a Python number on one path and a tensor on the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same

SIGNS = [torch.tensor(signs) for signs in itertools.product((-1.0, 2.0), repeat=3)]


def sum_in_for(x: Tensor) -> Any:
    s = 0
    for v in x:
        if v > 0:
            s += v
    return s


def sum_in_while(x: Tensor) -> Any:
    s, i = 0, 0
    while i < x.shape[0] and x[i] > -5:
        if x[i] > 0:
            s += x[i]
        i += 1
    return s


def product_of_floats(x: Tensor) -> Any:
    s = 1.0
    for v in x:
        if v > 0:
            s *= v
    return s


def difference(x: Tensor) -> Any:
    s = 0
    if x[0] > 0:
        s -= x[0]
    if x[1] > 0:
        s -= x[1]
    s //= 2
    return s


def with_another_name(x: Tensor) -> Any:
    t = 0
    if x[0] > 0:
        t = x.sum()
    u = t
    t += 1
    return t, u


def either_operand(x: Tensor) -> Any:
    s = 0
    for i in range(3):
        s += x[i] if x[i] > 0 else 0
    return s


def broadcast(x: Tensor) -> Any:
    s = 0
    for row in x.reshape(3, 1):
        if row.sum() > 0:
            s += row
    return s


def only_a_number_grows(x: Tensor) -> Any:
    s = 0
    if x[0] > 0:
        s = x[0] * 2
    s += x  # a 0-d tensor cannot take the shape of x
    return s


def with_gradients(x: Tensor) -> Any:
    w = x.clone().requires_grad_(True)
    s = 0
    for v in w:
        if v > 0:
            s += v * v
    return s


def used_later(x: Tensor) -> Any:
    s = 0
    for v in x:
        if v > 0:
            s += v
    y = s + 1
    return y * 2, s / 3, s > 1


def method_of_tensors(x: Tensor) -> Any:
    s = 1
    if x[0] > 0:
        s = x[0] + 1
    s.add_(1)
    return s


def method_with_an_operator(x: Tensor) -> Any:
    s = 1
    if x[0] > 0:
        s = x[0] + 1
    return s.add(1)


def a_bound(x: Tensor) -> Any:
    n = 0
    if x.sum() > 0:
        n = torch.tensor(2)
    y = x.clone()
    y[:n] = 7
    return x[:n], x[n:], y, torch.zeros(n), sum(v + 1 for v in range(n))


def a_new_tensor(x: Tensor) -> Any:
    s = 0.5
    if x.sum() > 0:
        s = x.sum()
    made = torch.as_tensor(s, dtype=torch.float32)
    return made, torch.stack([made, x[0]])


FUNCTIONS: list[Callable[[Tensor], Any]] = [
    sum_in_for,
    sum_in_while,
    product_of_floats,
    difference,
    with_another_name,
    either_operand,
    broadcast,
    only_a_number_grows,
    with_gradients,
    used_later,
    method_of_tensors,
    method_with_an_operator,
    a_bound,
    a_new_tensor,
]


def outcome(function: Callable[[Tensor], Any], x: Tensor) -> Any:
    try:
        return function(x)
    except (AttributeError, RuntimeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_eager(function: Callable[[Tensor], Any], backend: str) -> None:
    static = sg.to_static(function, backend=backend)
    for x in SIGNS:
        assert_same(outcome(function, x.clone()), outcome(static, x.clone()))
    assert static.cache_info()[1:3] == (1, 1)


@pytest.mark.parametrize("function", [sum_in_for, sum_in_while, product_of_floats, either_operand, used_later])
def test_saved_as_tensors(function: Callable[[Tensor], Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "saved.pt2", args=(SIGNS[5],))
    loaded = sg.load(tmp_path / "saved.pt2")
    for x in SIGNS:
        for want, got in zip(*(given if isinstance(given, tuple) else (given,) for given in (function(x), loaded(x)))):
            torch.testing.assert_close(got, torch.as_tensor(want), check_dtype=isinstance(want, Tensor))


def test_another_name_is_not_saved_as_tensors(tmp_path: Path) -> None:
    with pytest.raises(sg.CaptureError, match=r"changed in place, and may have another name") as caught:
        sg.save(with_another_name, tmp_path / "saved.pt2", args=(SIGNS[5],))
    assert caught.value.reason.code == "SG402"
    assert "t += 1" in str(caught.value)
    assert not (tmp_path / "saved.pt2").exists()


def test_an_argument_of_the_caller_is_not_saved_as_tensors(tmp_path: Path) -> None:
    def function(x: Tensor, y: Tensor) -> Any:
        s = 0
        if x.sum() > 0:
            s = y
        s += 1
        return s

    with pytest.raises(sg.CaptureError, match=r"changed in place, and may have another name"):
        sg.save(function, tmp_path / "saved.pt2", args=(SIGNS[5], torch.tensor(1.0)))
    static = sg.to_static(function, backend="eager")
    for x in SIGNS:
        ys = torch.tensor(1.0), torch.tensor(1.0)
        assert_same(function(x, ys[0]), static(x, ys[1]))
        assert_same(*ys)


@pytest.mark.parametrize("operand", [torch.tensor([1, 2]), torch.tensor(3)])
def test_a_number_that_decides_the_dtype_is_refused(operand: Tensor) -> None:
    def function(x: Tensor, v: Tensor) -> Any:
        s = 0
        if x.sum() > 0:
            s = x.sum()
        return s + v

    with pytest.raises(sg.CaptureError, match="a number on one path and a tensor of float32") as caught:
        sg.to_static(function, backend="eager")(SIGNS[0], operand)
    assert caught.value.reason.code == "SG202"
