"""Which objects a capture has made, whatever code made them: asked of Python's garbage collector.

An object is made in its youngest generation and grows older with each collection that it survives. So what is young,
and was not yet there when the capture began, is the capture's; what grows old meanwhile is taken down on the way.
What is made while another thread is about to collect, after it has taken that down, may be missed.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import itertools
import operator
import sys
from collections.abc import Callable, Iterator
from types import CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any

from stillgraph.core.tracebacks import chain_of, let_go
from stillgraph.trace.code.frames import stack

_YOUNG = (0, 1)  # the third generation is the last
_LEFT_ALONE = frozenset({tuple, frozenset, FrameType, GeneratorType, CoroutineType, CodeType})
"""Nobody writes to these."""


class Births:
    """Tells what was made in the body of `watched` from what was there before."""

    def __init__(self) -> None:
        self._before: list[Any] = []  # the young ones at the beginning: kept, so that no other gets the id of one
        self._ids: frozenset[int] = frozenset()  # of these
        self._grown: set[int] = set()  # made by the capture, and not young any more, or gone
        self._raised: list[BaseException] = []  # exceptions of the capture's that are not young any more

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """What is made from here on is new."""
        with _young() as young:
            self._before = [each for each in young if type(each) not in _LEFT_ALONE]
        self._ids = frozenset(map(id, self._before))
        callback = self._collecting
        gc.callbacks.append(callback)
        try:
            yield
        finally:
            gc.callbacks.remove(callback)
            self._let_go_of_exceptions(sys.exc_info()[1])
            self._before = []
            self._ids = frozenset()
            self._grown.clear()

    def _collecting(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] >= _YOUNG[-1]:
            self._grown |= _young_ids()
            with _young() as young:
                self._raised += self._exceptions_among(young)
            self._grown -= self._ids

    def _exceptions_among(self, young: list[Any]) -> list[BaseException]:
        kinds = list(map(type, young))
        by_id = dict(zip(map(id, kinds), kinds))  # which asks no metaclass whether two are equal
        raised = {number for number, kind in by_id.items() if issubclass(kind, BaseException)}
        return [each for each in young if id(type(each)) in raised and id(each) not in self._ids] if raised else []

    def _let_go_of_exceptions(self, passing: BaseException | None) -> None:
        """Empty the frames of all exceptions that were caught on the way: frames that lead to them, they lead to."""
        running = set(map(id, stack(sys._getframe(1))))
        leaving = set() if passing is None else {id(each) for each in chain_of(passing)}
        with _young() as young:
            caught = [each for each in (*self._raised, *self._exceptions_among(young)) if id(each) not in leaving]
        self._raised = []
        for each in caught:
            trace = each.__traceback__
            if trace is not None and any(id(frame) in running for frame in stack(trace.tb_frame)):
                let_go(each, of_all=True)  # no other thread's
        caught.clear()

    def is_new(self, value: Any) -> bool | None:
        """Whether an object was made since; None for one that the collector does not know."""
        if not gc.is_tracked(value):
            return None
        if id(value) in self._ids:
            return False
        if id(value) in self._grown:
            return True
        is_it, answers = functools.partial(operator.is_, value), list[bool]()
        _ask_of_young(lambda young: map(answers.append, map(any, (map(is_it, young),))))
        if any(answers):  # most are asked about early
            return True
        return id(value) in self._grown  # a collection may have come in between

    def new_ones(self, values: list[Any]) -> set[int]:
        """The ids of those of many objects that were made since, of which the collector knows all."""
        new = self._grown | (_young_ids() - self._ids)
        return new.intersection(map(id, values))


@contextlib.contextmanager
def without_full_collections() -> Iterator[None]:
    """In the body, Python's collector leaves old objects alone.

    A capture, and the making of a file, make so many objects that the collector would walk through all of the process
    every few seconds. What is garbage meanwhile is found later.
    """
    young, middle, old = before = gc.get_threshold()
    if old >= _NEVER:  # another capture is going on around this one, or in another thread
        yield
        return
    gc.set_threshold(young, middle, _NEVER)
    try:
        yield
    finally:
        if gc.get_threshold() == (young, middle, _NEVER):
            gc.set_threshold(*before)


_NEVER = 2**30


@contextlib.contextmanager
def _young() -> Iterator[list[Any]]:
    """All young objects but tuples; the list is empty behind the body, for it may be in a cycle."""
    is_other, found = functools.partial(operator.is_not, tuple), list[Any]()
    _ask_of_young(lambda young: map(found.extend, (itertools.compress(young, map(is_other, map(type, young))),)))
    try:
        yield found
    finally:
        found.clear()


def _young_ids() -> set[int]:
    """The ids of all young objects, tuples too."""
    found = set[int]()
    _ask_of_young(lambda young: map(found.add, map(id, young)))
    return found


def _ask_of_young(question: Callable[[list[Any]], Iterator[Any]]) -> None:
    """Let C ask something of the young objects, the latest first, of each of the two generations.

    Python cannot go on to fill a tuple that somebody else holds, and another thread may be about to. So they are held
    in the midst of one call of C's alone, which makes nothing that the collector would know, and so calls no function
    of Python's: no other thread runs there. It may where a hook for audits is told that the next objects are asked
    for, and then none are held.

    Args:
        question: what asks, an iterator of C's, for a list that is filled later.
    """
    steps = itertools.chain.from_iterable([_steps(question, generation) for generation in _YOUNG])
    collections.deque(steps, maxlen=0)


def _steps(question: Callable[[list[Any]], Iterator[Any]], generation: int) -> Iterator[Any]:
    """The steps in which a generation is asked."""
    young: list[Any] = []
    fill = map(young.extend, map(gc.get_objects, (generation,)))
    return itertools.chain(fill, map(list.reverse, (young,)), question(young), map(list.clear, (young,)))
