"""Generators that have something to clean up when a loop over them is left before their end."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


def halves(x: Tensor) -> Iterator[Tensor]:
    try:
        for number in range(5):
            yield x * number
    finally:
        print("cleaned up")


class Manager:
    def __enter__(self) -> None:
        print("entered")

    def __exit__(self, *_: object) -> None:
        print("left")


def in_a_block(x: Tensor) -> Iterator[Tensor]:
    with Manager():
        for number in range(5):
            yield x * number


def left_by_a_number(x: Tensor, last: int = 2) -> Tensor:
    y = x
    number = 0
    for each in halves(x):
        y = y + each
        if number == last:
            break
        number += 1  # noqa: SIM113  # by `enumerate` it is another test
    print("after", y)
    return y


def enumerated(x: Tensor, last: int = 2) -> Tensor:
    y = x
    for number, each in enumerate(in_a_block(x)):
        y = y + each
        if number == last:
            break
    print("after", y)
    return y


def the_first(x: Tensor) -> Tensor:
    y = next(halves(x))
    print("after")
    return y


def let_go_of(x: Tensor) -> Tensor:
    numbers = halves(x)
    y = next(numbers)
    del numbers
    print("after")
    return y


def kept_to_the_end(x: Tensor) -> Tensor:
    numbers = in_a_block(x)
    y = next(numbers)
    print("before")
    return y


def left_by_a_tensor(x: Tensor) -> Tensor:
    y = x
    for each in halves(x):
        y = y + each
        if y.sum() > 4:
            break
    print("after")
    return y


def returned_from(x: Tensor) -> Tensor:
    y = x
    for number, each in enumerate(in_a_block(x)):
        y = y + each * number
        if y.sum() > 4:
            return y
    return y * 2


def kept_behind_the_loop(x: Tensor) -> Tensor:
    y = x
    numbers = halves(x)
    for each in numbers:
        y = y + each
        if y.sum() > 4:
            break
    print("after")
    return y


def made(function: Callable[[Tensor], Any], x: Tensor) -> tuple[Any, str]:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        result = function(x)
    return result.tolist(), text.getvalue()


CALLS = [torch.ones(1), torch.zeros(1), torch.full((1,), 3.0)] * 2
AT_ONCE = [left_by_a_number, enumerated, the_first, let_go_of, kept_to_the_end]
BY_THE_RUN = [left_by_a_tensor, returned_from, kept_behind_the_loop]


@pytest.mark.parametrize("function", AT_ONCE)
def test_it_is_done_when_the_code_lets_go_of_it(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager")
    for x in CALLS:
        assert made(static, x) == made(function, x)
    assert static.cache_info().programs == 1


@pytest.mark.parametrize("function", BY_THE_RUN)
def test_what_only_the_run_knows_of_is_refused(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(sg.CaptureError, match=r"leaves the generator '(halves|in_a_block)' in a try or with") as caught:
        sg.to_static(function, backend="eager")(CALLS[0])
    assert caught.value.reason.code == "SG305"


@pytest.mark.parametrize("function", [*AT_ONCE, *BY_THE_RUN])
def test_in_segments(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for x in CALLS:
        assert made(static, x) == made(function, x)


def fails() -> None:
    raise ValueError("once")


def after_an_error() -> Iterator[Any]:
    try:
        fails()
    except ValueError as error:
        yield str(error)
    yield 2
    yield 3


def drawn_from_later(x: Tensor) -> Any:
    numbers = after_an_error()
    first = next(numbers)
    print("between", first)
    return x + sum(numbers)


def test_one_that_has_caught_an_error_goes_on_behind_a_break() -> None:
    static = sg.to_static(drawn_from_later, full_graph=False, strict=True, backend="eager")
    for x in CALLS:
        assert made(static, x) == made(drawn_from_later, x)
