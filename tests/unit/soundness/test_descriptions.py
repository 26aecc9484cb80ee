"""Changes of what describes functions and classes, of what is absent, and of torch's own functions."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.unit.soundness.following import Box, deleting, follows, setting, storing


def described_class() -> Any:
    class Options:
        """A text."""

        rate: int = 1

    return Options


def described_function() -> Any:
    def function(first: int, second: int = 1) -> None:
        """A text."""

    return function


def longer(a: int, b: int, c: int = 1, *, d: int = 2) -> None:
    pass


DESCRIPTIONS: list[tuple[Callable[[Any], Any], dict[str, Any]]] = [
    (lambda c: len(c.__name__), {"__name__": "AnotherName"}),
    (lambda c: len(c.__qualname__), {"__qualname__": "AnotherName"}),
    (lambda c: len(c.__doc__ or ""), {"__doc__": "Another text."}),
    (lambda c: len(c.__doc__ or ""), {"__doc__": None}),
    (lambda c: len(c.__module__), {"__module__": "another"}),
    (lambda c: len(c.__annotations__), {"__annotations__": {"a": int, "b": int, "c": int, "d": int}}),
    (lambda c: 2 if next(iter(c.__annotations__.values())) is str else 1, {"__annotations__": {"a": str}}),
]


@pytest.mark.parametrize(("read", "change"), DESCRIPTIONS)
@pytest.mark.parametrize("make", [described_class, described_function])
def test_a_description(make: Callable[[], Any], read: Callable[[Any], Any], change: dict[str, Any]) -> None:
    described = make()
    follows(lambda x: x * read(described), setting(described, **change))


def test_the_name_of_the_class_of_an_object() -> None:
    kind = described_class()
    options = kind()
    follows(lambda x: x * len(type(options).__name__), setting(kind, __name__="A"))


def test_the_annotations_of_a_class_change_in_place() -> None:
    kind = described_class()
    follows(lambda x: x * len(kind.__annotations__), storing(kind.__annotations__, "more", int))


SIGNATURES: list[tuple[Callable[[Any], Any], dict[str, Any]]] = [
    (lambda f: len(inspect.signature(f).parameters), {"__code__": longer.__code__}),
    (lambda f: inspect.signature(f).parameters["second"].default, {"__defaults__": (7,)}),
    (lambda f: len(inspect.getfullargspec(f).args), {"__code__": longer.__code__}),
    (lambda f: f.__code__.co_argcount, {"__code__": longer.__code__}),
    (lambda f: f.__defaults__[0], {"__defaults__": (7,)}),
]


@pytest.mark.parametrize(("read", "change"), SIGNATURES)
def test_a_signature(read: Callable[[Any], Any], change: dict[str, Any]) -> None:
    function = described_function()
    follows(lambda x: x * read(function), setting(function, **change))


def test_subclasses() -> None:
    base = described_class()
    kept: list[Any] = []
    follows(lambda x: x * len(base.__subclasses__()), lambda: kept.append(type("Derived", (base,), {})))


# ---- what is absent
def caught(value: Any) -> float:
    try:
        return value.rate  # type: ignore[no-any-return]
    except AttributeError:
        return 1.0


def caught_any(value: Any) -> float:
    try:
        return value.rate  # type: ignore[no-any-return]
    except:  # noqa: E722 - what is tested
        return 1.0


@pytest.mark.parametrize("read", [caught, caught_any])
@pytest.mark.parametrize("base", [object, nn.Module])
def test_an_attribute_that_is_missed(read: Callable[[Any], float], base: type) -> None:
    kind = type("Fresh", (base,), {"read": read})
    value: Any = kind()
    follows(
        lambda x: x * value.read(),
        setting(value, rate=5.0),
        deleting(value, "rate"),
        setting(kind, rate=7.0),
        deleting(kind, "rate"),
    )


def test_a_module_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "stillgraph_test_later"
    module: Any = types.ModuleType(name)
    module.rate = 5.0

    def function(x: Tensor) -> Tensor:
        try:
            import stillgraph_test_later  # type: ignore[import-not-found]
        except ImportError:
            return x
        return x * stillgraph_test_later.rate  # type: ignore[no-any-return]

    follows(
        function,
        partial(monkeypatch.setitem, sys.modules, name, module),
        setting(module, rate=7.0),
        partial(monkeypatch.delitem, sys.modules, name),
    )


def test_a_getter_is_not_called_to_see_whether_it_is_there() -> None:
    calls: list[int] = []

    class Options:
        @property
        def rate(self) -> float:
            calls.append(1)
            return 2.0

    box = Box(options=Options(), other=Box())
    follows(lambda x: x * caught(box.other), setting(box.other, rate=3.0))
    assert not calls


# ---- torch's own
def test_a_method_of_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "stillgraph_test", lambda self: self * 2, raising=False)
    follows(
        lambda x: x.stillgraph_test(),
        partial(monkeypatch.setattr, torch.Tensor, "stillgraph_test", lambda self: self * 5),
    )
    monkeypatch.setattr(torch.Tensor, "stillgraph_test", property(lambda self: self * 2))
    follows(
        lambda x: x.stillgraph_test * 1,
        partial(monkeypatch.setattr, torch.Tensor, "stillgraph_test", property(lambda self: self * 5)),
    )


def test_a_function_that_a_layer_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = nn.Linear(3, 3)
    follows(lambda x: layer(x), partial(monkeypatch.setattr, F, "linear", lambda x, weight, bias: x * 5))
