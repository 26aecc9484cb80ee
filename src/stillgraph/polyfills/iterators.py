"""``itertools`` in plain Python, for elements of which only the run knows how many there are."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any


def chain(*iterables: Any) -> Any:
    """``itertools.chain``."""
    yield from chained(iterables)


def chained(iterables: Any) -> Any:
    """``itertools.chain.from_iterable``."""
    for iterable in iterables:
        yield from iterable


def accumulate(iterable: Any, func: Any = None, *, initial: Any = None) -> Any:
    """``itertools.accumulate``."""
    combine = operator.add if func is None else func
    iterator = iter(iterable)
    if initial is None:
        try:
            total = next(iterator)
        except StopIteration:
            return
    else:
        total = initial
    yield total
    for element in iterator:
        total = combine(total, element)
        yield total


def islice(iterable: Any, *bounds: Any) -> Any:
    """``itertools.islice``: what comes behind the end is not drawn."""
    start = 0 if len(bounds) == 1 or bounds[0] is None else bounds[0]
    stop = bounds[0] if len(bounds) == 1 else bounds[1]
    step = 1 if len(bounds) < 3 or bounds[2] is None else bounds[2]
    iterator, place, following = iter(iterable), 0, start
    while stop is None or place < max(start, stop):
        try:
            element = next(iterator)
        except StopIteration:
            return
        if place == following:
            yield element
            following = following + step
        place = place + 1


def pairwise(iterable: Any, /) -> Any:
    """``itertools.pairwise``."""
    iterator = iter(iterable)
    try:
        before = next(iterator)
    except StopIteration:
        return
    for element in iterator:
        yield (before, element)
        before = element


def compress(data: Any, selectors: Any) -> Any:
    """``itertools.compress``."""
    for element, selected in zip(data, selectors):
        if selected:
            yield element


def takewhile(predicate: Any, iterable: Any, /) -> Any:
    """``itertools.takewhile``."""
    for element in iterable:
        if not predicate(element):
            break
        yield element


def dropwhile(predicate: Any, iterable: Any, /) -> Any:
    """``itertools.dropwhile``."""
    dropping = True
    for element in iterable:
        if dropping:
            if predicate(element):
                continue
            dropping = False
        yield element


def filterfalse(function: Any, iterable: Any, /) -> Any:
    """``itertools.filterfalse``."""
    for element in iterable:
        if not (element if function is None else function(element)):
            yield element


def starmap(function: Any, iterable: Any, /) -> Any:
    """``itertools.starmap``."""
    for arguments in iterable:
        yield function(*arguments)


def repeat(object: Any, times: Any) -> Any:
    """``itertools.repeat`` of a number of times that only the run knows."""
    for _ in range(times):
        yield object


def zip_longest(iterables: Any, fillvalue: Any, check: Any) -> Any:
    """``itertools.zip_longest`` of lists and tuples."""
    longest = 0
    for each in iterables:
        longest = max(longest, len(each))
    for place in range(longest):
        yield tuple([each[place] if place < len(each) else fillvalue for each in iterables])
        check()


def product(*iterables: Any, repeat: Any = 1) -> Any:
    """``itertools.product``, of which the capture knows of how many."""
    pools = [tuple(each) for each in iterables] * repeat
    yield from _products(pools)


def _products(pools: Any) -> Any:
    if len(pools) == 0:
        yield ()
    else:
        for element in pools[0]:
            for rest in _products(pools[1:]):
                yield (element, *rest)


def combinations(iterable: Any, r: Any) -> Any:
    """``itertools.combinations`` of ``r`` elements, which the capture knows."""
    yield from _combinations(tuple(iterable), 0, r, 1)


def combinations_with_replacement(iterable: Any, r: Any) -> Any:
    """``itertools.combinations_with_replacement``, likewise."""
    yield from _combinations(tuple(iterable), 0, r, 0)


def _combinations(pool: Any, start: Any, count: Any, step: Any) -> Any:
    if count == 0:
        yield ()
    else:
        for place in range(start, len(pool)):
            for rest in _combinations(pool, place + step, count - 1, step):
                yield (pool[place], *rest)


def permutations(iterable: Any, r: Any = None) -> Any:
    """``itertools.permutations`` of ``r`` elements, which the capture knows."""
    pool = tuple(iterable)
    yield from _permutations(pool, (), len(pool) if r is None else r)


def _permutations(pool: Any, used: Any, count: Any) -> Any:
    if count == 0:
        yield ()
    else:
        for place in range(len(pool)):
            if place not in used:
                for rest in _permutations(pool, (*used, place), count - 1):
                    yield (pool[place], *rest)


def groupby(values: Any, key: Any, check: Any) -> Any:
    """``itertools.groupby``, with a key that does nothing but compute: a group is drawn before it is given.

    As Python's, a group is empty once the next one has been drawn. ``check`` is called where Python would draw.
    """
    group: Any = []
    if len(values) == 0:
        return
    current = values[0] if key is None else key(values[0])
    for element in values:
        found = element if key is None else key(element)
        if len(group) > 0 and found not in (current,):  # the same object, or equal
            given = iter(group)
            yield (current, given)
            check()
            end(given)
            group.clear()
            current = found
        group.append(element)
    given = iter(group)
    yield (current, given)
    check()
    end(given)


def end(iterator: Any) -> None:
    """Draw all that is left."""
    for _ in iterator:
        pass


def numbered(iterable: Any, start: Any) -> Any:
    """``enumerate``."""
    place = start
    for element in iterable:
        yield (place, element)
        place = place + 1


def zipped(first: Any, *others: Any) -> Any:
    """``zip``: it draws from one after the other, and ends where one of them does."""
    for element in first:
        try:
            row = (element, *[next(iterator) for iterator in others])
        except StopIteration:
            return
        yield row


def items_by_method(iterator: Any) -> Any:
    """What a loop over an iterator draws from it."""
    while True:
        try:
            element = iterator.__next__()
        except StopIteration:
            return
        yield element


def items_by_index(values: Any) -> Any:
    """What a loop over an object draws that has no method ``__iter__``."""
    place = 0
    while True:
        try:
            element = values[place]
        except (IndexError, StopIteration):
            return
        yield element
        place = place + 1


def next_by_method(iterator: Any, default: Any) -> Any:
    """``next(iterator, default)``."""
    try:
        return iterator.__next__()
    except StopIteration:
        return default


POLYFILLS: dict[Any, Callable[..., Any]] = {
    itertools.chain: chain,
    itertools.chain.from_iterable: chained,
    itertools.accumulate: accumulate,
    itertools.islice: islice,
    itertools.pairwise: pairwise,
    itertools.compress: compress,
    itertools.takewhile: takewhile,
    itertools.dropwhile: dropwhile,
    itertools.filterfalse: filterfalse,
    itertools.starmap: starmap,
    itertools.repeat: repeat,
    itertools.zip_longest: zip_longest,
    itertools.product: product,
    itertools.combinations: combinations,
    itertools.combinations_with_replacement: combinations_with_replacement,
    itertools.permutations: permutations,
    itertools.groupby: groupby,
}
"""By Python's own functions."""
