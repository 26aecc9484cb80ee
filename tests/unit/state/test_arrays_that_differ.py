"""Arrays and numbers of numpy's from outside that differ from call to call are inputs, of numpy's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import stillgraph as sg
from tests.unit.bytecode.segmented import to_partial
from tests.unit.state.arrays import Args, Environment, agree, array, assert_alike, front_end, one

__all__ = ["front_end"]

BOARD = np.array([1.0, 2.0, 3.0, 4.0], dtype=np.float32)
KEPT: dict[str, Any] = {}


def branches(a: Any) -> Any:
    if a.sum() > 8:
        return a * 2
    return a - 1


def loops(a: Any) -> Any:
    x, steps = torch.from_numpy(a), 0
    while x.sum() < 30:
        x, steps = x * 2, steps + 1
    for value in a:
        steps = steps + value
    return x, steps


def raises(a: Any) -> Any:
    if a[0] > 2:
        raise ValueError(f"{a[0]:.1f} is too much")
    return a


def methods(a: Any) -> Any:
    return a.copy(), a.astype(np.float64), a.mean(), a.max(), a.argmax(), a.tolist(), len(a), a.dtype, a.shape, a.T


def functions(a: Any) -> Any:
    return np.exp(a), np.where(a > 2, a, 0), np.concatenate([a, a]), np.stack([a, BOARD]), np.clip(a, 1, 2), a @ BOARD


def kinds(a: Any) -> Any:
    return isinstance(a, np.ndarray), type(a) is np.ndarray, isinstance(a[0], np.float32), a is None, a is BOARD


def tensors(a: Any) -> Any:
    first, second = torch.from_numpy(a), torch.from_numpy(a)
    made = torch.tensor(a), torch.tensor(a[0]), torch.tensor([a[0], a[1]]), torch.as_tensor(a) * 2
    return first is second, made


def gradients(a: Any) -> Any:
    weight = torch.from_numpy(a).requires_grad_()
    (weight * weight).sum().backward()
    return weight.grad, weight.requires_grad, torch.from_numpy(a).requires_grad


def containers(a: Any) -> Any:
    first, *rest = a
    return first, rest, list(a), max(a), sum(a), [*zip(a, a)], 3 in a, 99.0 in a


def kept(a: Any) -> Any:
    KEPT["a"] = a
    return KEPT["a"] + 1


DTYPES = (np.float64, np.int64, np.int32, np.uint8, np.bool_, np.float16, np.complex64)


def of_dtype(dtype: Any) -> Callable[[int], Args]:
    return lambda number: (array(number, dtype),)


def a_number(kind: Any) -> Callable[[int], Args]:
    return lambda number: (kind(number + 2),)


def used_as_a_number(s: Any) -> Any:
    return s * 2, torch.ones(2) * s, s + 1, float(s), s > 3, -s, abs(s), s if s > 2 else s - 1


CASES: dict[str, tuple[Callable[..., Any], Callable[[int], Args]]] = {
    "returned": (lambda a: (a, torch.from_numpy(a) + 1), one),
    "a view": (lambda a: (a[1:], a.reshape(2, 2), a.T), one),
    "numbers": (lambda a: (a[0], a[1] * 2, float(a[2]), int(a[3]), a[0].item()), one),
    **{f.__name__: (f, one) for f in (branches, loops, raises, methods, functions, kinds, tensors, containers, kept)},
    "gradients": (gradients, one),
    "an error of numpy's": (lambda a: a.reshape(3, 3), one),
    "two": (lambda a, b: (a + b, a is b), lambda n: (array(n), array(n + 1))),
    "one twice": (lambda a, b: (a + b, a is b), lambda n: (array(n),) * 2),
    "in containers": (lambda d: (d["x"][0] + d["x"][1], d["x"]), lambda n: ({"x": [array(n), array(n + 2)]},)),
    "an attribute": (lambda e: (e.state * 2, e.state), lambda n: (Environment(array(n)),)),
    "turned": (lambda a: (a, a.sum(axis=0)), lambda n: ((np.arange(6).reshape(2, 3) + n).T,)),
    "without dimensions": (lambda a: (a, a + 1), lambda n: (np.array(n, np.float32),)),
    **{np.dtype(each).name: (lambda a: (a, torch.from_numpy(a)), of_dtype(each)) for each in DTYPES},
    **{f"a number: {kind.__name__}": (used_as_a_number, a_number(kind)) for kind in (np.float32, np.float64, np.int64)},
}


def with_nan(number: int) -> Args:
    return (np.array([1.0, np.nan, -2.0, 0.0], np.float32) + number,)


def divided(a: Any, b: Any) -> Any:
    return a // b, a % b, 3 // a, 7 % a, a // 2, a % 3


def in_place_of_another_kind(a: Any) -> Any:
    a += 1
    a //= 2.5
    return a


class Metres(np.float64):
    def __mul__(self, other: Any) -> Any:
        return f"{float(self) * other} metres"


VALUES: dict[str, tuple[Callable[..., Any], Callable[[int], Args], int]] = {
    "cbrt": (np.cbrt, lambda n: (array(n - 3),), 2),
    "sign": (np.sign, with_nan, 2),
    "heaviside": (lambda a: np.heaviside(a, 0.5), with_nan, 2),
    "whole numbers by zero": (divided, lambda n: (array(n, np.int64), np.array([0, 1, 2, 0])), 2),
    "a number by zero": (lambda n: (n // 0, n % 0), lambda n: (np.int64(n + 1),), 2),
    "float32 in a text": (lambda n: f"{n} {n!r} {n!s} {n:.2f}", lambda n: (np.float32(n + 0.1),), 2),
    "float16 in a text": (lambda n: f"{n}", lambda n: (np.float16(n + 0.1),), 2),
    "numpy's truths": (lambda b: (b is np.True_, bool(b)), lambda n: (np.bool_(n % 2),), 2),
    "in place, of another kind": (in_place_of_another_kind, lambda n: (array(n, np.int64),), 1),
    "of a class of its own": (lambda n: (type(n).__name__, n * 2), lambda n: (Metres(n),), 5),
    "round to tens": (lambda a: np.round(a, -1), lambda n: (array(n + 7, np.int64),), 5),
    "floor of truths": (np.floor, lambda n: (array(n) > 2,), 5),
    "order of complex numbers": (lambda a: np.where(a > 2, a, 0), lambda n: (array(n, np.complex64),), 5),
    "heaviside of whole numbers": (lambda a: np.heaviside(a, 0.5), lambda n: (array(n, np.int64),), 5),
}
"""Where torch's layer differs: computed as numpy does, or the array stays a constant, of a program for each."""


@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_of_numpy(name: str) -> None:
    agree(*VALUES[name])


@pytest.mark.parametrize("name", CASES)
def test_what_differs_is_an_input(front_end: None, name: str) -> None:
    function, make = CASES[name]
    agree(function, make, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_without_a_full_graph(name: str) -> None:
    function, make = CASES[name]
    agree(function, make, 5, to_partial(function))


def test_lengths_that_differ_are_open() -> None:
    static = sg.to_static(branches, backend="eager")
    for length in range(2, 9):
        given = np.arange(length, dtype=np.float32)
        assert_alike(branches(given), static(given))
    assert static.cache_info().programs == 3


def test_one_array_that_is_an_input_and_another_that_is_not() -> None:
    """The second becomes the first: the program that took them for two does not serve."""
    other = array(0)

    def function(a: Any) -> Any:
        return a is other, a + other

    static = sg.to_static(function, backend="eager")
    for given in (array(1), array(2), array(3), other, array(4)):
        assert_alike(function(given), static(given))


@pytest.mark.parametrize("read_only", [lambda n: np.broadcast_to(np.float32(n), (4,)), lambda n: np.matrix([[n, 1]])])
def test_what_torch_cannot_share_is_constant(read_only: Callable[[int], Any]) -> None:
    agree(lambda a: (a, a + 1), lambda n: (read_only(n),), 5)
