"""Generators that are closed before their end while a segment is captured: what they clean up is done once, by Python.

Python closes a generator that nobody has any more, and lets no exception out of that: a capture that has to begin anew
for what the generator cleans up has to be told of it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.bytecode.segmented import X, agrees, reasons, to_partial


def counted(x: Any) -> Any:
    try:
        for number in range(5):
            yield x * number
    finally:
        print("closed")


def delegating(x: Any) -> Any:
    try:
        yield from counted(x)
    finally:
        print("outer")


class Items:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __iter__(self) -> Any:
        try:
            yield self.x
            yield self.x + 1
        finally:
            print("items")


def left_by_break(x: Any) -> Any:
    y = x
    for v in counted(x):
        y = y + v
        if v.shape[0] == 3:
            break
    return y


def closed(x: Any) -> Any:
    made = counted(x)
    first = next(made)
    made.close()
    return first + 1


def dropped(x: Any) -> Any:
    made = counted(x)
    return next(made) + 1


def two_at_once(x: Any) -> Any:
    for v, w in zip(counted(x), counted(x + 1)):
        if v.dim() == w.dim():
            break
    return v + w


def returned_from(x: Any) -> Any:
    for v in delegating(x):
        return v + 1
    return x


def of_an_object(x: Any) -> Any:
    def first() -> Any:
        for v in Items(x):
            return v
        return x

    return first() + 1


def in_an_expression(x: Any) -> Any:
    return next(v for v in counted(x) if v.dim()) + 2


CLOSING = "it makes a generator that has something to clean up, which Python closes"

FUNCTIONS = (left_by_break, closed, dropped, two_at_once, returned_from, of_an_object, in_an_expression)


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Python has written of exceptions that nobody could get."""
    found: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda each: found.append(repr(each.exc_value)))
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_they_clean_up_is_done_once(
    function: Callable[[Any], Any], unraisable: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    to_partial(lambda x: x + 1)(X)  # torch's own first imports hold on to the frames that they came from
    static = agrees(lambda _: function, (X,), (-X,))
    gc.collect()
    assert unraisable == []
    assert capfd.readouterr() == ("", "")
    assert CLOSING in reasons(static)


def test_what_the_users_own_raise_there_is_told_as_ever(unraisable: list[str]) -> None:
    def raising(x: Any) -> Any:
        try:
            yield x
            yield x + 1
        finally:
            raise ValueError("of the user's")

    def f(x: Any) -> Any:
        made = raising(x)
        first = next(made)
        del made
        return first + 1

    f(X)
    assert unraisable == ["ValueError(\"of the user's\")"]
    to_partial(f)(X)
    assert set(unraisable) == {"ValueError(\"of the user's\")"}
