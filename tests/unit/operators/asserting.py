"""Functions with `assert`, outside the test files, whose assertions pytest rewrites."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tests.unit.operators.managers import Manager


def with_message(x: Tensor) -> Tensor:
    assert x.sum() > 0, f"sum is {x.sum().item():.1f} of {x.shape}"
    assert (x < 20).all()
    return x


def with_a_value(x: Tensor) -> Tensor:
    assert x.sum() > 0, ("not", "text")
    return x


def of_a_constant(x: Tensor, limit: int) -> Tensor:
    assert x.dim() < limit, f"at most {limit}"
    return x * 2


def in_a_loop(x: Tensor) -> Tensor:
    while x.sum() > 1:
        assert x.max() < 20, x.max().item()
        x = x / 2
    return x


def asserted(x: Tensor) -> Tensor:
    try:
        assert x.sum() > 0, "not positive"
    except AssertionError as error:
        print(error)
        return x
    return x * 2


def of_what_is_there(value: object, x: Tensor) -> Tensor:
    assert value is not None, "there is none"
    return x * 2


def of_what_is_true(value: object, x: Tensor) -> Tensor:
    assert value
    return x * 2


def told(x: Tensor) -> Any:
    try:
        assert x.sum() < 5, "too much"
        assert x.sum() > -5, "too " + ("little" if x[0] > -2 else "much")
        return x
    except AssertionError as error:
        return -x, str(error)


def asserted_in_a_with(x: Tensor) -> Any:
    with Manager(AssertionError) as manager:
        assert x.sum() > 0, "low"
        x = x + 1
    return x, manager.log


def asked_in_many_ways(x: Tensor) -> Any:
    d = (x, 1) if x.sum() > 0 else None
    y = d[0] if d else x * 3
    if not d:
        y = y + 1
    if not (d is None):  # noqa: E714 (as people write it)
        y = y * 2
    assert d is None or d[1] == 1
    return y
