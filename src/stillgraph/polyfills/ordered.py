"""``heapq`` and ``bisect``, as Python's own code in C does it: the same comparisons, in the same order."""

from __future__ import annotations

import bisect
import functools
import heapq
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree


# ---- heapq
def heappush(heap: Any, item: Any, /) -> None:
    """``heapq.heappush``."""
    heap.append(item)
    _rise(heap, 0, len(heap) - 1, _is_less)


def heappop(heap: Any, /) -> Any:
    """``heapq.heappop``."""
    return _popped(heap, _is_less)


def heapreplace(heap: Any, item: Any, /) -> Any:
    """``heapq.heapreplace``."""
    return _replaced(heap, item, _is_less)


def heappushpop(heap: Any, item: Any, /) -> Any:
    """``heapq.heappushpop``."""
    if len(heap) == 0:
        return item
    least = heap[0]
    if not least < item:
        return item
    heap[0] = item
    _sink(heap, 0, _is_less)
    return least


def heapify(heap: Any, /) -> None:
    """``heapq.heapify``."""
    _heaped(heap, _is_less)


def nsmallest(n: Any, iterable: Any, key: Any = None) -> Any:
    """``heapq.nsmallest``."""
    return _best(n, iterable, key, False)


def nlargest(n: Any, iterable: Any, key: Any = None) -> Any:
    """``heapq.nlargest``."""
    return _best(n, iterable, key, True)


def merge(*parts: Any, key: Any = None, reverse: Any = False) -> Any:
    """``heapq.merge`` of lists and tuples: by a heap of the next element of each, and of how far each is."""
    step, is_before = (-1, _is_more) if reverse else (1, _is_less)
    heap: Any = []
    for which, part in enumerate(parts):
        if len(part) > 0:
            heap.append((part[0] if key is None else key(part[0]), which * step, 0, part[0]))
    _heaped(heap, is_before)
    while len(heap) > 0:
        _, order, place, value = heap[0]
        yield value
        for which, part in enumerate(parts):
            if len(part) == 0 or order != which * step:
                continue
            if place + 1 < len(part):
                following = part[place + 1]
                rank = following if key is None else key(following)
                _replaced(heap, (rank, order, place + 1, following), is_before)
            else:
                _popped(heap, is_before)


def _best(n: Any, iterable: Any, key: Any, largest: Any) -> Any:
    """The best of some elements, in order: by a heap of as many, in which the worst of them is in front."""
    if hasattr(iterable, "__len__") and n >= len(iterable):
        return sorted(iterable, key=key, reverse=largest)[:n]
    if n <= 0:
        return []
    step, is_before = (-1, _is_less) if largest else (1, _is_more)
    kept: Any = []
    place = 0
    for element in iterable:
        value = element if key is None else key(element)
        if len(kept) < n:
            kept.append((value, place, element))
            place = place + step
            if len(kept) == n:
                _heaped(kept, is_before)
        elif is_before(kept[0][0], value):
            _replaced(kept, (value, place, element), is_before)
            place = place + step
    if len(kept) < n:
        _heaped(kept, is_before)
    kept.sort(key=_rank, reverse=largest)
    return [element for _, _, element in kept]


def _rank(entry: Any) -> Any:
    return entry[0], entry[1]


def _is_less(left: Any, right: Any) -> Any:
    """``left < right`` as a truth value, which a comparison of tuples of tensors does not give."""
    if type(left) is tuple and any(isinstance(each, torch.Tensor) for each in pytree.tree_leaves(left)):
        return sorted([0, 1], key=lambda side: (right, left)[side])[0] == 1
    return left < right


def _is_more(left: Any, right: Any) -> Any:
    return _is_less(right, left)


def _popped(heap: Any, is_before: Any) -> Any:
    if len(heap) == 0:
        raise IndexError("index out of range")
    last = heap.pop()
    if len(heap) == 0:
        return last
    return _replaced(heap, last, is_before)


def _replaced(heap: Any, item: Any, is_before: Any) -> Any:
    if len(heap) == 0:
        raise IndexError("index out of range")
    first = heap[0]
    heap[0] = item
    _sink(heap, 0, is_before)
    return first


def _heaped(heap: Any, is_before: Any) -> None:
    for place in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, place, is_before)


def _rise(heap: Any, start: Any, place: Any, is_before: Any) -> None:
    """Exchange an element with the one above while it is before that."""
    while place > start:
        above = (place - 1) >> 1
        if not is_before(heap[place], heap[above]):
            break
        heap[place], heap[above] = heap[above], heap[place]
        place = above


def _sink(heap: Any, place: Any, is_before: Any) -> None:
    """Exchange an element with the first of the two below it, down to the end, and let it rise from there."""
    start, limit = place, len(heap) // 2
    while place < limit:
        below = 2 * place + 1
        if below + 1 < len(heap):  # noqa: SIM102 -- an arm in an arm
            if not is_before(heap[below], heap[below + 1]):
                below = below + 1
        heap[place], heap[below] = heap[below], heap[place]
        place = below
    _rise(heap, start, place, is_before)


# ---- bisect
def bisect_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    """``bisect.bisect_left``."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


def bisect_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
    """``bisect.bisect_right``."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            hi = middle
        else:
            lo = middle + 1
    return lo


def insort_left(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    """``bisect.insort_left``."""
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_right(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
    """``bisect.insort_right``."""
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


# ---- sorted
def order_of(keys: Any, reverse: Any) -> Any:
    """The places of objects in the order of ``sorted``: as Python 3.12 does it for up to 64 of them.

    Where the objects are in no one order (some are NaN, say), Python's order of more of them may be another one.

    Args:
        keys: objects whose class says which is less.
        reverse: whether the greatest comes first. Equal ones stay in their order.
    """
    last = len(keys) - 1
    places: Any = list(range(last, -1, -1) if reverse else range(last + 1))
    made: Any = []
    done = _run_in_front(keys, places)
    for index in range(done):
        made.append(places[index])
    for index in range(done, len(places)):
        insort_right(made, places[index], key=lambda place: keys[place])
    if reverse:
        made.reverse()
    return made


def _run_in_front(keys: Any, places: Any) -> Any:
    """How many of the first keys are in order; if each is less than the one before, they are turned round first."""
    if len(places) < 2:
        return len(places)
    count = 2
    if keys[places[1]] < keys[places[0]]:
        while count < len(places) and keys[places[count]] < keys[places[count - 1]]:
            count = count + 1
        places[:count] = places[:count][::-1]
        return count
    while count < len(places) and not keys[places[count]] < keys[places[count - 1]]:
        count = count + 1
    return count


def cmp_to_key(mycmp: Any) -> Any:
    """``functools.cmp_to_key``."""

    class Compared:
        __module__ = mycmp.__module__  # the capture takes apart what is the user's

        def __init__(self, obj: Any) -> None:
            self.obj = obj

        def __lt__(self, other: Any) -> Any:
            return mycmp(self.obj, other.obj) < 0

        def __le__(self, other: Any) -> Any:
            return mycmp(self.obj, other.obj) <= 0

        def __gt__(self, other: Any) -> Any:
            return mycmp(self.obj, other.obj) > 0

        def __ge__(self, other: Any) -> Any:
            return mycmp(self.obj, other.obj) >= 0

        def __eq__(self, other: Any) -> Any:
            return mycmp(self.obj, other.obj) == 0

        __hash__ = None  # type: ignore[assignment]  # as Python's own

    return Compared


POLYFILLS: dict[Any, Callable[..., Any]] = {
    heapq.heappush: heappush,
    heapq.heappop: heappop,
    heapq.heapreplace: heapreplace,
    heapq.heappushpop: heappushpop,
    heapq.heapify: heapify,
    heapq.nsmallest: nsmallest,
    heapq.nlargest: nlargest,
    bisect.bisect_left: bisect_left,
    bisect.bisect_right: bisect_right,
    bisect.insort_left: insort_left,
    bisect.insort_right: insort_right,
    functools.cmp_to_key: cmp_to_key,
}
"""By Python's own functions."""
