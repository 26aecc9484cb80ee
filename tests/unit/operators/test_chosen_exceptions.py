# ruff: noqa: B904  (what users write)
"""``raise`` of an exception that a condition of the run has chosen."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
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


# ---- what is being handled where it is raised
def chosen_in_a_handler(x: Tensor) -> Tensor:
    try:
        raise First("v")
    except First:
        raise KeyError("k") if x[0] > 0 else Second("b")


def on_a_condition_in_a_handler(x: Tensor) -> Tensor:
    try:
        raise First("v")
    except First:
        if x[0] > 0:
            raise KeyError("k")
        if x[1] > 0:
            raise KeyError(x.sum().item())
        if x[1] < -1:
            raise KeyError("k") from None
        return x


def in_a_handler_in_a_handler(x: Tensor) -> Tensor:
    try:
        if x[1] > 0:
            raise TypeError("t")
        raise First("v")
    except First:
        try:
            {}["missing"]
        except KeyError:
            if x[0] > 0:
                raise Second("s")
    except TypeError:
        raise (First if x[0] > 0 else Second)("b")
    return x


def in_a_call(x: Tensor) -> Tensor:
    try:
        raise First("v")
    except First:
        return kept_in_a_variable(x)


def story(function: Any, x: Tensor) -> Any:
    """What is raised, with all that led to it."""
    error: Any
    try:
        return function(x).tolist()
    except Exception as raised:
        error = raised
    told: list[Any] = []
    while error is not None:
        told.append((type(error), str(error), repr(error.__cause__), error.__suppress_context__))
        error = error.__context__
    return told


@pytest.mark.parametrize(
    "function", [chosen_in_a_handler, on_a_condition_in_a_handler, in_a_handler_in_a_handler, in_a_call]
)
def test_what_is_being_handled(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for value in (*CALLS, *CALLS):
        assert story(static, value) == story(function, value)
    try:
        raise RuntimeError("around the call")
    except RuntimeError:
        assert [story(static, value) for value in CALLS] == [story(function, value) for value in CALLS]
    assert static.cache_info().programs == 1


def test_what_is_being_handled_around_the_first_call_is_not_kept() -> None:
    static = sg.to_static(chosen_in_a_handler, backend="eager")
    try:
        raise RuntimeError("around the call")
    except RuntimeError:
        assert story(static, CALLS[0]) == story(chosen_in_a_handler, CALLS[0])
    assert story(static, CALLS[0]) == story(chosen_in_a_handler, CALLS[0])


def test_a_chosen_cause_is_refused() -> None:
    def function(x: Tensor) -> Tensor:
        cause = TypeError("t") if x[0] < 0 else KeyError("k")
        if x[1] != 0:
            raise RuntimeError("r") from cause
        return x

    error = refusal(function, CALLS[0])
    assert error.reason.code == "SG203"
    assert "a TypeError on one path, a KeyError on the other" in str(error)
