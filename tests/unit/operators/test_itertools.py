"""`itertools` on what only the run knows."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

import stillgraph as sg
from tests.unit.operators.grown import LONGER_CALLS, agree, agree_in_segments, grown
from tests.unit.operators.test_iterators_of_objects import Each


def chained(x: Tensor) -> Any:
    total = 0.0
    for value in itertools.chain(grown(x), x.tolist()):
        if value < 0:
            continue
        if total > 4:
            break
        total += value
    return total, list(itertools.chain.from_iterable([grown(x), [1.0]])), next(itertools.chain(grown(x), [9.0]))


def accumulated(x: Tensor) -> Any:
    with_function = itertools.accumulate(x.tolist(), lambda a, b: a * b if b > 0 else a, initial=1.0)
    return list(itertools.accumulate(grown(x))), list(itertools.accumulate(x.tolist(), max)), list(with_function)


def cut(x: Tensor) -> Any:
    values = grown(x)
    parts = itertools.islice(values, 2), itertools.islice(values, 1, 3), itertools.islice(values, 0, None, 2)
    return [list(part) for part in parts], list(itertools.islice(Each(values), int(x[0].abs())))


def cut_while_it_grows(x: Tensor) -> Any:
    values, count = grown(x), 0
    for value in itertools.islice(values, 5):
        values.append(value)
        count += 1
    return count, values


def neighbours(x: Tensor) -> Any:
    return [b - a for a, b in itertools.pairwise(grown(x))]


def selected(x: Tensor) -> Any:
    values = x.tolist()
    chosen = itertools.compress(values, [v > 0 for v in values])
    return list(chosen), list(itertools.filterfalse(lambda v: v > 0, values))


def while_they_last(x: Tensor) -> Any:
    before, behind = (function(lambda i: x[i] > 0, range(4)) for function in (itertools.takewhile, itertools.dropwhile))
    return list(before), [*behind], sum(1 for _ in itertools.takewhile(lambda v: v < 2, grown(x)))


def the_rest(x: Tensor) -> Any:
    it = iter(x.tolist())
    return list(itertools.takewhile(lambda v: v > 0, it)), list(it)


def spread_out(x: Tensor) -> Any:
    return list(map(operator.mul, grown(x), grown(x)))


def repeated(x: Tensor) -> Any:
    return list(itertools.repeat(1, int(x.abs().max())))


def longest(x: Tensor) -> Any:
    return list(itertools.zip_longest(grown(x), [1.0, 2.0, 3.0], fillvalue=0.0))


def combined(x: Tensor) -> Any:
    values = grown(x)
    return (
        list(itertools.product(values, [1.0, 2.0])),
        [a * b for a, b in itertools.combinations(values, 2)],
        [a - b for a, b in itertools.permutations(values, 2)],
        [a + b for a, b in itertools.combinations_with_replacement(values, 2)],
    )


def collapsed(x: Tensor) -> Any:
    """The tokens of a CTC path, repetitions and blanks left out."""
    return [token for token, _ in itertools.groupby([int(value) for value in x.tolist()]) if token != 2]


def grouped(x: Tensor) -> Any:
    groups = []
    for is_positive, group in itertools.groupby(x.tolist(), key=lambda value: value > 0):
        print(is_positive)
        groups.append((is_positive, len(list(group))))
    return groups


def of_known_lists(x: Tensor) -> Any:
    """Python's own, which can be drawn from one by one."""
    pairs, chain = itertools.product(x.tolist(), [1, 2]), itertools.chain(x.tolist(), [1])
    return next(pairs), next(pairs), next(chain), [*pairs], [*chain], [*itertools.permutations(x.tolist())][:5]


def drawn_at_once(x: Tensor) -> Any:
    values = grown(x)
    pairs = itertools.product(values, [1.0])
    values.append(5.0)
    return list(pairs), values


def endless(x: Tensor) -> Any:
    scaled = [a * b for a, b in zip(itertools.repeat(x[0].item()), x.tolist())]
    return scaled, list(zip(itertools.count(), grown(x))), list(zip(grown(x), itertools.count(1)))


def of_tensors(x: Tensor) -> Any:
    first, second = [x[0]], [x[1]]
    both = itertools.chain(first, second), itertools.product(first, [1])
    return [list(each) for each in (*both, itertools.accumulate([x[0], x[1]]), itertools.pairwise([*first, *second]))]


def of_known_values(x: Tensor) -> Any:
    groups = itertools.groupby([1, 1, 2], lambda value: value)
    _, first = next(groups)
    _, second = next(groups)
    by_thirds = [(key, list(group)) for key, group in itertools.groupby(range(6), key=lambda i: i // 3)]
    return list(first), list(second), by_thirds, x.sum() > 0


def cut_at_a_bound_of_the_run(x: Tensor) -> Any:
    return list(itertools.islice(iter(grown(x)), int(x[0]))), list(itertools.islice(iter(grown(x)), 1, 4, 2))


ONE_PROGRAM = [
    *(chained, accumulated, cut, cut_while_it_grows, neighbours, selected, while_they_last, the_rest, spread_out),
    *(repeated, longest, combined, collapsed, grouped, of_known_lists, drawn_at_once, endless),
    *(of_tensors, of_known_values, cut_at_a_bound_of_the_run),
]


@pytest.mark.parametrize("function", ONE_PROGRAM)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function)


@pytest.mark.slow
@pytest.mark.parametrize("function", ONE_PROGRAM)
def test_in_segments(function: Callable[[Tensor], Any]) -> None:
    agree_in_segments(function)


def by_a_key_that_prints(x: Tensor) -> Any:
    def key(value: float) -> bool:
        print("asked")
        return value > 0

    return [(each, len(list(group))) for each, group in itertools.groupby(x.tolist(), key)]


def groups_kept(x: Tensor) -> Any:
    groups = [(each, group) for each, group in itertools.groupby(x.tolist(), lambda value: value > 0)]
    return [(each, list(group)) for each, group in groups]


def groups_of_an_iterator(x: Tensor) -> Any:
    it = iter(grown(x))
    for _ in itertools.groupby(it):
        break
    return list(it)


def a_list_that_grows(x: Tensor) -> Any:
    values, count = grown(x), 0
    for _ in itertools.groupby(values):
        if count == 0:
            values.append(9.0)
        count += 1
    return count


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (by_a_key_that_prints, "SG206"),
        (groups_kept, "SG203"),
        (groups_of_an_iterator, "SG206"),
        (a_list_that_grows, "SG206"),
    ],
)
def test_groups_are_drawn_in_their_turn(function: Callable[[Tensor], Any], code: str) -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager", full_graph=True)(LONGER_CALLS[0])
    assert caught.value.reason.code == code
