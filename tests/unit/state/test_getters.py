"""State that getters keep, which Python runs by itself: properties, ``__getattr__``, descriptors; slots too."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.state.stories import XS, Static, story


class Default:
    n = 0

    @property
    def v(self) -> int:
        self.n += 1
        return self.n


class Asked:
    n = 0

    def __getattr__(self, name: str) -> Any:
        if name != "v":
            raise AttributeError(name)
        self.n += 1
        return self.n


class Slotted:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    @property
    def v(self) -> int:
        self.n += 1
        return self.n


class Mixed(Slotted):
    """A slot of its base, and a dictionary."""

    k = 1

    @property
    def v(self) -> int:
        self.n += self.k
        self.k += 1
        return self.n


class Counts:
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        instance.n += 1
        return instance.n


class Described:
    n = 0
    v = Counts()


class Memo:
    """Keeps what it has computed in place of a None of its class."""

    kept: Any = None
    n = 0

    @property
    def v(self) -> Any:
        if self.kept is None:
            self.kept = 3.0
            self.n += 1
        return self.kept + self.n


class Cached:
    n = 0

    @functools.cached_property
    def v(self) -> int:
        self.n += 1
        return 6


def _state(held: Any) -> Any:
    return dict(getattr(held, "__dict__", {})), held.n


@pytest.mark.parametrize("kind", [Default, Asked, Slotted, Mixed, Described, Memo, Cached])
@story(programs=3)
def test_what_a_getter_counts(static: Static, kind: type) -> Any:
    held: Any = kind()

    def f(x: Tensor) -> Tensor:
        return x * held.v

    g = static(f)
    return [(g(x), _state(held)) for x in XS[:4]]


@story(programs=4)
def test_what_a_getter_has_computed_is_computed_again_once_it_is_gone(static: Static) -> Any:
    held = Cached()

    def f(x: Tensor) -> Tensor:
        return x * held.v

    g = static(f)
    told = [(g(x), _state(held)) for x in XS[:2]]
    del held.v
    return [*told, *((g(x), _state(held)) for x in XS[:2])]


@story(programs=1)
def test_a_getter_with_a_setter_on_slots(static: Static) -> Any:
    class Half:
        __slots__ = ("_k", "n")

        def __init__(self) -> None:
            self._k, self.n = 1.0, 0

        @property
        def k(self) -> float:
            self.n += 1
            return self._k

        @k.setter
        def k(self, value: float) -> None:
            self._k = value

    half = Half()

    def f(x: Tensor) -> Tensor:
        half.k = half.k * 0.5
        return x

    g = static(f)
    return [(g(x), half._k, half.n) for x in XS[:4]]


@story(programs=2)
def test_attributes_of_slots_that_are_looked_up_in_a_dict(static: Static) -> Any:
    class Record:
        __slots__ = ("d",)

        def __getattr__(self, name: str) -> Any:
            return self.d[name]  # raises KeyError, even for ``__dict__``

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "d":
                object.__setattr__(self, name, value)
            else:
                self.d[name] = value

    record: Any = Record()
    record.d = {}
    record.n, record.best, record.h = 0, None, torch.zeros(3)

    def f(x: Tensor) -> Any:
        record.n += 1
        record.h = record.h + x
        value = x.mean().item()
        if record.best is None or value < record.best:
            record.best = value
        return record.best, record.n, record.h * 1

    g = static(f)
    return [(g(x), dict(record.d)) for x in XS[:4]]
