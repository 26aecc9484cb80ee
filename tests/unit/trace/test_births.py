"""Which objects are a capture's own."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.trace.heap.births import Births


class Plain:
    pass


def test_what_was_there_is_not_new() -> None:
    births, old, young = Births(), [[]], Plain()
    gc.collect()
    last: Any = []
    with births.watched():
        assert [births.is_new(each) for each in (old, old[0], young, last)] == [False] * 4
        assert [births.is_new(each) for each in ([], {1: []}, {2}, Plain())] == [True] * 4


@pytest.mark.parametrize("generation", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_new_ones_stay_new_as_they_grow_old(generation: int) -> None:
    births, old = Births(), [Plain()]
    with births.watched():
        new: list[Any] = [[], Plain()]
        for _ in range(3):
            gc.collect(generation)
        assert [births.is_new(each) for each in (new, *new, old, *old)] == [True, True, True, False, False]
        assert births.new_ones([new, old]) == {id(new)}


@pytest.fixture
def eager_collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    gc.set_threshold(3, 2, 2)
    yield
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("eager_collector")
def test_new_ones_stay_new_where_the_question_itself_makes_them_old() -> None:
    births = Births()
    with births.watched():
        for _ in range(200):
            assert births.is_new(Plain())
            new = Plain()
            assert births.new_ones([new]) == {id(new)}


def test_what_the_collector_does_not_know() -> None:
    births = Births()
    with births.watched():
        assert births.is_new(object()) is None


def test_nothing_is_left() -> None:
    before, births = list(gc.callbacks), Births()
    with births.watched():
        assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before


def test_a_tuple_that_is_being_made_is_not_held() -> None:
    """Python cannot make it longer then."""
    births = Births()

    def elements() -> Any:
        with births.watched():
            for number in range(100):
                assert births.is_new([])
                assert births.new_ones([births]) == set()
                yield number

    assert tuple(elements()) == tuple(range(100))


def test_tuples_that_other_threads_are_making_are_not_held() -> None:
    """Nor while a hook of Python's is told that the collector is asked, or functions of Python's of a collection.

    In a process of its own: other tests leave behind what may hold such tuples too.
    """
    script = "from tests.unit.trace.test_births import made_beside; assert not made_beside()"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def made_beside() -> list[SystemError]:
    """Ask for births where another thread makes tuples of generators; what it raises."""
    sg.to_static(lambda x: x + 1, backend="eager")(torch.ones(2))  # which adds a hook for audits, for good
    gc.callbacks.append(lambda phase, info: sum(range(10)))
    sys.setswitchinterval(1e-6)
    young = [[] for _ in range(3000)]  # so that to look through the young objects takes some time
    ended, failed = threading.Event(), []

    def make() -> None:
        while not ended.is_set():
            try:
                tuple(grown_old())
            except SystemError as error:
                failed.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    for _ in range(100):
        births = Births()
        with births.watched():
            new: list[Any] = []
            births.is_new(new)  # what a collection of the other thread's makes old just then is not known
            assert births.is_new(ended) is False
            assert id(ended) not in births.new_ones([new, ended])
    ended.set()
    thread.join()
    assert len(young) == 3000
    return failed


def grown_old() -> Iterator[int]:
    """Numbers in the midst of which the tuple that takes them comes to the second generation."""
    for number in range(100):
        if number == 20:
            gc.collect(0)
        yield number
