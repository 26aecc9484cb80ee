"""Iterators from outside the function: each call advances them, so no program may have done it for good."""

from __future__ import annotations

import copy
import heapq
import io
import itertools
import json
import operator
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


def looped(x: Tensor, numbers: Iterator[int]) -> Tensor:
    for number in numbers:
        x = x + number
        if number % 3 == 2:
            break
    return x


def first(x: Tensor, numbers: Iterator[int]) -> Tensor:
    for number in numbers:
        return x + number
    return x


def delegated(x: Tensor, numbers: Iterator[int]) -> Tensor:
    def all_of() -> Iterator[int]:
        yield from numbers

    for number in all_of():
        x = x + number
    return x


def zipped_first(x: Tensor, numbers: Iterator[int]) -> Tensor:
    for number, row in zip(numbers, x):
        x = x + number * row
    return x


def starred(x: Tensor, numbers: Iterator[int]) -> Tensor:
    one, *others = numbers
    return x + one + len(others)


def added(x: Tensor, numbers: Iterator[int]) -> Tensor:
    found = [1]
    found += numbers
    return x + len(found)


def sliced(x: Tensor, numbers: Iterator[int]) -> Tensor:
    found = [1]
    found[:] = numbers
    return x + len(found)


def taken_apart(x: Tensor, numbers: Iterator[int]) -> Tensor:
    one, two, three, four = numbers
    return x + one + two + three + four


def counted(*values: int) -> int:
    return len(values)


class Holder:
    """An object whose iterator is from outside."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self.numbers = numbers

    def __iter__(self) -> Iterator[int]:
        return self.numbers


def extended(x: Tensor, numbers: Iterator[int]) -> Tensor:
    found: list[int] = []
    found.extend(numbers)
    return x + len(found)


FUNCTIONS: list[Callable[[Tensor, Iterator[int]], Any]] = [
    *(looped, first, delegated, zipped_first, starred, taken_apart, added, sliced, extended),
    lambda x, numbers: x + len(list(numbers)),
    lambda x, numbers: x + sum(numbers),
    lambda x, numbers: x + sum(2 * number for number in numbers),
    lambda x, numbers: x + len([number for number in numbers]),  # noqa: C416 (as people write it)
    lambda x, numbers: x + len({number: 1 for number in numbers}),  # noqa: C420 (as people write it)
    lambda x, numbers: x + (2 in numbers),
    lambda x, numbers: x + len(sorted(numbers)),
    lambda x, numbers: x + sum(map(abs, numbers)),
    lambda x, numbers: x + sum(index for index, _ in enumerate(numbers)),
    lambda x, numbers: x + sum(itertools.islice(numbers, 2)),
    lambda x, numbers: x + sum(itertools.chain(numbers, [1])),
    lambda x, numbers: x + numbers.__next__(),
    lambda x, numbers: x + len([*numbers]),
    lambda x, numbers: x + len((0, *numbers)),
    lambda x, numbers: x + len({*numbers}),
    lambda x, numbers: x + max(*numbers, 0),
    lambda x, numbers: x + counted(*numbers),
    lambda x, numbers: x + len(dict((number, 1) for number in numbers)),  # noqa: C402 (as people write it)
    lambda x, numbers: x + len([*Holder(numbers)]),
    lambda x, numbers: x + len(list(Holder(numbers))),
    lambda x, numbers: x + (2 in Holder(numbers)),
    lambda x, numbers: x + next(iter(numbers)),
]


def outcome(function: Any, *args: Any) -> Any:
    """What a call gives, or the error that it raises."""
    try:
        return function(*args).tolist()
    except (StopIteration, TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_they_are_advanced_when_the_program_has_run(function: Any) -> None:
    ours, eagers = iter([2, 1, 3, 4]), iter([2, 1, 3, 4])
    static = sg.to_static(lambda x: function(x, ours), backend="eager")
    with torch.no_grad():
        for _ in range(3):
            assert outcome(static, torch.ones(2)) == outcome(function, torch.ones(2), eagers)
            assert operator.length_hint(ours) == operator.length_hint(eagers)
    assert list(ours) == list(eagers)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_generators_are_not_advanced(function: Any) -> None:
    numbers = (number for number in [1, 2, 3, 4])
    static = sg.to_static(lambda x: function(x, numbers), backend="eager")
    with pytest.raises(sg.CaptureError, match="advanced: what a generator gives, only drawing tells") as caught:
        static(torch.ones(2))
    assert caught.value.reason.code == "SG305"
    assert list(numbers) == [1, 2, 3, 4]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_python_advances_generators_between_segments(function: Any) -> None:
    ours, eagers = (number for number in range(4)), (number for number in range(4))
    static = sg.to_static(lambda x: function(x, ours), backend="eager", full_graph=False, strict=True)
    x = torch.ones(2)
    with torch.no_grad():
        assert torch.equal(static(x), function(x, eagers))
    assert list(ours) == list(eagers)


# ---- programs as people write them, each with its iterators
Made = tuple[Callable[[Tensor], Any], list[Any]]


def a_schedule() -> Made:
    schedule = itertools.cycle([0.1, 0.2])
    return lambda x: x * next(schedule), [schedule]


def tickets() -> Made:
    counter = itertools.count()

    def function(x: Tensor) -> Any:
        queue: list[Any] = []
        for name, cost in (("a", 2), ("b", 1), ("c", 1)):
            heapq.heappush(queue, (cost, next(counter), name))
        names = []
        while queue:
            cost, number, name = heapq.heappop(queue)
            names.append(name)
            x = x + cost + number
        return x, names

    return function, [counter]


def in_a_branch() -> Made:
    numbers = iter(range(1, 9))
    return lambda x: x + next(numbers) if x.sum() > 0 else x, [numbers]


def in_both_branches() -> Made:
    numbers = iter(range(1, 30))

    def function(x: Tensor) -> Any:
        x = x + next(numbers) if x.sum() > 0 else x - next(numbers)
        return x * next(numbers)

    return function, [numbers]


def until_it_is_enough() -> Made:
    numbers = iter(range(1, 9))

    def function(x: Tensor) -> Any:
        for number in numbers:
            x = x + number
            if x.sum() > 8:
                break
        else:
            x = x * 0
        return x

    return function, [numbers]


def batches() -> Made:
    rows: Iterator[tuple[int, Any]] = enumerate([{"x": torch.full((2,), float(k)), "weight": k / 2} for k in range(9)])

    def function(x: Tensor) -> Any:
        number, batch = next(rows)
        return x * batch["x"] * batch["weight"] + number

    return function, [rows]


def until_the_end() -> Made:
    rows = iter([torch.ones(2), torch.zeros(2), torch.ones(2)])

    def function(x: Tensor) -> Any:
        try:
            return x + next(rows) * next(rows)
        except StopIteration:
            return x * 0

    return function, [rows]


def with_a_default() -> Made:
    rows = itertools.chain([torch.ones(2)], iter([torch.zeros(2)]))

    def function(x: Tensor) -> Any:
        row = next(rows, None)
        return x - 1 if row is None else x + row

    return function, [rows]


def raised_behind_it() -> Made:
    numbers = iter(range(9))

    def function(x: Tensor) -> Any:
        number = next(numbers)
        if x.sum() < 0:
            raise ValueError("negative")
        return x + number + next(numbers)

    return function, [numbers]


def failed_behind_it() -> Made:
    numbers = iter(range(9))

    def function(x: Tensor) -> Any:
        number = next(numbers)
        return torch.linalg.cholesky(x.sum() * torch.eye(2)) + number + next(numbers)

    return function, [numbers]


def by_two_names() -> Made:
    numbers = itertools.count()
    draw, several = numbers.__next__, [numbers, itertools.repeat(2)]
    return lambda x: x + next(numbers) * 10 + draw() + sum(next(each) for each in several), several


def one_over_two() -> Made:
    numbers = iter(range(20))
    pairs = zip(numbers, numbers)
    return lambda x: x + operator.mul(*next(pairs)), [numbers]


def changed_items() -> Made:
    lists = iter([[1], [2], [3], [4], [5], [6]])

    def function(x: Tensor) -> Any:
        last = next(lists)
        last.append(7)
        return x, last

    return function, [lists]


def changing_layers() -> Made:
    torch.manual_seed(0)
    layers = itertools.cycle([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
    return lambda x: next(layers)(x), [layers]


def of_a_hook() -> Made:
    numbers = itertools.count(1)

    def function(x: Tensor) -> Any:
        x = x.detach().requires_grad_()
        y = x * 2
        y.register_hook(lambda gradient: gradient * next(numbers))
        (y * next(numbers)).sum().backward()
        return x.grad

    return function, [numbers]


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.tolist()
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value


def called(function: Any, x: Tensor) -> Any:
    try:
        return plain(function(x))
    except (ValueError, RuntimeError) as error:
        return type(error), str(error).splitlines()[:1]


INPUTS = [torch.ones(2), -torch.ones(2), torch.ones(2) * 3, torch.ones(2)]


@pytest.mark.parametrize(
    "make",
    [
        *(a_schedule, tickets, in_a_branch, in_both_branches, until_it_is_enough, batches, until_the_end),
        *(with_a_default, raised_behind_it, failed_behind_it, by_two_names, one_over_two, changed_items),
        *(changing_layers, of_a_hook),
    ],
)
def test_it_is_as_in_eager(make: Callable[[], Made]) -> None:
    (function, ours), (eager, eagers) = make(), make()
    static = sg.to_static(function, backend="eager")
    for x in INPUTS:
        assert called(static, x.clone()) == called(eager, x.clone())
    for one, other in zip(ours, eagers, strict=True):
        assert str(list(itertools.islice(one, 3))) == str(list(itertools.islice(other, 3)))


def test_few_programs_do_for_all_that_it_gives() -> None:
    counter = itertools.count()
    static = sg.to_static(lambda x: x + next(counter), backend="eager")
    assert [static(torch.zeros(())).item() for _ in range(10)] == [*range(10)]
    assert static.cache_info().programs == 2


def test_each_epoch_has_its_own() -> None:
    static = sg.to_static(lambda x, rows: x + next(rows), backend="eager")
    for _ in range(3):
        rows = iter([torch.zeros(()), torch.ones(())])
        assert [static(torch.zeros(()), rows).item() for _ in range(2)] == [0, 1]
    assert static.cache_info().programs == 1


def test_the_same_twice_or_one_that_another_draws_from() -> None:
    def function(x: Tensor, one: Any, other: Any) -> Any:
        return x + 10 * next(one) + next(other)

    static, x = sg.to_static(function, backend="eager"), torch.zeros(())
    one, other = iter(range(9)), iter(range(9))
    assert [static(x, one, other).item() for _ in range(2)] == [0, 11]
    assert [static(x, one, one).item() for _ in range(2)] == [23, 45]
    assert static(x, one, other).item() == 62
    with pytest.raises(sg.CaptureError, match="and both draw from one"):
        static(x, one, itertools.islice(one, 3))
    assert (next(one), next(other)) == (7, 3)


def test_another_kind_in_a_later_call() -> None:
    static, x = sg.to_static(lambda x, numbers: x + next(numbers), backend="eager"), torch.zeros(())
    static(x, iter([1]))
    numbers = map(abs, [1, 2])
    with pytest.raises(sg.CaptureError, match="what a map gives, only drawing tells"):
        static(x, numbers)
    assert list(numbers) == [1, 2]


def draws_again(x: Tensor, numbers: Any, held: list[int]) -> Any:
    if x.sum() > 0:
        x = x + next(numbers)
    return x + next(numbers)


def changes_the_list(x: Tensor, numbers: Any, held: list[int]) -> Any:
    x = x + next(numbers)
    held.append(5)
    return x


def asks_how_far(x: Tensor, numbers: Any, held: list[int]) -> Any:
    return x + operator.length_hint(numbers)


def copies(x: Tensor, numbers: Any, held: list[int]) -> Any:
    return x + next(copy.copy(numbers))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (draws_again, "an iterator is used again of which only the run knows how far it was advanced"),
        (changes_the_list, "an iterator from outside the function is advanced, and what it runs over is changed"),
        (asks_how_far, "it is looked at how far a list_iterator from outside the function is"),
        (copies, "it is looked at how far a list_iterator from outside the function is"),
    ],
)
def test_what_a_program_cannot_say_of_them(function: Any, message: str) -> None:
    held = [1, 2, 3]
    ours, eagers = iter(held), iter([1, 2, 3])
    with pytest.raises(sg.CaptureError, match=message) as caught:
        sg.to_static(lambda x: function(x, ours, held), backend="eager")(torch.ones(()))
    assert caught.value.reason.code == "SG305"
    assert held == [1, 2, 3]
    static = sg.to_static(lambda x: function(x, ours, held), backend="eager", full_graph=False, strict=True)
    assert static(torch.ones(())) == function(torch.ones(()), eagers, [1, 2, 3])
    assert next(ours) == next(eagers)


def test_no_file_has_one(tmp_path: Any) -> None:
    def function(x: Tensor, numbers: Any) -> Any:
        return x + next(numbers)

    for name in ("saved.pt2", "saved.py"):
        numbers = iter([1, 2])
        with pytest.raises(sg.ExportError, match="each call draws from the iterator") as caught:
            sg.save(function, tmp_path / name, args=(torch.ones(2), numbers))
        assert caught.value.reason.code == "SG402"
        assert list(numbers) == [1, 2]


def test_one_of_the_calls_own_is_advanced() -> None:
    def function(x: Tensor) -> Any:
        numbers = iter([1, 2, 3, 4])
        return x + next(numbers), list(zip(numbers, "ab")), sum(numbers)

    assert sg.to_static(function, backend="eager")(torch.ones(1))[1:] == function(torch.ones(1))[1:]


def test_each_arm_may_advance_what_was_made_before() -> None:
    def function(x: Tensor) -> Any:
        numbers = iter([1, 2, 3])
        return x + len(list(numbers)) if x.sum() > 0 else x - len(list(numbers))

    static = sg.to_static(function, backend="eager")
    for x in (torch.ones(2), -torch.ones(2)):
        assert torch.equal(static(x), function(x))
    assert len(static.programs) == 1


def test_a_generator_from_outside_goes_on() -> None:
    def numbers() -> Iterator[int]:
        yield from range(10)

    ours, eagers = numbers(), numbers()
    static = sg.to_static(lambda x: x + next(iter(ours)), backend="eager", full_graph=False, strict=True)
    for _ in range(3):
        assert torch.equal(static(torch.ones(1)), torch.ones(1) + next(eagers))


READS: list[Callable[[Tensor, Any], Any]] = [
    lambda x, file: x + len([*file]),
    lambda x, file: x + len(list(file)),
    lambda x, file: x + sum(len(line) for line in file),
    lambda x, file: x + len("".join(file)),
    lambda x, file: (x, json.load(file)),
    lambda x, file: x + file.tell(),
]


@pytest.mark.parametrize("function", READS)
def test_a_stream_is_read_by_each_call(function: Any) -> None:
    ours, eagers = io.StringIO("[1,\n2]\n"), io.StringIO("[1,\n2]\n")
    with pytest.raises(sg.CaptureError, match="from outside") as caught:
        sg.to_static(lambda x: function(x, ours), backend="eager")(torch.ones(2))
    assert caught.value.reason.code == "SG305"
    assert ours.tell() == 0
    static = sg.to_static(lambda x: function(x, ours), backend="eager", full_graph=False, strict=True)
    for position in (0, 0, 4):
        ours.seek(position)
        eagers.seek(position)
        try:
            expected = function(torch.ones(2), eagers)
        except ValueError:
            with pytest.raises(ValueError):
                static(torch.ones(2))
        else:
            torch.testing.assert_close(static(torch.ones(2)), expected)
        assert ours.tell() == eagers.tell()


# ---- ``in`` asks what Python asks
class AsLowerCase(MutableMapping[str, int]):
    """As those for headers of HTTP."""

    def __init__(self) -> None:
        self.found: dict[str, int] = {}

    def __getitem__(self, key: str) -> int:
        return self.found[key.lower()]

    def __setitem__(self, key: str, value: int) -> None:
        self.found[key.lower()] = value

    def __delitem__(self, key: str) -> None:
        del self.found[key.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


class Odd(list[int]):
    def __iter__(self) -> Iterator[int]:
        return iter([9])


class Listing:
    def __iter__(self) -> Iterator[int]:
        return iter([1, 2])


HEADERS, ODD, LISTING = AsLowerCase(), Odd([1, 2]), Listing()
HEADERS["Key"] = 1


def looks(x: Any) -> Any:
    return x * 2 if "KEY" in HEADERS else x, x * 3 if 1 in LISTING else x, "other" in HEADERS


def looks_in_a_list(x: Any) -> Any:
    return x * (2 if 1 in ODD else 3)


@pytest.mark.filterwarnings("ignore:.*for what it reads differs each time")  # a list that gives what it does not hold
def test_in_asks_what_python_asks() -> None:
    x = torch.ones(2)
    for function in (looks, looks_in_a_list):
        for full_graph in (True, False):
            static = sg.to_static(function, full_graph=full_graph, strict=not full_graph, backend="eager")
            assert str(static(x)) == str(function(x))
