"""Generators that nobody asks to their end: what they clean up is done where Python closes them, and once."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tests.unit.bytecode.segmented import agrees, reasons, segments

ROWS = torch.arange(3.0)
X = torch.ones(1)
CALLS = tuple((step, x) for step, x in ((0, X), (1, X), (9, X), (0, -X), (0, X)))


class Rows:
    """What it cleans up is read by the function."""

    def __init__(self) -> None:
        self.closed = 0

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from ROWS
        finally:
            self.closed += 1


class Telling(Rows):
    def __iter__(self) -> Iterator[Any]:
        try:
            for number in range(len(ROWS)):
                yield ROWS[number]
        finally:
            self.closed += 1
            print("closed", self.closed)


class Managed(Rows):
    def __iter__(self) -> Iterator[Any]:
        with self.counted():
            yield from ROWS

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.closed += 1


class Delegating(Rows):
    def __iter__(self) -> Iterator[Any]:
        return Rows.__iter__(self)


class Wrapping(Rows):
    def __iter__(self) -> Iterator[Any]:
        for row in Rows.__iter__(self):
            yield row + 1


def enumerated(rows: Rows, step: int, x: Any) -> Any:
    for number, row in enumerate(rows):
        x = x + row
        if number == step:
            break
    return x * rows.closed


def zipped(rows: Rows, step: int, x: Any) -> Any:
    for number, row, _ in zip(range(9), rows, iter(rows)):
        x = x + row
        if number == step:
            break
    return x * rows.closed


def chained(rows: Rows, step: int, x: Any) -> Any:
    for row in itertools.chain(rows, rows):
        x = x + row
        if step == 0:
            break
    return x * rows.closed


def mapped(rows: Rows, step: int, x: Any) -> Any:
    def double(row: Any) -> Any:
        return row * 2

    for row in map(double, filter(torch.is_tensor, rows)):
        x = x + row
        if step == 0:
            break
    return x * rows.closed


def first(rows: Rows, step: int, x: Any) -> Any:
    return (x + next(iter(rows))) * rows.closed


def plain(rows: Rows, step: int, x: Any) -> Any:
    for row in rows:
        x = x + row
        if step == 0:
            break
    return x * rows.closed


def returned_from(rows: Rows, step: int, x: Any) -> Any:
    def inner() -> Any:
        for number, row in enumerate(rows):
            if number == step:
                return row
        return x

    return (x + inner()) * rows.closed


def raised_in(rows: Rows, step: int, x: Any) -> Any:
    with contextlib.suppress(KeyError):
        for number, _ in enumerate(rows):
            if number == step:
                raise KeyError(step)
    return x * rows.closed


def deleted(rows: Rows, step: int, x: Any) -> Any:
    it = iter(rows)
    row = next(it)
    if step == 0:
        del it
    return (x + row) * rows.closed, rows.closed


def in_a_list(rows: Rows, step: int, x: Any) -> Any:
    held = [iter(rows)]
    row = next(held[0])
    held.clear()
    return (x + row) * rows.closed


def in_an_attribute(rows: Rows, step: int, x: Any) -> Any:
    class Held:
        rows: Any = None

    held = Held()
    held.rows = iter(rows)
    row = next(held.rows)
    del held.rows
    return (x + row) * rows.closed


def unpacked(rows: Rows, step: int, x: Any) -> Any:
    try:
        one, two = rows
    except ValueError:
        return x * rows.closed
    return one + two


def asked_for_any(rows: Rows, step: int, x: Any) -> Any:
    found = any(row is not None for row in rows)
    return x * rows.closed * found


def in_a_branch(rows: Rows, step: int, x: Any) -> Any:
    if x.sum() > 0:
        for number, row in enumerate(rows):
            x = x + row
            if number == step:
                break
    return x * rows.closed


FUNCTIONS = (
    *(enumerated, zipped, chained, mapped, first, plain, returned_from, raised_in, deleted, in_a_list),
    *(in_an_attribute, unpacked, asked_for_any, in_a_branch),
)


def check(kind: type[Rows], function: Callable[..., Any]) -> Any:
    def make(note: Any) -> Any:
        rows = kind()

        def f(step: int, x: Any) -> Any:
            note(rows.closed)
            value = function(rows, step, x)
            note(rows.closed)
            return value

        return f

    return agrees(make, *CALLS, times=2)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_they_write_is_there_where_python_closes_them(function: Callable[..., Any]) -> None:
    check(Rows, function)


@pytest.mark.parametrize("kind", [Telling, Managed, Delegating, Wrapping])
@pytest.mark.parametrize("function", [enumerated, chained, first, plain, deleted])
def test_however_they_clean_up(kind: type[Rows], function: Callable[..., Any]) -> None:
    check(kind, function)


def test_those_without_anything_to_clean_up_are_in_the_program() -> None:
    def rows() -> Iterator[Any]:
        yield from ROWS

    def make(_: Any) -> Any:
        def f(x: Any) -> Any:
            for number, row in enumerate(rows()):
                x = x + row
                if number == 1:
                    break
            return x * next(iter(rows()))

        return f

    static = agrees(make, (X,), (-X,))
    assert segments(static) == 1
    assert reasons(static) == set()


def test_those_that_run_to_their_end_are_in_the_program() -> None:
    def make(_: Any) -> Any:
        rows = Rows()

        def f(x: Any) -> Any:
            before = rows.closed
            for number, row in enumerate(rows):
                x = x + row * number
            return x * (rows.closed - before)

        return f

    static = agrees(make, (X,), (-X,), settled=9)
    assert reasons(static) == set()
