"""Attributes of classes that a call assigns on one path only, and those that a class gets after a capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

WAYS = pytest.mark.parametrize("full_graph", [True, False])


# ---- assigned on one path, and read by nobody: the other path leaves what is there
class Kept:
    last: Any = None
    other: Any = 0


class Meta(type):
    mark: Any = 0


class Marked(metaclass=Meta):
    pass


class Seeing(nn.Module):
    last: Any = None

    def forward(self, x: Tensor) -> Tensor:
        if x > 0:
            self.__class__.last = x
        return x + 1


class Putting:
    last: Any = 0

    @classmethod
    def put(cls, x: Tensor) -> None:
        if x > 0:
            cls.last = "positive"


seeing = Seeing()


def in_an_arm(x: Tensor) -> Tensor:
    if x > 0:
        Kept.last = x
    return x


def a_number(x: Tensor) -> Tensor:
    if x > 0:
        Kept.last = 3
    elif x < -3:
        Kept.other = 2
    return x


def in_a_loop(x: Tensor) -> Tensor:
    while x > 0:
        Kept.last = x
        x = x - 1
    return x


def in_a_handler(x: Tensor) -> Tensor:
    try:
        if x > 0:
            raise ValueError("positive")
    except ValueError as error:
        Kept.last = str(error)
    return x


def of_a_metaclass(x: Tensor) -> Tensor:
    if x > 0:
        Meta.mark = x
    return x


def by_a_module(x: Tensor) -> Any:
    return seeing(x)


def by_a_classmethod(x: Tensor) -> Tensor:
    Putting.put(x)
    return x


ASSIGNING = [in_an_arm, a_number, in_a_loop, in_a_handler, of_a_metaclass, by_a_module, by_a_classmethod]


def _state() -> list[Any]:
    values = [Kept.last, Kept.other, Meta.mark, Seeing.last, Putting.last]
    return [value.item() if isinstance(value, Tensor) else value for value in values]


def _set(value: Any) -> None:
    Kept.last = Kept.other = Meta.mark = Seeing.last = Putting.last = value


def _states(function: Callable[[Tensor], Any]) -> list[list[Any]]:
    found = []
    for first in (None, 7, "text", torch.tensor(42.0)):
        _set(first)
        for value in (1.0, -1.0, -5.0, 2.0, -1.0):
            function(torch.tensor(value))
            found.append(_state())
    return found


@WAYS
@pytest.mark.parametrize("function", ASSIGNING, ids=lambda function: function.__name__)
def test_the_other_path_leaves_what_is_there(function: Callable[[Tensor], Any], full_graph: bool) -> None:
    static: Any = sg.to_static(function, backend="eager", full_graph=full_graph, cache_size=16)
    assert _states(static) == _states(function)


# ---- what a class gets later is found before what answered until then
def _answered() -> tuple[Any, Any]:
    class Answering:
        def __getattr__(self, name: str) -> float:
            return 2.0

    return Answering(), Answering


def _delegated() -> tuple[Any, Any]:
    class Inner:
        scale = 2.0

    class Outer:
        def __init__(self) -> None:
            self.inner = Inner()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    return Outer(), Outer


def _of_a_base() -> tuple[Any, Any]:
    class Base:
        pass

    class Answering(Base):
        def __getattr__(self, name: str) -> float:
            return 2.0

    return Answering(), Base


def _a_dictionary() -> tuple[Any, Any]:
    class Config(dict):  # type: ignore[type-arg]  # as people write it
        def __getattr__(self, name: str) -> Any:
            return self[name]

    return Config(scale=2.0), Config


def _of_a_metaclass() -> tuple[Any, Any]:
    class Answering(type):
        def __getattr__(cls, name: str) -> float:
            return 2.0

    class Made(metaclass=Answering):
        pass

    return Made, Answering


@WAYS
@pytest.mark.parametrize("make", [_answered, _delegated, _of_a_base, _a_dictionary, _of_a_metaclass])
def test_an_attribute_hides_what_a_method_answers(make: Callable[[], tuple[Any, Any]], full_graph: bool) -> None:
    asked, changed = make()
    static: Any = sg.to_static(lambda x, c: x * c.scale, backend="eager", full_graph=full_graph)
    found = [static(torch.tensor(1.0), asked).item()]
    for value in (3.0, 4.0):
        changed.scale = value
        found.append(static(torch.tensor(1.0), asked).item())
    assert found == [2.0, 3.0, 4.0]


@WAYS
def test_a_method_hides_that_of_a_builtin_class(full_graph: bool) -> None:
    class Table(dict):  # type: ignore[type-arg]  # as people write it
        pass

    static: Any = sg.to_static(lambda x, d: x * d.get("k", 1.0), backend="eager", full_graph=full_graph)
    assert static(torch.tensor(1.0), Table()) == 1
    Table.get = lambda self, key, default: 70.0  # type: ignore[method-assign, assignment]  # it is what is tested
    assert static(torch.tensor(1.0), Table()) == 70
