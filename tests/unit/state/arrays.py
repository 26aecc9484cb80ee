"""Calls on arrays of numpy's, beside eager: what they give, raise and write, and which memory results share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode

Args = tuple[Any, ...]


@pytest.fixture(params=["source", "bytecode"])
def front_end(request: pytest.FixtureRequest) -> Iterator[None]:
    with through_bytecode() if request.param == "bytecode" else nullcontext():
        yield


def array(number: int, dtype: Any = np.float32) -> Any:
    return (np.arange(4) + number).astype(dtype)


def arrays_in(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in arrays_in(part)]
    if isinstance(value, dict):
        return arrays_in(list(value.values()))
    if isinstance(value, Environment):
        return arrays_in(vars(value))
    return [value] if isinstance(value, np.ndarray) else []


def assert_alike(wanted: Any, given: Any) -> None:
    assert type(wanted) is type(given)
    if isinstance(wanted, (np.ndarray, np.generic)):
        assert wanted.dtype == given.dtype
        assert wanted.shape == given.shape
        assert np.allclose(wanted, given, atol=1e-6, equal_nan=True)
    elif isinstance(wanted, torch.Tensor):
        assert wanted.requires_grad == given.requires_grad
        torch.testing.assert_close(wanted, given)
    elif isinstance(wanted, (list, tuple)):
        assert len(wanted) == len(given)
        for left, right in zip(wanted, given, strict=True):
            assert_alike(left, right)
    elif isinstance(wanted, dict):
        assert list(wanted) == list(given)
        assert_alike(list(wanted.values()), list(given.values()))
    elif isinstance(wanted, Environment):
        assert_alike(vars(wanted), vars(given))
    elif isinstance(wanted, float):
        assert wanted == pytest.approx(given, nan_ok=True)
    else:
        assert wanted == given


def called(function: Callable[..., Any], args: Args) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's own, of division by zero
        try:
            return function(*args), None
        except sg.CaptureError:
            raise
        except Exception as error:  # of any kind: it is compared
            return None, (type(error), str(error))


def agree(function: Callable[..., Any], make: Callable[[int], Args], programs: int, static: Any = None) -> None:
    """Assert that calls give, raise and write the same, with results that share memory with the same arguments."""
    static = static or sg.to_static(function, backend="eager")
    for number in range(5):
        mine, others = make(number), make(number)
        wanted, given = called(function, mine), called(static, others)
        assert_alike(wanted, given)
        assert_alike(mine, others)
        for eager, ours in zip(arrays_in(wanted), arrays_in(given), strict=True):
            pairs = [*zip(arrays_in(mine), arrays_in(others), strict=True)]
            assert [eager is each for each, _ in pairs] == [ours is each for _, each in pairs]
            assert [np.shares_memory(eager, each) for each, _ in pairs] == [np.shares_memory(ours, e) for _, e in pairs]
    assert static.cache_info().programs <= programs


def one(number: int) -> Args:
    return (array(number),)


def with_a_sign(number: int) -> Args:
    return array(number), torch.ones(2) * (1 if number % 2 else -1)


class Environment:
    def __init__(self, state: Any, other: Any = None) -> None:
        self.state, self.other = state, other
