"""``raise`` of an exception that a condition of the run has chosen."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree, refusal

CALLS = [torch.tensor([a, b]) for a in (-1.0, 1.0, 9.0) for b in (-2.0, 0.0, 1.0)]


class First(Exception):
    """An exception of the user's."""


class Second(Exception):
    """Another one."""


def each_has_its_handler(x: Tensor) -> Tensor:
    try:
        raise TypeError("t") if x[0] < 0 else KeyError("k")
    except KeyError:
        return x + 1
    except TypeError:
        return x - 1


def class_chosen(x: Tensor) -> Tensor:
    try:
        raise (TypeError if x[0] < 0 else KeyError)("k")
    except KeyError:
        return x + 1
    except TypeError:
        return x - 1


def only_one_is_handled(x: Tensor) -> Tensor:
    try:
        t = TypeError("t") if x[0] < 0 else KeyError("k")
        if x[1] < -1:
            raise t
    except TypeError:
        return x - 1
    return x


def kept_in_a_variable(x: Tensor) -> Tensor:
    e = TypeError("t") if x[0] < 0 else KeyError("k")
    if x[1] != 0:
        raise e
    return x


def class_kept_in_a_variable(x: Tensor) -> Tensor:
    kind = First if x[0] < 0 else Second
    if x[1] < 0:
        raise kind
    if x[1] > 0:
        raise kind("made")
    return x


def none_on_some_path(x: Tensor) -> Tensor:
    error: Any = None
    if x[0] < 0:
        error = ValueError("v")
    elif x[0] > 5:
        error = KeyError("k")
    if error is not None:
        raise error
    return x


def no_exception_on_some_path(x: Tensor) -> Tensor:
    error: Any = ValueError("v") if x[0] < 0 else 3
    if x[1] > 0:
        raise error
    return x


@pytest.mark.parametrize(
    "function",
    [
        *(each_has_its_handler, class_chosen, only_one_is_handled, kept_in_a_variable, class_kept_in_a_variable),
        *(none_on_some_path, no_exception_on_some_path),
    ],
)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)
    agree(function, *CALLS[::-1])


def test_a_chosen_cause_is_refused() -> None:
    def function(x: Tensor) -> Tensor:
        cause = TypeError("t") if x[0] < 0 else KeyError("k")
        if x[1] != 0:
            raise RuntimeError("r") from cause
        return x

    error = refusal(function, CALLS[0])
    assert error.reason.code == "SG203"
    assert "a TypeError on one path, a KeyError on the other" in str(error)
