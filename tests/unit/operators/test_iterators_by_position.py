"""Iterators over lists of which only the run knows the length, or that only some paths advance."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.operators.grown import LONGER_CALLS, agree, agree_in_segments, grown


# ---- iter and next
def first_and_second(x: Tensor) -> Any:
    it = iter(grown(x))
    return next(it) + next(it, 0.0)


def largest(x: Tensor) -> Any:
    it = iter(grown(x))
    best = next(it)
    for value in it:
        best = max(best, value)
    return best


def advanced_in_an_arm(x: Tensor) -> Any:
    it = iter(grown(x))
    total = next(it, 0.0)
    if x.sum() > 0:
        total = total * 10 + next(it, -5.0)
    return total, list(it)


def until_none(x: Tensor) -> Any:
    it, total = iter(grown(x)), 0.0
    value = next(it, None)
    while value is not None:
        total = total * 2 + value
        value = next(it, None)
    return total


def until_it_stops(x: Tensor) -> Any:
    it, total = iter(grown(x)), 0.0
    try:
        while True:
            total += next(it)
    except StopIteration:
        return total


def skipping(x: Tensor) -> Any:
    it, kept = iter(grown(x)), []
    for value in it:
        kept.append(value)
        if value > 1:
            next(it, None)
    return kept


def the_rest_behind_a_break(x: Tensor) -> Any:
    it, total = iter(grown(x)), 0.0
    for value in it:
        if value > 1:
            break
        total += value
    return total, sum(it)


def exhausted_before_the_list_grows(x: Tensor) -> Any:
    values, count = grown(x), 0
    it = iter(values)
    for value in it:
        count = count + 1
        if count < 5:
            values.append(value)
    values.append(0.0)
    return values, list(it)


def of_a_range(x: Tensor) -> Any:
    it, total = iter(range(int(x.abs().sum()))), 0
    for i in it:
        if i > 2:
            break
        total += i
    return total, list(it)


def of_an_enumeration(x: Tensor) -> Any:
    it = enumerate(grown(x), 1)
    first = next(it)
    return first, [i * value for i, value in it], [i for i, _ in enumerate(it)]


def backwards(x: Tensor) -> Any:
    it = reversed(grown(x))
    return next(it), list(it)


def backwards_in_iterations_inside_each_other(x: Tensor) -> Any:
    """As the two loops of L-BFGS: until ``held`` grows, Python knows what is run over backwards."""
    held: list[Tensor] = []
    for _ in range(4):
        turned = x
        for each in reversed(held):
            turned = turned - each
        if turned.sum() > 3:
            held.append(x)
        x = turned
        if x.norm() < 1:
            break
    return x, len(held)


def in_pairs(x: Tensor) -> Any:
    it = iter(grown(x))
    return [a * b for a, b in zip(it, it)]


def in_batches(x: Tensor) -> Any:
    it, sums = iter(grown(x)), []
    while True:
        batch = list(itertools.islice(it, 2))
        if not batch:
            return sums
        sums.append(sum(batch))


# ---- over known values
def known_in_an_arm(x: Tensor) -> Any:
    it = iter(x.tolist())
    total = next(it)
    if total > 0:
        total = total + next(it)
    return total, list(it)


def parsed(x: Tensor) -> Any:
    tokens, found = iter([3.0, 1.0, 2.0, 4.0, 5.0]), []
    token = next(tokens, None)
    while token is not None:
        if token > float(x[0]):
            found.append(token + next(tokens, 0.0))
        else:
            found.append(token)
        token = next(tokens, None)
    return found


def of_functions(x: Tensor) -> Any:
    it = iter([torch.sin, torch.cos, torch.tan])
    y = next(it)(x)
    if y.sum() > 0:
        y = next(it)(y)
    return [function(y) for function in it]


def of_a_text(x: Tensor) -> Any:
    it = iter("abc")
    text = next(it)
    if x.sum() > 0:
        text += next(it)
    return text + "".join(it)


# ---- once there was no next element, there is none for ever
def of_a_list_in_an_arm(x: Tensor) -> Any:
    values, found = [1, 2, 3], []
    it, other, third, last = iter(values), iter(values), iter(values), iter(values)
    if x[0] > 0:
        list(it)
        sum(other)
        found.extend(last)
        for _ in third:
            pass
    values.append(4)
    return list(it), next(other, -1), next(third, None), found, list(last)


def by_many_a_next(x: Tensor) -> Any:
    values = [1, 2]
    it = iter(values)
    for value in x:
        if value > 0:
            next(it, None)
    values.append(3)
    return list(it)


def of_what_stands_on_a_list(x: Tensor) -> Any:
    values = grown(x)
    numbered, zipped = enumerate(values), zip(values, [1, 2, 3, 4, 5, 6])
    if x[0] > 0:
        list(numbered)
        list(zipped)
    values.append(4.0)
    return list(numbered), list(zipped)


def left_at_the_last_element(x: Tensor) -> Any:
    values = [*grown(x), 1.0]
    it, numbered = iter(values), enumerate(values)
    for value in it:
        if value == 1.0:
            break
    for _, value in numbered:
        if value == values[-1]:
            break
    values.append(9.0)
    return list(it), list(numbered)


def of_a_dict_that_grows(x: Tensor) -> Any:
    numbers = {1: x.sum().item()}
    it = iter(numbers)
    found = list(it)
    numbers[2] = 1.0
    return found, list(it), next(it, None)


# ---- what is left by those that draw from it
def taken_over_in_an_arm(x: Tensor) -> Any:
    numbered = enumerate(grown(x))
    if x[0] > 0:
        list(zip(numbered, [10, 20]))
    return list(numbered)


def drawn_from_by_a_function(x: Tensor) -> Any:
    it = iter(range(int(x.abs().sum())))
    return functools.reduce(lambda a, b: a * 2 + b + next(it, 0), it)


def asked_by_any_and_all(x: Tensor) -> Any:
    return any(iter(grown(x))), all(iter(grown(x)))


def unpacked(x: Tensor) -> Any:
    it = iter(grown(x))
    try:
        first, second = it
    except ValueError as error:
        return str(error), list(it)
    return first, second, list(it)


def zipped_and_left(x: Tensor) -> Any:
    it, other = iter(grown(x)), iter(grown(x))
    pairs, others = list(zip([1, 2], it)), list(zip(other, [1, 2]))
    return pairs, list(it), others, list(other)


def numbered_and_left(x: Tensor) -> Any:
    it = iter(grown(x))
    return [(i, value) for i, value in enumerate(it) if i < 1], list(it)


def drawn_from_by_the_body(x: Tensor) -> Any:
    it, found = iter(x.tolist()), []
    for value in it:
        if value > 0:
            found.append((value, next(it, 0.0)))
    return found


# ---- in branches
def summed_in_an_arm(x: Tensor) -> Any:
    if x.sum() > 0:
        return sum([x, x * 2]), max([x[0], x[1]]), sum({2: x}, 0.5)
    return sum(x.tolist(), 0.5)


ONE_PROGRAM: list[Callable[[Tensor], Any]] = [
    *(first_and_second, largest, advanced_in_an_arm, until_none, until_it_stops, skipping),
    *(the_rest_behind_a_break, exhausted_before_the_list_grows, of_a_range, of_an_enumeration, backwards),
    *(in_pairs, in_batches, known_in_an_arm, parsed, of_functions, of_a_text, summed_in_an_arm),
    *(of_a_list_in_an_arm, by_many_a_next, of_what_stands_on_a_list, unpacked, zipped_and_left),
    *(numbered_and_left, drawn_from_by_the_body, left_at_the_last_element, of_a_dict_that_grows),
    *(taken_over_in_an_arm, drawn_from_by_a_function, asked_by_any_and_all),
    backwards_in_iterations_inside_each_other,
]


@pytest.mark.parametrize("function", ONE_PROGRAM)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function)


@pytest.mark.slow
@pytest.mark.parametrize("function", ONE_PROGRAM)
def test_in_segments(function: Callable[[Tensor], Any]) -> None:
    agree_in_segments(function)


# ---- generators that Python draws from: no element is all those of a list
def each_of(values: Any) -> Iterator[Any]:
    for value in values:  # noqa: UP028 -- it is about the loop
        yield value


def delegated(values: Any) -> Iterator[Any]:
    yield from values


def zipped_first(x: Tensor) -> Any:
    return list(zip(each_of(grown(x)), [5, 6, 7, 8])), list(zip(delegated(grown(x)), "abcd"))


def zipped_expression(x: Tensor) -> Any:
    return list(zip((value * 2 for value in grown(x) if value < 3), [5, 6, 7, 8]))


def mapped_with(x: Tensor) -> Any:
    return list(map(lambda a, b: a * b, each_of(grown(x)), [1, 2, 3, 4]))


def taken_apart(x: Tensor) -> Any:
    first, *others = delegated(grown(x))
    return first, others


@pytest.mark.parametrize("function", [zipped_first, zipped_expression, mapped_with, taken_apart])
def test_a_generator(function: Callable[[Tensor], Any]) -> None:
    agree(function)


def drawn_twice(x: Tensor) -> Any:
    values = each_of(grown(x))
    return next(values), next(values, 0.0)


def drawn_from_a_nested_expression(x: Tensor) -> Any:
    return list(zip((value for _ in (1, 2) for value in grown(x)), [5, 6, 7, 8]))


def zipped_second(x: Tensor) -> Any:
    return list(zip([5, 6, 7, 8], each_of(grown(x))))


@pytest.mark.parametrize("function", [drawn_twice, zipped_second])
def test_what_only_python_could_draw_from(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager", full_graph=True)(LONGER_CALLS[0])
    assert caught.value.reason.code in ("SG206", "SG305")


def test_a_nested_expression_is_refused_or_right(request: pytest.FixtureRequest) -> None:
    """Through bytecode it is drawn from, through source it is Python's."""
    if request.node.callspec.params["front_end"] == "bytecode":
        agree(drawn_from_a_nested_expression)
        return
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(drawn_from_a_nested_expression, backend="eager", full_graph=True)(LONGER_CALLS[0])
    assert caught.value.reason.code == "SG206"
