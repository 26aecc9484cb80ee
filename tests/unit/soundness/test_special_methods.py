"""Special methods, and what protocols ask for, that a class gets only later."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.soundness.following import deleting, follows, setting


@runtime_checkable
class Runs(Protocol):
    """Has a method."""

    def run(self) -> int: ...


def attempted(operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What an operation gives, or else that it cannot be done."""

    def attempt(value: Any) -> Any:
        try:
            return operation(value)
        except TypeError:
            return -1

    return attempt


ADDED: list[tuple[str, Callable[[Any], Any], Callable[..., Any]]] = [
    ("__bool__", lambda c: 2 if c else 1, lambda self: False),
    ("__len__", lambda c: 2 if c else 1, lambda self: 0),
    ("__len__", attempted(len), lambda self: 4),
    ("__eq__", lambda c: 2 if c == 1 else 1, lambda self, other: True),
    ("__ne__", lambda c: 2 if c != 1 else 1, lambda self, other: False),
    ("__lt__", attempted(lambda c: 2 if c < 1 else 1), lambda self, other: True),
    ("__gt__", attempted(lambda c: 2 if c > 1 else 1), lambda self, other: True),
    ("__hash__", lambda c: 2 if hash(c) == 7 else 1, lambda self: 7),
    ("__str__", lambda c: len(f"{c!s:.3}"), lambda self: "a"),
    ("__repr__", lambda c: len(f"{c!r:.3}"), lambda self: "a"),
    ("__format__", lambda c: len(f"{c}"), lambda self, spec: "a"),
    ("__iter__", attempted(lambda c: sum(c)), lambda self: iter([7])),
    ("__getitem__", attempted(lambda c: c[0]), lambda self, index: 7),
    ("__contains__", attempted(lambda c: 2 if 1 in c else 1), lambda self, value: True),
    ("__add__", attempted(lambda c: c + 1), lambda self, other: 7),
    ("__radd__", attempted(lambda c: 1 + c), lambda self, other: 7),
    ("__neg__", attempted(lambda c: -c), lambda self: 7),
    ("__index__", attempted(operator.index), lambda self: 7),
    ("__float__", attempted(float), lambda self: 7.0),
    ("__floor__", attempted(math.floor), lambda self: 7),
    ("__abs__", attempted(abs), lambda self: 7),
    ("__call__", lambda c: 2 if callable(c) else 1, lambda self: 7),
    ("__call__", attempted(lambda c: c()), lambda self: 7),
    ("__getattr__", lambda c: getattr(c, "rate", 1), lambda self, name: 7),
    ("__getattribute__", lambda c: c.known, lambda self, name: 7),
    ("__enter__", attempted(lambda c: 2 if hasattr(c, "__enter__") else 1), lambda self: self),
    ("__deepcopy__", lambda c: copy.deepcopy(c).known, lambda self, memo: Known(9)),
    ("run", lambda c: 2 if isinstance(c, Runs) else 1, lambda self: 1),
]


class Known:
    """Has one attribute."""

    def __init__(self, known: int = 1) -> None:
        self.known = known


@pytest.mark.parametrize(("name", "read", "method"), ADDED, ids=[f"{i}-{each[0]}" for i, each in enumerate(ADDED)])
@pytest.mark.parametrize("of_base", [False, True], ids=["class", "base"])
def test_a_method_that_a_class_gets(
    name: str, read: Callable[[Any], Any], method: Callable[..., Any], of_base: bool
) -> None:
    class Base(Known):
        pass

    class Options(Base):
        pass

    options = Options()
    kind = Base if of_base else Options
    follows(lambda x: x * read(options), setting(kind, **{name: method}), deleting(kind, name))


def test_what_a_tensor_is_multiplied_by() -> None:
    class Factor:
        pass

    factor: Any = Factor()
    times = attempted(lambda pair: pair[0] * pair[1])
    follows(lambda x: x + times((x, factor)), setting(Factor, __rmul__=lambda self, other: other * 7.0))


def test_methods_that_change_back_and_forth() -> None:
    class Options:
        def __iter__(self) -> Any:
            return iter([1])

    options = Options()
    follows(
        lambda x: x * 2 if 1 in options else x,  # type: ignore[operator]
        setting(Options, __contains__=lambda self, value: False),
        deleting(Options, "__contains__"),
        setting(Options, __iter__=lambda self: iter([2])),
        setting(Options, __iter__=None),
    )


def test_a_special_method_that_is_no_function() -> None:
    class Call:
        def __init__(self, result: bool) -> None:
            self.result = result

        def __call__(self, *args: object) -> bool:
            return self.result

    class Options:
        __bool__: Any = Call(True)

    options = Options()
    follows(lambda x: x * 2 if options else x, setting(Options, __bool__=Call(False)))


class Inner(nn.Module):
    """Does nothing."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Outer(nn.Module):
    """Calls another module, if it is true."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * 2 if self.inner else x  # type: ignore[no-any-return]


def read_otherwise(self: nn.Module, name: str) -> Any:
    """Another ``forward``."""
    return (lambda x: x * 9) if name == "forward" else object.__getattribute__(self, name)


OF_MODULES: list[dict[str, Callable[..., Any]]] = [
    {"__call__": lambda self, x: x * 5},
    {"__len__": lambda self: 0},
    {"__bool__": lambda self: False},
    {"__getattribute__": read_otherwise},
]


@pytest.mark.parametrize("methods", OF_MODULES, ids=lambda methods: "-".join(methods))
def test_a_method_that_the_class_of_a_module_gets(methods: dict[str, Any]) -> None:
    kind = type("Fresh", (Inner,), {})
    follows(Outer(kind()), setting(kind, **methods))


def test_a_protocol_that_a_module_comes_to_fit() -> None:
    kind = type("Fresh", (Inner,), {})
    module = kind()
    follows(lambda x: x * 2 if isinstance(module, Runs) else x, setting(kind, run=lambda self: 1))


def test_a_metaclass_that_gets_a_method() -> None:
    class Meta(type):
        pass

    class Options(metaclass=Meta):
        pass

    follows(
        lambda x: x * 2 if isinstance(1, Options) else x,
        setting(Meta, __instancecheck__=lambda cls, value: True),
    )


@pytest.mark.parametrize("full_graph", [True, False])
def test_a_way_to_look_up_attributes_that_a_base_class_is_given_later(full_graph: bool) -> None:
    class Base:
        pass

    class Derived(Base):
        pass

    def reads(target: Any, x: torch.Tensor) -> torch.Tensor:
        return x + target.value

    def found(target: Any, name: str) -> Any:
        return 10 if name == "value" else object.__getattribute__(target, name)

    target: Any = Derived()
    target.value = 1
    static, x = sg.to_static(reads, backend="eager", full_graph=full_graph), torch.ones(())
    assert static(target, x).item() == 2
    Base.__getattribute__ = found  # type: ignore[method-assign]
    assert static(target, x).item() == 11
    del Base.__getattribute__  # type: ignore[attr-defined]
    assert static(target, x).item() == 2
    del target.value
    Derived.__getattr__ = lambda target, name: 3  # type: ignore[attr-defined]
    assert static(target, x).item() == 4
