"""Context variables that the code sets: put back on every path, and refused where they are left set."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree, refusal

SETTING: contextvars.ContextVar[float] = contextvars.ContextVar("SETTING", default=1.0)


def set_around_a_branch(x: torch.Tensor) -> torch.Tensor:
    token = SETTING.set(3.0)
    try:
        if x.sum() > 0:
            x = x * SETTING.get()
        else:
            x = x - SETTING.get()
        while x.sum() < 4:
            x = x + SETTING.get()
    finally:
        SETTING.reset(token)
    return x * SETTING.get()


def test_a_context_variable_may_be_set_around_a_branch_and_a_loop() -> None:
    agree(set_around_a_branch, torch.ones(2), -torch.ones(2))


def set_in_each_iteration(x: torch.Tensor) -> torch.Tensor:
    while x.sum() < 4:
        token = SETTING.set(SETTING.get() + 2)
        try:
            x = x + SETTING.get()
        finally:
            SETTING.reset(token)
    return x * SETTING.get()


def test_a_context_variable_that_the_function_has_set_is_not_guarded() -> None:
    static = sg.to_static(set_in_each_iteration, backend="eager")
    for x in (torch.zeros(2), torch.ones(2) * 3, torch.ones(2)):
        assert torch.equal(static(x), set_in_each_iteration(x))
    assert static.cache_info().programs == 1


def test_a_context_variable_that_is_left_set_is_told_of_where_it_is_set() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        token = SETTING.set(1.5)
        SETTING.reset(token)
        while x.sum() < 4:
            SETTING.set(2.0)
            x = x + 1
        return x

    error = refusal(function, P)
    assert "the ContextVar" in str(error)
    assert "SETTING.set(2.0)" in str(error)
    assert SETTING.get() == 1.0


def test_what_is_refused_while_a_context_variable_is_set_is_told_of_itself() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        while x.sum() < 4:
            token = SETTING.set(2.0)
            try:
                x = x + hash(x.sum() > 0)
            finally:
                SETTING.reset(token)
        return x

    error = refusal(function, P)
    assert "hash(x.sum() > 0)" in str(error)
    assert "ContextVar" not in str(error)
    assert SETTING.get() == 1.0


UNSET: contextvars.ContextVar[Any] = contextvars.ContextVar("UNSET")


def set_where_it_may_raise(x: torch.Tensor) -> torch.Tensor:
    while x.sum() < 4:
        token = UNSET.set(2)
        try:
            if x.max() > 3:
                raise ValueError("too much")
            x = x + UNSET.get()
        finally:
            UNSET.reset(token)
    return x


def set_where_it_is_handled(x: torch.Tensor) -> torch.Tensor:
    token = UNSET.set(SETTING.get() + 2)
    try:
        if x.sum() > 4:
            raise ValueError("too much")
        y = x * UNSET.get()
    except ValueError:
        y = x - UNSET.get()
    finally:
        UNSET.reset(token)
    return y + UNSET.get(5.0)


@pytest.mark.parametrize("function", [set_where_it_may_raise, set_where_it_is_handled])
def test_a_context_variable_is_put_back_on_every_path(function: Callable[..., Any]) -> None:
    agree(function, torch.zeros(2), torch.tensor([3.5, -1]), torch.ones(2) * 9)
    assert UNSET.get("nothing") == "nothing"


def test_a_context_variable_that_one_path_leaves_set_is_refused() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            UNSET.set(x)
        return x

    assert "UNSET.set(x)" in str(refusal(function, P))
    assert UNSET.get("nothing") == "nothing"


def test_a_token_of_another_variable_resets_nothing() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        token = UNSET.set(1)
        try:
            SETTING.reset(token)
        except ValueError:
            x = x + 1
        finally:
            UNSET.reset(token)
        return x

    agree(function, P, N)


def test_a_variable_that_is_reset_is_unchanged() -> None:
    variable = contextvars.ContextVar("variable", default=0)

    def function(x: Tensor) -> Tensor:
        token = variable.set(1)
        variable.reset(token)
        return x

    agree(function, P, N)
