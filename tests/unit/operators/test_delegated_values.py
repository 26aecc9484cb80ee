"""``n = yield from g()``, where a generator decides by tensors what it gives, and returns something."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import agree, agree_fresh, outcome, same_error

CALLS = (torch.ones(2), -torch.ones(2), torch.ones(2) * 3, -torch.ones(2) * 4)


def rising(x: Tensor) -> Any:
    n = 0
    while x.sum() < 5:
        x = x + 1
        n += 1
        yield x
    return n


def some(x: Tensor, count: int) -> Any:
    for i in range(count):
        if x.sum() > i:
            yield x * i
    return x.sum()


def until(x: Tensor) -> Any:
    while True:
        x = x + 1
        if x.sum() > 5:
            return x, {"sum": x.sum()}
        yield x


def nothing(x: Tensor) -> Any:
    while x.sum() < 5:
        x = x + 1
        yield x


def counted(x: Tensor) -> Any:
    n = yield from rising(x)
    yield x * n


def of_two(x: Tensor) -> Any:
    a = yield from some(x, 3)
    b: Tensor = yield from some(x * 2, 2)
    yield a + b


def taken_apart(x: Tensor) -> Any:
    y, held = yield from until(x)
    if y.sum() > 7:
        return
    yield y * held["sum"]


def handed_on(x: Tensor) -> Any:
    return (yield from rising(x))


def of_handed_on(x: Tensor) -> Any:
    n = yield from handed_on(x)
    yield n


def none_is_returned(x: Tensor) -> Any:
    given = yield from nothing(x)
    yield x if given is None else x * 100


def of_a_list(x: Tensor) -> Any:
    given = yield from [x, x * 2]
    yield 3 if given is None else 4


def in_a_branch(x: Tensor) -> Any:
    n = 10
    if x.sum() > 0:
        n = yield from rising(x)
    yield x * n


def in_a_loop(x: Tensor) -> Any:
    total = 0
    while x.sum() < 9:
        n = yield from rising(x)
        total = total + n
        x = x + 4
    return (yield from [x, x * total])


def in_expressions(x: Tensor) -> Any:
    yield (yield from rising(x)) * 2 + 1
    held = [1, (yield from rising(x * 2))]
    yield held[1] + held[0]


def recursive(x: Tensor, depth: int) -> Any:
    if depth == 0:
        yield x
        return 1
    a = yield from recursive(x * 2, depth - 1)
    b = yield from recursive(x * 3, depth - 1)
    return a + b


def of_a_recursion(x: Tensor) -> Any:
    n = yield from recursive(x, 2)
    yield x * n


class Items:
    """Gives what a generator gives, by a method of its own."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __iter__(self) -> Iterator[Tensor]:
        yield self.x
        yield self.x * 2


def of_an_object(x: Tensor) -> Any:
    given = yield from Items(x)
    yield x if given is None else x * 100


def of_pythons_own(x: Tensor) -> Any:
    given = yield from zip([x, x * 2], itertools.count())
    yield x, given is None


def failing(x: Tensor) -> Any:
    n = yield from rising(x)
    if n == 0:
        raise ValueError("none")
    yield x * n


GENERATORS: tuple[Callable[[Tensor], Iterator[Any]], ...] = (
    *(counted, of_two, taken_apart, of_handed_on, none_is_returned, of_a_list, in_a_branch, in_a_loop),
    *(in_expressions, of_a_recursion, of_an_object, failing),
)


def summed(generator: Any, x: Tensor) -> Any:
    total = x * 0
    for value in generator(x):
        total = total + value
    return total


def left(generator: Any, x: Tensor) -> Any:
    total = x * 0
    for value in generator(x):
        total = total + value
        if total.sum() > 6:
            break
    else:
        total = total * 10
    return total


def listed(generator: Any, x: Tensor) -> Any:
    return [value + x for value in generator(x)]


def measured(generator: Any, x: Tensor) -> Any:
    return sum((value * x).sum() for value in generator(x)), max(float((value * x).sum()) for value in generator(x))


@pytest.mark.parametrize("use", [summed, left, listed, measured], ids=lambda use: use.__name__)
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.__name__)
def test_as_in_eager(generator: Any, use: Any) -> None:
    agree(lambda x: use(generator, x), *CALLS)


@pytest.mark.parametrize("use", [summed, left], ids=lambda use: use.__name__)
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.__name__)
def test_without_a_full_graph(generator: Any, use: Any) -> None:
    static = sg.to_static(lambda x: use(generator, x), backend="eager", full_graph=False, strict=True)
    for x in CALLS:
        expected, actual = outcome(lambda x: use(generator, x), (x,)), outcome(static, (x,))
        assert same_error(expected["error"], actual["error"])
        assert_same(expected["value"], actual["value"])


def test_of_generators_that_are_defined_inside() -> None:
    def function(x: Tensor) -> Any:
        scale = x.sum()
        seen = 0

        def inner(y: Tensor) -> Any:
            nonlocal seen
            while y.sum() < 5:
                y = y + 1
                seen += 1
                yield y * scale
            return seen

        def outer(y: Tensor) -> Any:
            n = yield from inner(y)
            yield n * scale

        total = x * 0
        for value in outer(x):
            total = total + value
        return total, seen

    agree(function, *CALLS)


def test_of_what_python_zips() -> None:
    def function(x: Tensor) -> Any:
        return [(value, rest) for value, rest in of_pythons_own(x)]

    agree(function, *CALLS)


def test_of_methods_that_write() -> None:
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        def inner(self, x: Tensor) -> Any:
            while x.sum() < 5:
                x = x + 1
                self.n += 1
                yield x
            return self.n

        def outer(self, x: Tensor) -> Any:
            n = yield from self.inner(x)
            yield x * n

        def run(self, x: Tensor) -> Any:
            return summed(self.outer, x)

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.counter = Counter()

        def forward(self, x: Tensor) -> Any:
            return self.counter.run(x)

    agree_fresh(Module, *CALLS, programs=2)


def test_of_an_iterator_from_outside() -> None:
    def make() -> Any:
        numbers = iter(range(1, 30))

        def first(x: Tensor) -> Any:
            given = yield from itertools.islice(numbers, 2)
            yield 5 if given is None else 6

        return lambda x: summed(first, x), numbers

    (original, ours), (eager, theirs) = make(), make()
    static = sg.to_static(original, backend="eager")
    for x in CALLS:
        assert_same(eager(x), static(x))
    assert next(ours) == next(theirs)
