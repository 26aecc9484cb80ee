"""``try`` around operations of torch's that fail for some numbers, sizes or indices of the run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

X = torch.tensor([1.0, 2.0])
OPERATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "reshape": lambda x, n: x.reshape(int(n)),
    "view": lambda x, n: x.view((int(n), 1)),
    "expand": lambda x, n: x.expand(int(n), 2),
    "narrow": lambda x, n: x.narrow(0, 0, int(n)),
    "select": lambda x, n: x.select(0, int(n)),
    "index_select": lambda x, n: x.index_select(0, n.reshape(1)),
    "gather": lambda x, n: x.gather(0, n.reshape(1)),
    "index": lambda x, n: x[n.reshape(1)],
    "cat": lambda x, n: torch.cat([x.reshape(1, 2), x.new_zeros(1, int(n))]),
    "stack": lambda x, n: torch.stack([x, x.new_zeros(int(n))]),
    "matmul": lambda x, n: x @ x.new_zeros(int(n)),
    "zeros": lambda x, n: torch.zeros(int(n)),
    "add": lambda x, n: x + x.new_zeros(int(n)),
    "mask": lambda x, n: x[x > 0].reshape(2) * n,
    "remainder": lambda x, n: x.to(torch.int64) % int(n),
    "multiply": lambda x, n: x * int(n),
}


@pytest.mark.parametrize("kinds", [(RuntimeError,), (IndexError, RuntimeError)], ids=["one kind", "two kinds"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_handled_as_in_eager(name: str, kinds: tuple[type[Exception], ...]) -> None:
    operation = OPERATIONS[name]

    def function(x: Tensor, n: Tensor) -> Tensor:
        y = x
        try:
            y = operation(x, n)
        except kinds:
            y = x * 0
        return y

    agree(function, *((X, torch.tensor(n)) for n in (3, 2, 1, 0, -1, -5, 7)), (-X, torch.tensor(2)))


def test_remove_says_what_pythons_says() -> None:
    def function(x: Tensor, n: Tensor) -> list[int]:
        values = [1, 2]
        values.remove(int(n))
        return values

    agree(function, *((X, torch.tensor(n)) for n in (2, 3, 1, -1)))


@pytest.mark.parametrize("element", ["a", None, len, (), ("a", ())], ids=["text", "None", "function", "empty", "tuple"])
@pytest.mark.parametrize("kind", [list, tuple])
def test_an_index_among_elements_that_are_one(kind: type[list[object] | tuple[object, ...]], element: object) -> None:
    values = kind([element] * 2)
    agree(lambda x, n: (values[int(n)], x), *((X, torch.tensor(n)) for n in (0, 1, -2, 2, -3, 7)))


# ---- what cleans up on the way to a handler
class Counting:
    """A context manager that counts how often it was left."""

    def __init__(self) -> None:
        self.left = 0

    def __enter__(self) -> Counting:
        return self

    def __exit__(self, *_: object) -> None:
        self.left += 1


def of_numbers(x: Tensor, n: Tensor) -> tuple[int, int]:
    left, k = 0, int(n)
    try:
        try:
            y = 10 // k
        finally:
            left += 1
    except ZeroDivisionError:
        y = -left
    return y, left


def of_a_tensor(x: Tensor, n: Tensor) -> tuple[Tensor, int]:
    left = 0
    try:
        try:
            y = x[int(n)]
        finally:
            left += 1
    except IndexError:
        y = x[0] - left
    return y, left


def divided(k: int, seen: dict[str, int]) -> int:
    try:
        return 10 // k
    finally:
        seen["calls"] = seen["calls"] + 1


def in_a_function(x: Tensor, n: Tensor) -> tuple[int, int]:
    seen = {"calls": 0}
    try:
        y = divided(int(n), seen)
    except ZeroDivisionError:
        y = -1
    return y, seen["calls"]


def twice(x: Tensor, n: Tensor) -> tuple[int, int]:
    left, k = 0, int(n)
    try:
        try:
            try:
                y = 10 // k
            finally:
                left = left + 1
        finally:
            left = left * 2 + 1
    except (ValueError, ArithmeticError):
        y = -1
    return y, left


def in_each_iteration(x: Tensor, n: Tensor) -> int:
    total, i, k = 0, 0, int(n)
    while i < 4:
        try:
            try:
                total = total + 10 // (k - i)
            finally:
                i = i + 1
        except ZeroDivisionError:
            total = total + 1000
    return total


def of_a_manager(x: Tensor, n: Tensor) -> tuple[int, int]:
    counting, k = Counting(), int(n)
    try:
        with counting:
            y = 10 // k
    except ZeroDivisionError:
        y = -1
    return y, counting.left


def not_for_that(x: Tensor, n: Tensor) -> tuple[int, int]:
    left, k = 0, int(n)
    try:
        try:
            y = 10 // k
        finally:
            left += 1
    except ValueError:
        y = -1
    return y, left


CLEANING = [of_numbers, of_a_tensor, in_a_function, twice, in_each_iteration, of_a_manager, not_for_that]


@pytest.mark.parametrize("function", CLEANING)
def test_what_cleans_up_has_run_when_the_handler_does(function: Callable[..., object]) -> None:
    agree(function, *((X, torch.tensor(n)) for n in (3, 0, 1, -1, -2)))


@contextlib.contextmanager
def counted(counting: Counting) -> Iterator[None]:
    try:
        yield
    finally:
        counting.left += 1


def test_a_managers_function_sees_it() -> None:
    def function(n: Tensor) -> tuple[int, int]:
        counting, k = Counting(), int(n)
        try:
            with counted(counting):
                y = 10 // k
        except ZeroDivisionError:
            y = -1
        return y, counting.left

    agree(function, *(torch.tensor(n) for n in (3, 0, 1, -1)))



def test_a_manager_around_the_handler_sees_nothing() -> None:
    def function(x: Tensor, n: Tensor) -> tuple[int, int]:
        counting, k = Counting(), int(n)
        with counted(counting):
            try:
                y = 10 // k
            except ZeroDivisionError:
                y = -1
        return y, counting.left

    agree(function, *((X, torch.tensor(n)) for n in (3, 0, 1)))
