"""Tensors of a class of their own: the class is that of the argument, and goes on to what is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg


class Image(torch.Tensor):
    pass


def asked(x: Any) -> Any:
    return x * 2 if isinstance(x, Image) else x * 10


def named(x: Any) -> Any:
    return type(x).__name__, x.__class__ is Image, type(x) is torch.Tensor, isinstance(x, torch.Tensor), x + 1


def computed(x: Any) -> Any:
    y = x * 2
    return isinstance(y, torch.Tensor), isinstance(y, (int, float)), y


def computed_and_asked(x: Any) -> Any:
    y = x * 2
    return isinstance(y, Image), y


def computed_and_named(x: Any) -> Any:
    y = x * 2
    return type(y).__name__, y


def plain(x: Any) -> Any:
    return x.as_subclass(torch.Tensor)


def of_a_class(x: Any) -> Any:
    return (x * 2).as_subclass(Image)


MAKE: tuple[Callable[[], Any], ...] = (
    lambda: torch.ones(2).as_subclass(Image),
    lambda: torch.ones(2),
    lambda: torch.nn.Parameter(torch.ones(2)),
    lambda: torch.ones(2).as_subclass(Image),
)
ANSWERED = [asked, named, computed]
REFUSED = [computed_and_asked, computed_and_named, plain, of_a_class]


def _check(static: Any, function: Any) -> None:
    for make in MAKE:
        actual, expected = static(make()), function(make())
        if not isinstance(expected, tuple):
            actual, expected = (actual,), (expected,)
        assert actual[:-1] == expected[:-1]
        assert type(actual[-1]) is type(expected[-1])
        assert torch.equal(actual[-1], expected[-1])


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("function", ANSWERED, ids=lambda each: each.__name__)
def test_the_class_is_the_arguments(function: Any, full: bool) -> None:
    _check(sg.to_static(function, backend="eager", full_graph=full), function)


@pytest.mark.parametrize("function", REFUSED, ids=lambda each: each.__name__)
def test_what_only_the_run_knows_is_pythons(function: Any) -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(MAKE[0]())
    assert caught.value.reason.code in ("SG301", "SG304")
    _check(sg.to_static(function, backend="eager", full_graph=False, strict=True), function)


def test_a_plain_tensor_may_be_asked_to_be_one() -> None:
    static = sg.to_static(plain, backend="eager")
    x = torch.ones(2)
    y = static(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
