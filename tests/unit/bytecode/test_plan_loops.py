"""Loops in which Python does something: however often they are run, there are as many programs; and generators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.bytecode.segmented import X, agrees, count, segments

NAMES = ["a", "bb", "ccc"]


def printed(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x + 1
        print(x.sum().item())
    return x


def plain(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x * 1.5
        x = x + len(NAMES[int(x.sum()) % 3])
    return x


def nested(x: Any, n: int) -> Any:
    for i in range(n):
        for j in range(3):
            x = x + i * j
            x = x + len(NAMES[int(x.sum()) % 3])
    return x


def inlined(x: Any, n: int) -> Any:
    for each in (1, 2, 3):
        x = plain(x, n) * 2 + each
    return x


def decided(x: Any, n: int) -> Any:
    while int(x.sum()) < 5 * n:
        x = x.abs() * 1.5 + 1
        print(NAMES[int(x.sum()) % 3])
    return x


def left(x: Any, n: int) -> Any:
    for i in range(n):
        print(NAMES[int(x.sum()) % 3])
        if x.sum() > 20:
            break
        if i == 2:
            continue
        x = x + i
    else:
        print("else")
        x = x + 1
    return x


def tried(x: Any, n: int) -> Any:
    for _ in range(n):
        try:
            x = x + len(NAMES[int(x.sum()) % 4])
            x = x + 1
        except IndexError as error:
            print("caught", error)
            x = x - 3
        finally:
            print("finally", x.sum().item())
    return x


@contextlib.contextmanager
def block(i: int) -> Iterator[int]:
    print("in", i)
    yield i
    print("out", i)


def managed(x: Any, n: int) -> Any:
    for i in range(n):
        with block(i) as k:
            x = x + k
            x = x + len(NAMES[int(x.sum()) % 3])
    return x


LOOPS = {each.__name__: each for each in (printed, plain, nested, inlined, decided, left, tried, managed)}


@pytest.mark.parametrize("name", LOOPS)
def test_as_many_programs_however_often(name: str) -> None:
    static = agrees(lambda record: LOOPS[name], (X, 9), (-X, 9), (X * 2, 9), times=4)
    assert static.plan.gave_up is None
    assert segments(static) <= 8
    before = count(static)
    assert before <= 2 * segments(static)


# ---- generators
def counted(x: Any, n: int) -> Any:
    for i in range(n):
        print("before", i, x.sum().item())
        yield x * i
        print("after", i)
        x = x + 1
    print("done")


def taken(x: Any) -> Any:
    total = x
    for each in counted(x, 3):
        print("got", each.sum().item())
        total = total + each
    return total


def worded(x: Any) -> Any:
    def words() -> Any:
        for _ in range(3):
            found = NAMES[int(x.sum()) % 3]
            print("word", found)
            yield x * len(found)
            print("next")

    total = x
    for each in words():
        total = total + each * int(each.sum())
    return total


def raising(x: Any) -> Any:
    def values() -> Any:
        print("begin", x.sum().item())
        yield x
        raise ValueError(f"{x.sum().item()}")

    total = x
    try:
        for each in values():
            total = total + each
    except ValueError as error:
        print("caught", error)
    return total


def left_by_an_exception(x: Any) -> Any:
    try:
        for each in counted(x, 3):
            if each.sum().item() > 5:
                raise ValueError("v")
            x = x + each
    except ValueError as error:
        print("caught", error)
    return x


def closed(x: Any) -> Any:
    def values() -> Any:
        try:
            yield x
            yield x * 2
        finally:
            print("closed")

    given = values()
    first = next(given)
    print("first", first.sum().item())
    given.close()
    return first


def sent(x: Any) -> Any:
    def inner() -> Any:
        got = yield x
        print("sent", got.sum().item())
        also = yield got * 2
        print("and", also)
        return got * 3

    def outer() -> Any:
        result = yield from inner()
        print("result", result.sum().item())
        yield result

    given = outer()
    a = next(given)
    b = given.send(a + 1)
    return a + b + given.send(5)


def collected(x: Any) -> Any:
    pairs = dict(enumerate(counted(x, 2)))
    largest = max(counted(x, 3), key=lambda each: each.sum().item())
    return pairs[1] + largest


def unpacked(x: Any) -> Any:
    def numbers() -> Any:
        for i in range(3):
            print("number", i)
            yield i

    a, b, c = numbers()
    return x * a + b * c, [*numbers()], dict.fromkeys(numbers(), 1)


GENERATORS: list[Callable[[Any], Any]] = [
    *(taken, worded, raising, left_by_an_exception, closed, sent, collected, unpacked)
]


@pytest.mark.parametrize("function", GENERATORS, ids=lambda each: each.__name__)
def test_generators(function: Callable[[Any], Any]) -> None:
    static = agrees(lambda record: function, (X,), (-X,), (X * 2,))
    assert count(static) <= segments(static) + 2


def test_a_function_that_is_stored_holds_the_variables_of_its_call() -> None:
    class Box:
        kept: Any = None

    def make(record: Any) -> Any:
        def f(x: Any) -> Any:
            doubled = x * 2
            box = Box()
            print("a")
            box.kept = lambda t: t * doubled
            print("b")
            return box.kept(x)

        return f

    agrees(make, (X,), (-X,), (X * 2,))
