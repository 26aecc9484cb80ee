"""Libraries that take all of an object's attributes at once: a program depends on those of this object alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.importing import installed
from tests.unit.bytecode.segmented import X, held, to_partial

LIBRARY = """
    def plain(target, name):
        return target.__dict__[name]

    def computed(target, name):
        return getattr(target, "__di" + "ct__")[name]

    def by_getattr(target, name):
        return getattr(target, "__dict__")[name]

    def by_vars(target, name):
        return vars(target)[name]

    def inside(target, name):
        return [each for key, each in target.__dict__.items() if key == name][0]

    def in_a_function(target, name):
        def found():
            return target.__dict__[name]
        return found()

    def handed_on(target, name):
        return list(map(lambda each: each.__dict__[name], [target]))[0]

    class Own:
        def __init__(self, x):
            self.known = "n" in self.__dict__
            self.n = 1 if x.sum() > 0 else 2
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return installed(tmp_path, "takes_attributes_of_stillgraph_tests", LIBRARY, monkeypatch)


class Holder:
    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.state = np.zeros(2)


def observed(function: Callable[..., Any]) -> list[Any]:
    holder, found = Holder(1.0), []
    for rate in (1.0, 2.0, 2.0, "text", 3.0):
        holder.rate = rate
        try:
            value = function(holder, X)
        except TypeError as error:
            value = type(error)
        found.append(value.tolist() if isinstance(value, torch.Tensor) else value)
    return found


@pytest.mark.parametrize("name", ["plain", "computed", "by_getattr", "by_vars", "inside", "in_a_function", "handed_on"])
def test_what_is_read_there_is_guarded(library: ModuleType, name: str) -> None:
    take = getattr(library, name)

    def f(holder: Any, x: Any) -> Any:
        print(end="")
        return x * take(holder, "rate")

    assert observed(to_partial(f)) == observed(f)


def test_other_objects_are_not(library: ModuleType) -> None:
    def f(holder: Any, x: Any) -> Any:
        made = library.Own(x)
        print(end="")
        return x * made.n * holder.rate

    static = to_partial(f)
    for number in range(6):
        x, holder = -X if number % 2 else X, Holder(number)
        torch.testing.assert_close(static(holder, x), f(holder, x))
    assert held(static).plan.entry.cache_info().programs == 1
