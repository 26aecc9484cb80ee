"""Objects that the code comes by on ways that a capture does not follow: nothing written to them is lost, or stays."""

from __future__ import annotations

import collections
import functools
import gc
import logging
import math
import operator
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import benchmark

import stillgraph as sg
from tests.front_ends import bytecode  # noqa: F401  # a fixture
from tests.sampling import few

Case = tuple[Callable[[Any], Any], Callable[[], Any]]
"""What is done with a number of the run, and the state that it leaves."""


class Kept:
    pass


def _timer(log: Any) -> Any:
    """An object of torch's own; what holds it is no way that a capture follows."""
    timer = benchmark.Timer("1")
    timer.log = log  # type: ignore[attr-defined]
    held = functools.partial(print)
    held.timer = timer  # type: ignore[attr-defined]
    return held


def _followed(log: Any) -> Any:
    return _timer(log).timer


def appended() -> Case:
    timer = _timer([])
    return lambda v: timer.timer.log.append(v), lambda: timer.timer.log


def nested() -> Case:
    timer = _timer({"a": [[]]})
    return lambda v: timer.timer.log["a"][0].append(v), lambda: timer.timer.log


def of_a_user() -> Case:
    timer = _timer(Kept())
    timer.timer.log.total = [0.0]

    def act(v: Any) -> None:
        timer.timer.log.total[0] += v
        timer.timer.log.last = v

    return act, lambda: vars(timer.timer.log)


def empty_dict() -> Case:
    """Which Python's garbage collector does not know."""
    timer = _timer({})
    return lambda v: timer.timer.log.update(a=v), lambda: timer.timer.log


def stored_in_empty_dict() -> Case:
    timer = _timer({})

    def act(v: Any) -> None:
        timer.timer.log["a"] = v

    return act, lambda: timer.timer.log


def deque() -> Case:
    timer = _timer(collections.deque(maxlen=2))
    return lambda v: timer.timer.log.append(v), lambda: list(timer.timer.log)


def of_a_partial() -> Case:
    partial = functools.partial(print)
    partial.log = []  # type: ignore[attr-defined]
    return lambda v: partial.log.append(v), lambda: partial.log  # type: ignore[attr-defined]


def of_a_logger() -> Case:
    logger = logging.getLogger("stillgraph.tests.elsewhere")
    logger.log2 = []  # type: ignore[attr-defined]
    return lambda v: logger.log2.append(v), lambda: logger.log2  # type: ignore[attr-defined]


def of_the_thread() -> Case:
    threading.current_thread().kept = []  # type: ignore[attr-defined]
    return lambda v: threading.current_thread().kept.append(v), lambda: threading.current_thread().kept  # type: ignore


def of_a_module_of_pythons() -> Case:
    math.kept = []  # type: ignore[attr-defined]
    return lambda v: math.kept.append(v), lambda: math.kept  # type: ignore[attr-defined]


def of_a_class_of_torchs() -> Case:
    torch.nn.Linear.kept = []  # type: ignore[attr-defined]
    return lambda v: torch.nn.Linear.kept.append(v), lambda: torch.nn.Linear.kept  # type: ignore[operator,union-attr]


def number_of_torchs() -> Case:
    timer = _followed(0.0)

    def act(v: Any) -> None:
        timer.log = timer.log + v

    return act, lambda: timer.log


def in_globals() -> Case:
    globals()["_kept"] = 0.0
    return lambda v: globals().update(_kept=v), lambda: globals()["_kept"]


FOREIGN = (
    *(appended, nested, of_a_user, empty_dict, stored_in_empty_dict, deque, of_a_partial, of_the_thread),
    *(of_a_module_of_pythons, of_a_class_of_torchs, number_of_torchs, in_globals),
)


def attribute_of_torchs() -> Case:
    timer = _followed([])
    return lambda v: timer.log.append(v), lambda: timer.log


def state_of_torchs() -> Case:
    timer = _followed(Kept())
    timer.log.total = {"a": [0.0]}

    def act(v: Any) -> None:
        timer.log.total["a"][0] += v
        timer.log.total["b"] = timer.log.last = v

    return act, lambda: vars(timer.log)


def attributes() -> Case:
    kept = Kept()

    def act(v: Any) -> None:
        vars(kept)["a"] = v
        kept.__dict__.update(b=v)

    return act, lambda: vars(kept)


def attributes_of_a_function() -> Case:
    def kept() -> None: ...

    def act(v: Any) -> None:
        kept.__dict__["a"] = v

    return act, lambda: vars(kept)


def attribute_of_a_class() -> Case:
    class Own:
        pass

    return lambda v: type.__setattr__(Own, "last", v), lambda: getattr(Own, "last", None)


def namespace() -> Case:
    kept = types.SimpleNamespace(log=[], total=0.0)

    def act(v: Any) -> None:
        kept.log.append(v)
        kept.total += v

    return act, lambda: (kept.log, kept.total)


def of_this_thread_alone() -> Case:
    kept = threading.local()
    kept.log = []
    return lambda v: kept.log.append(v), lambda: kept.log


def by_an_operator() -> Case:
    kept: list[Any] = [0.0]

    def act(v: Any) -> None:
        operator.setitem(kept, 0, v)
        operator.iadd(kept, [v])

    return act, lambda: kept


FOLLOWED = (
    *(attribute_of_torchs, state_of_torchs, of_a_logger),
    *(attributes, attributes_of_a_function, attribute_of_a_class, namespace, of_this_thread_alone, by_an_operator),
)


def _function(act: Callable[[Any], Any]) -> Any:
    def function(x: Any) -> Any:
        act((x * 2).sum().item())
        return x + 1

    return function


def _states(make: Callable[[], Case], compiled: Callable[[Any], Any]) -> list[str]:
    act, state = make()
    function, found = compiled(_function(act)), []
    for number in (1.0, 2.0, 5.0):
        assert torch.equal(function(torch.ones(3) * number), torch.ones(3) * number + 1)
        found.append(repr(state()))
    return found


@pytest.mark.parametrize("make", FOREIGN)
@pytest.mark.parametrize("front_end", ["source", "bytecode"])
def test_one_program_is_refused(make: Callable[[], Case], front_end: str, request: pytest.FixtureRequest) -> None:
    if front_end == "bytecode":
        request.getfixturevalue("bytecode")
    act, state = make()
    before = repr(state())
    with pytest.raises(sg.CaptureError, match="was there before the call, and which the capture does not look"):
        sg.to_static(_function(act), backend="eager")(torch.ones(3))
    assert repr(state()) == before


SLOW = (in_globals,)  # it goes through all that pytest keeps in a module


@pytest.mark.parametrize("make", few([*FOREIGN, *FOLLOWED], slow=SLOW))
def test_python_does_it(make: Callable[[], Case]) -> None:
    partial = functools.partial(sg.to_static, full_graph=False, strict=True, backend="eager")
    assert _states(make, partial) == _states(make, lambda function: function)


@pytest.mark.parametrize("make", few(FOREIGN, slow=SLOW))
def test_python_does_it_where_the_collector_passes_by_what_was_there(make: Callable[[], Case]) -> None:
    def frozen(function: Any) -> Any:
        gc.freeze()
        return sg.to_static(function, full_graph=False, strict=True, backend="eager")

    try:
        assert _states(make, frozen) == _states(make, lambda function: function)
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("make", FOLLOWED)
@pytest.mark.parametrize("front_end", ["source", "bytecode"])
def test_a_program_does_it(make: Callable[[], Case], front_end: str, request: pytest.FixtureRequest) -> None:
    if front_end == "bytecode":
        request.getfixturevalue("bytecode")
    assert _states(make, functools.partial(sg.to_static, backend="eager")) == _states(make, lambda function: function)


def test_what_is_returned_is_no_copy() -> None:
    timer, kept = _timer([1.0]), Kept()

    def function(x: Any) -> Any:
        return x + 1, timer.timer.log

    with pytest.raises(sg.CaptureError, match="a list is returned that was there before the call"):
        sg.to_static(function, backend="eager")(torch.ones(3))
    assert sg.to_static(function, full_graph=False, strict=True, backend="eager")(torch.ones(3))[1] is timer.timer.log
    assert sg.to_static(lambda x: (x + 1, vars(kept)), backend="eager")(torch.ones(3))[1] is vars(kept)


def test_only_reading_is_not_refused() -> None:
    timer = _timer([3.0, 1.0])
    static = sg.to_static(lambda x: x + min(timer.timer.log) + len(timer.timer.log), backend="eager")
    assert torch.equal(static(torch.ones(3)), torch.full((3,), 4.0))
    assert timer.timer.log == [3.0, 1.0]


def test_what_is_read_of_torchs_is_guarded() -> None:
    timer = _followed(2.0)
    timer.table = {"a": [1.0]}
    static = sg.to_static(lambda x: x * timer.log + timer.table["a"][0], backend="eager")
    assert torch.equal(static(torch.ones(3)), torch.full((3,), 3.0))
    timer.log = 3.0
    assert torch.equal(static(torch.ones(3)), torch.full((3,), 4.0))
    timer.table["a"][0] = 5.0
    assert torch.equal(static(torch.ones(3)), torch.full((3,), 8.0))


@functools.lru_cache
def _remembered(number: int) -> list[float]:
    return [float(number)]


@pytest.mark.parametrize("full", [True, False])
def test_what_a_cached_function_gives_is_changed_by_each_call(full: bool) -> None:
    def function(x: Any) -> Any:
        kept = _remembered(2)
        kept.append(x.sum().item())
        return x + kept[-1], len(kept)

    _remembered.cache_clear()
    static = sg.to_static(function, backend="eager", full_graph=full)
    assert [static(torch.ones(3) * number)[1] for number in range(3)] == [2, 3, 4]
    assert _remembered(2) == [2.0, 0.0, 3.0, 6.0]
