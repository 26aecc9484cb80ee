"""What each call makes anew and a later segment reads: one program does for all of them, and none for what differs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from tests.unit.bytecode.segmented import Record, X, agrees, count, observed, segments, to_partial


def one_program_each(static: Any) -> None:
    """Every segment has one program."""
    assert count(static) == segments(static)


class Counter:
    def __init__(self) -> None:
        self.total: Any = 0

    def step(self, x: Any) -> Any:
        self.total = self.total + x.sum()
        print(self.total.item())
        return x + self.total


@dataclasses.dataclass
class Pair:
    a: Any
    b: Any


def test_objects() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            made = Counter()
            x = made.step(x)
            x = made.step(x)
            return x, made.total

        return f

    one_program_each(agrees(make, (X,), (-X,), (X * 2,)))


def test_dataclasses() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            pair = Pair(x, 2)
            print("a")
            pair.a = pair.a * pair.b
            pair.b = 3
            print("b")
            return pair.a * pair.b

        return f

    one_program_each(agrees(make, (X,), (-X,), (X * 2,)))


def test_functions_and_their_variables() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            count = 0

            def step(t: Any, by: int = 2) -> Any:
                nonlocal count
                count += 1
                print("step", count)
                return t * count * by

            x = step(x)
            print("a")
            count += 5
            return step(x), count

        return f

    one_program_each(agrees(make, (X,), (-X,), (X * 2,)))


def test_lambdas() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            doubled = lambda t: t * 2 + x  # noqa: E731
            print("a")
            z = doubled(x)
            print("b")
            return doubled(z)

        return f

    one_program_each(agrees(make, (X,), (-X,), (X * 2,)))


def test_methods_that_were_taken_off_their_objects() -> None:
    def make(record: Record) -> Any:
        def f(x: Any) -> Any:
            made = Counter()
            step = made.step
            print("a")
            y = step(x)
            made.total = made.total * 2
            return step(y) + made.total

        return f

    one_program_each(agrees(make, (X,), (-X,), (X * 2,)))


# ---- exact
def test_objects_of_another_class_have_another_program() -> None:
    class Other(Counter):
        def step(self, x: Any) -> Any:
            return x * 100

    def make(record: Record) -> Any:
        def f(x: Any, other: bool) -> Any:
            made = Other() if other else Counter()
            print("a")
            return made.step(x)

        return f

    agrees(make, (X, False), (X, True), (-X, False), (-X, True))


def test_functions_of_other_code_or_other_variables() -> None:
    def make(record: Record) -> Any:
        def f(x: Any, kind: int) -> Any:
            n = kind * 3
            if kind == 0:
                chosen = lambda t: t - n  # noqa: E731
            elif kind == 1:
                chosen = lambda t: t * n  # noqa: E731
            else:
                chosen = lambda t, by=kind: t * by + n  # noqa: E731
            print("a")
            return chosen(x)

        return f

    agrees(make, *((X, kind) for kind in (0, 1, 2, 3, 2, 1, 0)))


def test_variables_from_outside_that_others_write() -> None:
    def made() -> Any:
        k = 1.5

        def f(x: Any) -> Any:
            print("a")
            g = lambda t: t * k  # noqa: E731
            print("b")
            return g(x) + k

        def write(value: Any) -> None:
            nonlocal k
            k = value

        return f, write

    eager, write = made()
    partial, write_too = made()
    static = to_partial(partial)
    for value in (1.5, 2.5, None, 2.5, torch.ones(()), 7):
        write(value)
        write_too(value)
        wanted, given = observed(eager, (X,)), observed(static, (X,))
        assert (given.error, given.printed) == (wanted.error, wanted.printed)
        if wanted.error is None:
            torch.testing.assert_close(given.value, wanted.value, rtol=0, atol=0)


@pytest.mark.parametrize("reads", ["is", "writes"])
def test_whether_two_are_one(reads: str) -> None:
    def make(record: Record) -> Any:
        def f(x: Any, same: bool) -> Any:
            a = Counter()
            b = a if same else Counter()
            c = Pair(a, b)
            print("a")
            if reads == "is":
                return x * 2 if c.a is c.b else x * 3
            c.a.total = 5
            c.b.total = 7
            return x * c.a.total

        return f

    agrees(make, (X, True), (X, False), (-X, True), (-X, False))


def test_whether_two_functions_share_a_variable() -> None:
    def make(record: Record) -> Any:
        def factory() -> Any:
            n = 0

            def write(value: int) -> None:
                nonlocal n
                n = value

            def read() -> int:
                return n

            return write, read

        def f(x: Any, same: bool) -> Any:
            write, read = factory()
            if not same:
                _, read = factory()
            print("a")
            write(4)
            return x * read()

        return f

    agrees(make, (X, True), (X, False), (-X, True), (-X, False))


def test_a_variable_that_is_not_there_yet() -> None:
    def make(record: Record) -> Any:
        def f(x: Any, early: bool) -> Any:
            def read() -> Any:
                return n

            if early:
                n = 3
            print("a")
            try:
                y = x * read()
            except NameError:
                y = x
            n = 4
            print("b")
            return y + read()

        return f

    agrees(make, (X, True), (X, False), (-X, True), (-X, False), times=2)


class Named:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"named {self.name}"


def test_objects_that_say_what_they_are() -> None:
    def make(record: Record) -> Any:
        def f(x: Any, name: str) -> Any:
            made = Named(name)
            print("a")
            text = f"{made}!"
            return x * len(text), text

        return f

    agrees(make, (X, "a"), (X, "bb"), (X, "a"))


def test_objects_that_are_shown_by_their_address() -> None:
    shown: list[str] = []

    def f(x: Any) -> Any:
        made = Counter()
        print("a")
        text = repr(made)
        return x * 2, text == object.__repr__(made)

    static = to_partial(f)
    for _ in range(3):
        value, right = static(X)
        shown.append(right)
        torch.testing.assert_close(value, X * 2)
    assert shown == [True] * 3
