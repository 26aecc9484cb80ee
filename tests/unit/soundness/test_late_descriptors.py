"""A descriptor that a class gets later: from then on it is asked, and not the object that has the attribute itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.soundness.following import deleting, follows, setting

SEVEN = property(lambda self: 7.0)


class Stored:
    """A descriptor of the user's that Python asks before the object."""

    def __get__(self, target: Any, kind: Any = None) -> float:
        return 7.0

    def __set__(self, target: Any, value: Any) -> None:
        raise AttributeError("never")


def of_an_object() -> tuple[Any, Any]:
    class Base:
        pass

    class Object(Base):
        def __init__(self) -> None:
            self.v: Any = 2.0

    target = Object()
    return (lambda x: x * target.v), (Object, Base)


def of_a_module() -> tuple[Any, Any]:
    class Base(nn.Module):
        pass

    class Module(Base):
        def __init__(self) -> None:
            super().__init__()
            self.v: Any = 2.0

        def forward(self, x: Tensor) -> Tensor:
            return x * self.v

    return Module(), (Module, Base)


def of_a_buffer() -> tuple[Any, Any]:
    class Module(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("v", torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.v

    return Module(), (Module,)


def of_a_class() -> tuple[Any, Any]:
    class Meta(type):
        pass

    class Object(metaclass=Meta):
        v: Any = 2.0

    return (lambda x: x * Object.v), (Meta,)


@pytest.mark.parametrize("descriptor", [SEVEN, Stored()], ids=["property", "of the user's"])
@pytest.mark.parametrize("make", [of_an_object, of_a_module, of_a_buffer, of_a_class], ids=lambda make: make.__name__)
def test_it_is_asked_from_then_on(make: Callable[[], tuple[Any, Any]], descriptor: Any) -> None:
    function, classes = make()
    for kind in classes:
        follows(function, setting(kind, v=descriptor), deleting(kind, "v"))


def test_it_stores_from_then_on() -> None:
    class Object:
        def __init__(self) -> None:
            self.v = 1

    target, log = Object(), list[Any]()

    def function(x: Tensor) -> Any:
        if x.sum() > 100:
            target.v = 5
        return x + len(log)

    late = setting(Object, v=property(lambda self: 0, lambda self, value: log.append(value)))
    follows(function, late, seen=False)
    assert log == []
