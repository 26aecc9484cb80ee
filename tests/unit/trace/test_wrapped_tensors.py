"""Tensors of a class of their own that the function makes: none of the capture's own tensors leaves in one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import bytecode
from tests.unit.trace.agreement import P, agree, refusal

__all__ = ["bytecode"]


class Scaled(Tensor):
    """One that wraps another."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor, scale: float) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: Tensor, scale: float) -> None:
        self.inner, self.scale = inner, scale

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = [each.inner * each.scale if isinstance(each, Scaled) else each for each in args]
        return func(*plain, **(kwargs or {}))


class Named(Tensor):
    """One that only has another class."""


class Weight(torch.nn.Parameter):
    pass


class Box:
    held: Any = None


box, kept, table = Box(), list[Any](), dict[str, Any]()


def returned(x: Tensor) -> Any:
    return Scaled(x.clone(), 2.0)


def computed_with(x: Tensor) -> Any:
    return Scaled(x.clone(), 2.0) + 1


def in_containers(x: Tensor) -> Any:
    return [x], {"a": (Scaled(x, 1.0),)}


def in_an_object(x: Tensor) -> Any:
    made = Box()
    made.held = Scaled(x, 1.0)
    return made


def in_a_closure(x: Tensor) -> Any:
    scaled = Scaled(x, 1.0)
    return lambda: scaled


def appended(x: Tensor) -> Any:
    kept.append(Scaled(x, 1.0))
    return x


def stored(x: Tensor) -> Any:
    box.held = table["a"] = Scaled(x, 1.0)
    return x


def called(x: Tensor) -> Any:
    return Named(x)


def called_parameter(x: Tensor) -> Any:
    return Weight(x) * 2


def made_of(x: Tensor) -> Any:
    return torch.Tensor._make_subclass(Named, x) + 1


def of_another_class(x: Tensor) -> Any:
    return x.as_subclass(Named) * 2


FUNCTIONS = [
    *(returned, computed_with, in_containers, in_an_object, in_a_closure, appended, stored),
    *(called, called_parameter, made_of, of_another_class),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_refused(function: Callable[[Tensor], Any]) -> None:
    error = refusal(function, P)
    assert error.reason.code == ("SG306" if function is in_a_closure else "SG304")
    assert error.location is not None
    assert error.location.function.endswith(function.__name__)
    assert not kept
    assert not table
    assert box.held is None


@pytest.mark.parametrize("function", [called, in_containers])
def test_refused_through_bytecode(function: Callable[[Tensor], Any], bytecode: None) -> None:
    assert refusal(function, P).reason.code == "SG304"


@pytest.mark.parametrize("function", [returned, made_of, appended])
def test_without_a_full_graph(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False)
    actual, expected = static(P.clone()), function(P.clone())
    assert type(actual) is type(expected)
    assert torch.equal(vars(actual).get("inner", actual), vars(expected).get("inner", expected))
    assert all(torch.equal(each.inner, P) for each in kept)
    kept.clear()


def test_what_is_in_one_is_a_tensor_of_the_run() -> None:
    agree(lambda x: Scaled(x.clone(), 2.0).inner + 1, P)
