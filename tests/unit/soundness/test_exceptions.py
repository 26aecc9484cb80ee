"""What an exception from before the call holds: its arguments, what its class keeps of it, what it came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.soundness.turns import Turns, agrees


def of(error: BaseException, ask: Callable[[Any], Any], name: str = "args") -> Callable[[], Turns]:
    """A question about an exception, one of whose attributes is another number before each call."""

    def make() -> Turns:
        own = type(error)(*error.args)
        text = name.startswith("file")

        def change(number: int) -> None:
            value: Any = str(number) if text else number
            setattr(own, name, (value,) if name == "args" else value)

        return lambda x: (x + 1, ask(own)), change

    return make


QUESTIONS: dict[str, Callable[[], Turns]] = {
    "args": of(ValueError("q"), lambda error: error.args[0]),
    "text": of(ValueError("q"), str),
    "representation": of(KeyError("q"), repr),
    "formatted": of(KeyError("q"), lambda error: f"{error}"),
    "value": of(StopIteration(3), lambda error: error.value, "value"),
    "number": of(OSError(2, "x"), lambda error: error.errno, "errno"),
    "text of its file": of(OSError(2, "x", "name"), str, "filename"),
}


def the_cause() -> Turns:
    error = ValueError("q")

    def change(number: int) -> None:
        error.__cause__ = KeyError(number)

    return lambda x: (x + 1, str(error.__cause__)), change


def a_tensor() -> Turns:
    error = ValueError("q")

    def change(number: int) -> None:
        error.args = (torch.full((1,), float(number)),)

    return lambda x: x + error.args[0], change


def raised() -> Turns:
    error = ValueError("q")

    def function(x: Tensor) -> Any:
        try:
            raise error
        except ValueError as caught:
            return x + caught.args[0]

    def change(number: int) -> None:
        error.args = (number,)

    return function, change


def written() -> Turns:
    error = ValueError(0)

    def function(x: Tensor) -> Any:
        error.args = (error.args[0] + 1,)
        return x + error.args[0]

    return function, lambda number: None


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("make", [*QUESTIONS.values(), the_cause, a_tensor, raised, written])
def test_what_an_exception_holds_is_read_in_each_call(make: Callable[[], Turns], full: bool) -> None:
    agrees(make, full)
