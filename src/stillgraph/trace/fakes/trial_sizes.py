"""The sizes that a torch function is called with to tell what it gives for sizes that only the run knows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from stillgraph.trace.fakes.symbolic import Symbolic, known_false

# All sizes at once, as some functions want them equal; or each group of equal ones, from one of these on.
_EQUAL = (-8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 31, 64, 300, 1025)
_APART = (2, 3, 5, 7, 11, 13, 17, 24, 36, 100)
_NEAR = range(10)  # behind the smallest size of all, where ranges have one
_MOST_OF_A_NUMBER = 36  # one that is no size: it may count what the function makes
_MOST_OF_A_RANGE = 600  # the smallest number of a range behind which some are tried all the same
_MOST_GROUPED = 4  # sizes that are put into groups of equal ones in all ways: fifteen


def sizes_to_try(
    symbolic: Symbolic, symbols: list[Any], values: list[torch.SymInt], numbers: set[Any]
) -> Iterator[dict[Any, int]]:
    """Sizes to call a function with, such as are possible.

    Args:
        symbolic: of the capture.
        symbols: those in the sizes and numbers that the function is given.
        values: these sizes and numbers.
        numbers: the symbols among them that are in numbers: they may count what the function makes.

    Yields:
        By symbol its size.
    """
    ranges = symbolic.shape_env.var_to_range
    if not symbols:
        yield from ({}, {}, {})
        return
    longer = {each.node.expr for each in values if known_false(each == 1)}
    least = int(max([2, *(ranges[each].lower for each in symbols if each in ranges)]))
    near = [least + more for more in _NEAR]
    equal = (dict.fromkeys(symbols, size) for size in (*_EQUAL, *near, *(least + more for more in _APART)))
    apart = (
        sizes
        for groups in _groupings(symbols)
        for base, step in ((_APART, 3), (near, 1), (near[::-1], 1))
        for sizes in _sizes_apart(groups, base, step)
    )
    most = max(_MOST_OF_A_NUMBER, near[-1] if least <= _MOST_OF_A_RANGE else 0)
    for sizes in (*equal, *apart):
        if any(size > most for symbol, size in sizes.items() if symbol in numbers):
            continue
        limits = [(ranges[symbol], size) for symbol, size in sizes.items() if symbol in ranges]
        stretched = any(size == 1 and symbol in longer for symbol, size in sizes.items())
        if not stretched and all(limit.lower <= size <= limit.upper for limit, size in limits):
            yield sizes


def are_told_apart(symbols: list[Any], tried: list[dict[Any, int]]) -> bool:
    """Whether symbols that are equal in all calls that succeed are so because the function wants it.

    That is so if all ways to take some for equal were tried. They are not for many symbols, nor if ranges are narrow.

    Args:
        symbols: those that the function is given.
        tried: what `sizes_to_try` gave.
    """
    pairs = [*itertools.combinations(symbols, 2)]
    ways = {tuple(sizes[one] == sizes[other] for one, other in pairs) for sizes in tried}
    return len(symbols) <= _MOST_GROUPED and len(ways) == sum(1 for _ in _partitions(symbols))


def _groupings(symbols: list[Any]) -> Iterator[list[list[Any]]]:
    """The ways to take some of the sizes for equal: all ways, or of many sizes two at a time."""
    if len(symbols) <= _MOST_GROUPED:
        yield from _partitions(symbols)
        return
    yield [[symbol] for symbol in symbols]
    for pair in itertools.combinations(symbols, 2):
        yield [list(pair), *([symbol] for symbol in symbols if symbol not in pair)]


def _partitions(symbols: list[Any]) -> Iterator[list[list[Any]]]:
    if not symbols:
        yield []
        return
    first, *rest = symbols
    for groups in _partitions(rest):
        yield [[first], *groups]
        for place, group in enumerate(groups):
            yield [*groups[:place], [first, *group], *groups[place + 1 :]]


def _sizes_apart(groups: list[list[Any]], base: Sequence[int], step: int) -> Iterator[dict[Any, int]]:
    """Sizes of which those of one group are equal; each group's is also 1, where some functions stretch a tensor."""
    if len(groups) < 2:
        return
    every = 1 if all(len(group) == 1 for group in groups) else 3
    for start in range(0, len(base), every):
        sizes = [base[(start + place * step) % len(base)] for place in range(len(groups))]
        yield {symbol: size for size, group in zip(sizes, groups) for symbol in group}
    for one in groups:
        yield {symbol: 1 if group is one else size for size, group in zip(base, groups) for symbol in group}
