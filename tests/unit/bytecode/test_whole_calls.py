"""Calls that only segments would have to cut are one program, as with a full graph."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tests.unit.bytecode.segmented import Record, agrees, reasons

LARGE = torch.full((2,), 60.0)
CALLS = [(torch.ones(2), torch.tensor(0)), (torch.ones(2), torch.tensor(5)), (torch.ones(2) * 9, torch.tensor(-8))]


@contextlib.contextmanager
def between(record: Record) -> Iterator[None]:
    record("begun")
    try:
        yield
    finally:
        record("ended")


def warned(x: torch.Tensor) -> None:
    if x.sum() > 100:
        warnings.warn("large", stacklevel=2)


def before_the_block(record: Record) -> Callable[..., Any]:
    def function(x: Any, i: Any) -> Any:
        warned(x)
        with between(record):
            while x.sum() < 10:
                x = x + 1 + x[i]
        return x

    return function


def in_the_block(record: Record) -> Callable[..., Any]:
    def function(x: Any, i: Any) -> Any:
        with between(record):
            while x.sum() < 10:
                warned(x)
                x = x + 1 + x[i]
        return x

    return function


def behind_what_may_fail(record: Record) -> Callable[..., Any]:
    def function(x: Any, i: Any) -> Any:
        with between(record):
            x = x + x[i]
            warned(x)
        return x * 2

    return function


def with_some_keywords(record: Record) -> Callable[..., Any]:
    def scaled(x: Any, **options: Any) -> Any:
        return x * options.get("scale", 3)

    def function(x: Any, i: Any) -> Any:
        options = {}
        if x.sum() > 3:
            options["scale"] = x.sum()
        return scaled(x, **options) + x[i]

    return function


MADE = [before_the_block, in_the_block, behind_what_may_fail, with_some_keywords]


@pytest.mark.parametrize("make", MADE)
def test_they_are_one_program(make: Callable[[Record], Any]) -> None:
    notes: list[Any] = []
    static = agrees(lambda record: make(notes.append), *CALLS)
    assert static.cache_info().programs == 1
    assert not static.explain().breaks


@pytest.mark.parametrize("make", MADE[:3])
def test_blocks_are_told_of_what_fails(make: Callable[[Record], Any]) -> None:
    notes: list[Any] = []
    expected: list[Any] = []
    eager = make(expected.append)
    static = agrees(lambda record: make(notes.append), CALLS[0], times=1, settled=1)
    notes.clear()
    for args in CALLS:
        for function in (eager, static):
            with contextlib.suppress(IndexError):
                function(*args)
    assert notes == expected


def test_a_call_that_acts_in_any_case_is_cut() -> None:
    notes: list[Any] = []

    def make(record: Record) -> Any:
        def function(x: Any, i: Any) -> Any:
            with between(notes.append):
                x += 1
                return x + x[i]

        return function

    static = agrees(make, *CALLS)
    assert reasons(static)
    assert notes.count("begun") == notes.count("ended")
