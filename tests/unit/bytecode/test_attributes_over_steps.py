"""What carries attributes is another object in each call, and the dict of an object stays that object's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph import CaptureError
from tests.sampling import few
from tests.unit.bytecode.segmented import CALLS, agrees, reasons


class Box:
    pass


class Stored:
    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value


# ---- functions, and the like
def on_a_function(x: Tensor) -> Any:
    def inner() -> None:
        pass

    if x.sum() > 0:
        inner.a = 1  # type: ignore[attr-defined]  # any function takes one
    return getattr(inner, "a", 0)


def counted_on_a_function(x: Tensor) -> Any:
    def inner() -> None:
        pass

    print("a step")
    inner.count = getattr(inner, "count", 0) + 1  # type: ignore[attr-defined]  # as above
    return inner.count  # type: ignore[attr-defined]  # as above


def defaults(x: Tensor) -> Any:
    def inner(a: int = 1) -> int:
        return a

    print("a step")
    if x.sum() > 0:
        inner.__defaults__ = (2,)
    return inner()


def on_a_partial(x: Tensor) -> Any:
    inner: Any = functools.partial(int)
    if x.sum() > 0:
        inner.z = 1
    return getattr(inner, "z", 0)


def on_a_static_method(x: Tensor) -> Any:
    inner: Any = staticmethod(len)
    print("a step")
    if x.sum() > 0:
        inner.a = 1
    return getattr(inner, "a", 0)


# ---- through the dict of an object
def past_a_set_attribute(x: Tensor) -> Any:
    stored: Any = Stored()
    stored.a = 0
    print("a step")
    if x.sum() > 0:
        stored.a = 1
    return stored.a


def past_a_set_attribute_in_a_loop(x: Tensor) -> Any:
    stored: Any = Stored()
    stored.a = 0
    x = x / 4
    print("a step")
    while x.sum() < 0:
        stored.a = stored.a + 1
        x = x + 1
    return stored.a


def in_the_dict(x: Tensor) -> Any:
    box: Any = Box()
    box.a = 0
    print("a step")
    if x.sum() > 0:
        box.__dict__["a"] = 1
    return box.a


# ---- that dict itself, held over a step
def held(x: Tensor) -> Any:
    box: Any = Box()
    attributes = box.__dict__
    print("a step")
    attributes["q"] = 4
    return box.__dict__


def asked_by_vars(x: Tensor) -> Any:
    box: Any = Box()
    attributes = vars(box)
    x = x + 1
    print("a step")
    box.a = x
    return dict(attributes)


def is_the_same(x: Tensor) -> Any:
    box: Any = Box()
    attributes = box.__dict__
    attributes["q"] = 4
    print("a step")
    attributes["r"] = 5
    box.s = 1
    return attributes is box.__dict__, [*attributes]


def in_a_list(x: Tensor) -> Any:
    box: Any = Box()
    found = [box.__dict__]
    print("a step")
    found[0]["k"] = 1
    return box.k


def of_an_object_that_is_gone(x: Tensor) -> Any:
    attributes = Box().__dict__
    print("a step")
    attributes["k"] = 1
    return attributes


# ---- what has a cache
def counts(x: Tensor) -> Any:
    @functools.lru_cache
    def inner(a: int) -> int:
        return a + 1

    if x.sum() > 0:
        inner(1)
    return inner.cache_info().currsize


def counts_behind_a_step(x: Tensor) -> Any:
    @functools.lru_cache
    def inner(a: int) -> int:
        return a + 1

    print("a step")
    if x.sum() > 0:
        inner(1)
    inner(1)
    print("another")
    return inner.cache_info().hits


FUNCTIONS = [
    *(on_a_function, counted_on_a_function, defaults, on_a_partial, on_a_static_method, past_a_set_attribute),
    *(past_a_set_attribute_in_a_loop, in_the_dict, held, asked_by_vars, is_the_same, in_a_list),
    *(of_an_object_that_is_gone, counts, counts_behind_a_step),
]


@pytest.mark.parametrize("function", few(FUNCTIONS, slow=(on_a_partial, past_a_set_attribute_in_a_loop, in_the_dict)))
def test_as_eager(function: Callable[..., Any]) -> None:
    agrees(lambda record: function, *CALLS, times=5, settled=4)
    agrees(lambda record: function, *reversed(CALLS), times=5, settled=4)


def test_functions_without_attributes_are_known_to_programs() -> None:
    def called(x: Tensor) -> Tensor:
        inner = functools.partial(lambda a, b: a + b, 2)
        print("a step")
        return torch.as_tensor(inner(x))

    static = agrees(lambda record: called, *CALLS)
    assert reasons(static) == {"print does something outside the program"}


def test_no_program_counts() -> None:
    with pytest.raises(CaptureError, match="asked for its counts"):
        sg.to_static(counts, backend="eager")(torch.ones(2))
