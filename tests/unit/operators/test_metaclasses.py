"""Classes whose metaclass has a say in how their objects are made: a cache, a count, a registry, on one path only."""

from __future__ import annotations

import abc
import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same

Made = tuple[Callable[[Tensor], Any], Callable[[], Any]]


class Caching(type):
    """One object for each class, kept by the metaclass."""

    cache: dict[Any, Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls not in type(cls).cache:
            type(cls).cache[cls] = super().__call__(*args, **kwargs)
        return type(cls).cache[cls]


def caching(*bases: type) -> Any:
    return type("Single", (Caching, *bases), {"cache": {}})


def a_cache() -> Made:
    single = caching()

    class Config(metaclass=single):
        def __init__(self, scale: float = 2.0) -> None:
            self.scale = scale

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            x = x * Config(3.0).scale
        return x

    return function, lambda: [each.scale for each in single.cache.values()]


def a_cache_of_each_class() -> Made:
    class Keyed(type):
        def __init__(cls, *args: Any) -> None:
            super().__init__(*args)
            cls.known: dict[Any, Any] = {}

        def __call__(cls, key: Any) -> Any:
            if key not in cls.known:
                cls.known[key] = super().__call__(key)
            return cls.known[key]

    class Config(metaclass=Keyed):
        def __init__(self, key: int) -> None:
            self.key, self.uses = key, 0

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            config = Config(2)
            x = x * config.key
        else:
            config = Config(3)
            x = x + config.key
        config.uses += 1
        return x

    return function, lambda: sorted((key, each.uses) for key, each in Config.known.items())


def abstract_classes() -> Made:
    single = caching(abc.ABCMeta)

    class Base(metaclass=single):
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @abc.abstractmethod
        def twice(self) -> float: ...

    class Config(Base):
        def twice(self) -> float:
            return self.scale * 2

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            x = x * Config(scale=3.0).twice()
        return x

    return function, lambda: [each.scale for each in single.cache.values()]


def by_the_name_of_type() -> Made:
    made = []

    class Noting(type):
        def __call__(cls, *args: Any) -> Any:
            instance = type.__call__(cls, *args)
            made.append(instance.scale)
            return instance

    class Config(metaclass=Noting):
        def __init__(self, scale: float) -> None:
            self.scale = scale

    def function(x: Tensor) -> Any:
        return x * Config(3.0).scale if x.sum() > 0 else x

    return function, lambda: made


def step_by_step() -> Made:
    made = []

    class Noting(type):
        def __call__(cls, *args: Any) -> Any:
            instance = cls.__new__(cls)
            instance.__init__(*args)
            made.append(instance.scale)
            return instance

    class Config(metaclass=Noting):
        def __init__(self, scale: float) -> None:
            self.scale = scale

    def function(x: Tensor) -> Any:
        return x * Config(3.0).scale if x.sum() > 0 else x

    return function, lambda: made


def dataclasses_by_what_they_hold() -> Made:
    known: dict[Any, Any] = {}

    class Keyed(type):
        def __call__(cls, *args: Any) -> Any:
            if args not in known:
                known[args] = super().__call__(*args)
            return known[args]

    @dataclasses.dataclass
    class Config(metaclass=Keyed):
        scale: float
        ready: int = 0

        def __post_init__(self) -> None:
            self.ready += 1

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            x = x * Config(3.0).scale
        else:
            x = x * Config(4.0).scale + Config(5.0).ready
        return x

    return function, lambda: sorted((each.scale, each.ready) for each in known.values())


def counted_and_numbered() -> Made:
    class Counting(type):
        made = 0

        def __call__(cls, *args: Any) -> Any:
            Counting.made += 1
            return super().__call__(*args)

    class Config(metaclass=Counting):
        last = 0

        def __new__(cls, *args: Any) -> Any:
            cls.last += 1
            instance = super().__new__(cls)
            instance.number = cls.last
            return instance

        def __init__(self, scale: float) -> None:
            self.scale = scale

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            x = x * Config(3.0).scale
        return x * Config(2.0).number

    return function, lambda: (Counting.made, Config.last)


def modules() -> Made:
    made = []

    class Noting(type):
        def __call__(cls, *args: Any) -> Any:
            instance = super().__call__(*args)
            made.append(instance.scale)
            return instance

    class Scale(nn.Module, metaclass=Noting):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.scale = scale

        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            x = Scale(3.0)(x)
        return x

    return function, lambda: made


def of_tensors() -> Made:
    made = []

    class Noting(type):
        def __call__(cls, *args: Any) -> Any:
            instance = super().__call__(*args)
            made.append(instance.value)
            return instance

    class Held(metaclass=Noting):
        def __init__(self, value: Tensor) -> None:
            self.value, self.number = value, int(value.sum())

    def function(x: Tensor) -> Any:
        return Held(x * 3).value if x.sum() > 0 else x + Held(x).number

    return function, lambda: made


def only_once() -> Made:
    made: dict[Any, Any] = {}

    class Once(type):
        def __call__(cls, *args: Any) -> Any:
            if cls in made:
                raise RuntimeError("there is one")
            made[cls] = super().__call__(*args)
            return made[cls]

    class Config(metaclass=Once):
        def __init__(self, scale: float) -> None:
            self.scale = scale

    def function(x: Tensor) -> Any:
        try:
            return x * Config(3.0).scale if x.sum() > 0 else x
        except RuntimeError as error:
            return x, str(error)

    return function, lambda: len(made)


def enumerations() -> Made:
    class Lenient(enum.EnumMeta):
        def __call__(cls, value: Any, *args: Any, **kwargs: Any) -> Any:
            return super().__call__(1 if value == 9 else value, *args, **kwargs)

    class Mode(enum.Enum, metaclass=Lenient):
        ONE = 1
        TWO = 2

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            x = x * Mode(9).value
        return x * Mode(2).value

    return function, lambda: None


def a_class_that_is_made() -> Made:
    made = []

    class Noting(type):
        def __new__(meta, name: str, bases: Any, space: Any) -> Any:
            made.append(name)
            return super().__new__(meta, name, bases, space)

        def __init__(cls, *args: Any) -> None:
            super().__init__(*args)
            made.append("ready")

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            x = x * Noting("Config", (), {"scale": 3.0}).scale
        return x

    return function, lambda: made


MADE = (
    *(a_cache, a_cache_of_each_class, abstract_classes, by_the_name_of_type, step_by_step),
    *(dataclasses_by_what_they_hold, counted_and_numbered, modules, of_tensors, only_once, enumerations),
    a_class_that_is_made,
)
UP, DOWN = torch.ones(2), -torch.ones(2)


@pytest.mark.parametrize("inputs", [(UP, DOWN, UP, UP * 3), (DOWN, UP, DOWN, UP)], ids=["made first", "made later"])
@pytest.mark.parametrize("full_graph", [True, False], ids=["full graph", "segments"])
@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_objects_are_made_as_in_eager(make: Any, full_graph: bool, inputs: tuple[Tensor, ...]) -> None:
    (original, ours), (eager, theirs) = make(), make()
    static = sg.to_static(original, backend="eager", full_graph=full_graph, **({} if full_graph else {"strict": True}))
    for x in inputs:
        assert_same(eager(x), static(x), "value")
        assert_same(theirs(), ours(), "state")
