"""Managers that are entered without a ``with`` of their own, and those that ask numpy for exceptions: refused."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from tests.unit.trace.agreement import P, agree, refusal


def printed_by_a_stack(x: Tensor) -> Any:
    text = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(text))
        print("hello")
    return x, text.getvalue()


def printed_by_hand(x: Tensor) -> Any:
    text = io.StringIO()
    manager = contextlib.redirect_stderr(text)
    manager.__enter__()
    manager.__exit__(None, None, None)
    return x, text.getvalue()


def warned_by_a_stack(x: Tensor) -> Any:
    with contextlib.ExitStack() as stack:
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        warnings.warn("hey", stacklevel=1)
        return x, len(caught)


class Own:
    def __enter__(self) -> Any:
        self.inner = warnings.catch_warnings(record=True)
        return self.inner.__enter__()

    def __exit__(self, *given: Any) -> None:
        self.inner.__exit__(*given)


def warned_in_an_own_manager(x: Tensor) -> Any:
    with Own() as caught:
        warnings.simplefilter("always")
        warnings.warn("hey", stacklevel=1)
        return x, len(caught)


def raised_by_numpy(x: Tensor) -> Any:
    try:
        with np.errstate(divide="raise"):
            return np.ones(3) / x.numpy()
    except FloatingPointError as error:
        return str(error)


REFUSED = [printed_by_a_stack, printed_by_hand, warned_by_a_stack, warned_in_an_own_manager, raised_by_numpy]


@pytest.mark.parametrize("function", REFUSED)
def test_what_no_program_would_see_is_refused(function: Callable[..., Any]) -> None:
    assert refusal(function, P).reason.code == "SG305"


def test_what_a_stack_enters_else_is_captured() -> None:
    def function(x: Tensor) -> Tensor:
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(ValueError))
            with np.errstate(all="ignore"):
                return x * 2
        return x

    agree(function, P)
