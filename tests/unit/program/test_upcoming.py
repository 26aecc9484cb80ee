"""Looking at what an iterator is going to give, which stays where it is."""

from __future__ import annotations

import collections
import fractions
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stillgraph.program.upcoming import CannotLookError, End, LookAhead, advance, are_separate, state_of


class Own(list[int]):
    """A list that gives other items than it has."""

    def __iter__(self) -> Iterator[int]:
        return iter([9])


def zipped_with_itself() -> Iterator[Any]:
    numbers = iter([1, 2, 3, 4, 5])
    return zip(numbers, numbers)


MADE: list[Callable[[], Any]] = [
    *(lambda kind=kind: iter(kind) for kind in ([1, 2, 3], (1, 2), range(3), range(1 << 70, (1 << 70) + 3), "a\xe9")),
    *(lambda kind=kind: iter(kind) for kind in (b"ab", bytearray(b"ab"), {1, 2}, frozenset({1}))),
    lambda: iter({"a": 1, "b": 2}),
    lambda: iter({"a": 1, "b": 2}.values()),
    lambda: reversed({"a": 1, "b": 2}.items()),
    lambda: iter(collections.OrderedDict(a=1, b=2).items()),
    lambda: reversed([1, 2, 3]),
    lambda: reversed((1, 2, 3)),
    lambda: itertools.count(1.5, 0.5),
    lambda: itertools.cycle([1, 2]),
    lambda: itertools.cycle(itertools.islice(itertools.count(), 3)),
    lambda: itertools.repeat(3, 2),
    lambda: itertools.chain([1, 2], (3,), iter([4, 5])),
    lambda: itertools.chain.from_iterable([[1, 2], [3]]),
    lambda: enumerate([1, 2, 3]),
    lambda: zip([1, 2, 3], "ab", strict=True),
    zipped_with_itself,
    lambda: itertools.islice([1, 2, 3, 4, 5, 6], 1, None, 2),
    lambda: itertools.zip_longest([1, 2, 3], "a", fillvalue=0),
    lambda: itertools.product([1, 2], "ab"),
    lambda: itertools.permutations([1, 2, 3]),
    lambda: itertools.combinations([1, 2, 3], 2),
    lambda: itertools.combinations_with_replacement([1, 2, 3], 2),
]


def drawn(iterator: Any) -> Any:
    try:
        return next(iterator, End.END)
    except ValueError:  # of ``zip(…, strict=True)``
        return ValueError


@pytest.mark.parametrize("make", MADE)
def test_it_says_what_will_be_drawn(make: Callable[[], Any]) -> None:
    iterator = make()
    for _ in range(9):
        seen, before = LookAhead(iterator), state_of(iterator)
        try:
            expected = [seen[position] for position in range(2)]
        except ValueError:
            assert ValueError in (drawn(iterator), drawn(iterator))
            return
        assert state_of(iterator) == before
        assert drawn(iterator) == expected[0]
        assert LookAhead(iterator)[0] == expected[1]


@pytest.mark.parametrize("make", MADE)
def test_advancing_is_drawing(make: Callable[[], Any]) -> None:
    one, other = make(), make()
    advance(one, 1)
    next(other)
    assert state_of(one)[0] == state_of(other)[0]
    assert LookAhead(one)[0] == LookAhead(other)[0]


@pytest.mark.parametrize(
    "iterator",
    [
        map(abs, [1]),
        filter(None, [1]),
        (number for number in [1]),
        iter(int, 1),
        zip([1], (number for number in [1])),
        list.__iter__(Own([1])),
        itertools.chain([1], map(abs, [1])),
        itertools.chain.from_iterable(itertools.count()),  # type: ignore[arg-type]  # what is wrong with it comes later
        iter(collections.deque([1])),
        itertools.tee([1])[0],
        itertools.accumulate([1]),
        itertools.count(fractions.Fraction(1)),
    ],
)
def test_it_does_not_look_where_drawing_does_something(iterator: Any) -> None:
    with pytest.raises(CannotLookError):
        LookAhead(iterator)


def test_what_has_to_do_with_what() -> None:
    numbers, table = [1, 2], {"a": 1}
    one, other = iter(numbers), iter(numbers)
    assert are_separate([one, other], [[1, 2], table])
    assert not are_separate([one, one], [])
    assert not are_separate([one, zip(one)], [])
    assert not are_separate([other], [numbers])
    assert not are_separate([zip([1], table.items())], [table])
    assert not are_separate([itertools.chain((), numbers)], [numbers])
