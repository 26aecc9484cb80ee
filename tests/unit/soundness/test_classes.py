"""Changes of classes: attributes, methods, bases, and what makes them."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import torch
from torch import Tensor

from tests.unit.soundness.following import Box, deleting, follows, setting, storing

T = TypeVar("T")


# ---- attributes
def test_an_attribute() -> None:
    class Options:
        rate = 2

    follows(lambda x: x * Options.rate, setting(Options, rate=3))


def test_an_attribute_found_through_an_object() -> None:
    class Base:
        rate = 2

    class Options(Base):
        pass

    options = Options()
    follows(
        lambda x: x * options.rate,
        setting(Base, rate=3),
        setting(Options, rate=4),
        setting(options, rate=5),
        deleting(options, "rate"),
        deleting(Options, "rate"),
    )


def test_an_attribute_of_a_class_made_by_type() -> None:
    made = type("Made", (Box,), {"scale": 2.0})
    instance: Any = made()
    follows(lambda x: x * instance.scale, setting(made, scale=5.0), setting(instance, scale=6.0))


def test_containers() -> None:
    class Options:
        items: ClassVar[list[int]] = [2]
        table: ClassVar[dict[str, int]] = {"a": 2}

    options = Options()
    follows(
        lambda x: x * Options.items[0] + options.table["a"],
        storing(Options.items, 0, 3),
        partial(Options.table.update, a=3),
        setting(Options, table={"a": 9}),
    )


def test_a_tensor() -> None:
    class Options:
        weight = torch.ones(3)

    options = Options()
    follows(
        lambda x: x * options.weight,
        setting(Options, weight=torch.ones(3) * 4),
        setting(options, weight=torch.ones(3) * 5),
    )


def test_a_nested_class() -> None:
    class Options:
        class Inner:
            rate = 2

    class Other:
        rate = 7

    follows(lambda x: x * Options.Inner.rate, setting(Options.Inner, rate=3), setting(Options, Inner=Other))


# ---- methods
class Scaled:
    """What is patched in subclasses made anew by every test."""

    scale = 2.0

    def apply(self, x: Tensor) -> Tensor:
        return x + 1

    @staticmethod
    def static(x: Tensor) -> Tensor:
        return x + 5

    @classmethod
    def scaled(cls, x: Tensor) -> Tensor:
        return x * cls.scale

    @property
    def rate(self) -> float:
        return 2


def scaled_class() -> type[Scaled]:
    class Fresh(Scaled):
        pass

    return Fresh


def test_a_method() -> None:
    kind = scaled_class()
    scaled = kind()
    follows(
        lambda x: scaled.apply(x),
        setting(kind, apply=lambda self, x: x * 5),
        setting(scaled, apply=lambda x: x * 6),
        deleting(scaled, "apply"),
        deleting(kind, "apply"),
    )


def test_the_code_of_a_method() -> None:
    class Fresh:
        def apply(self, x: Tensor) -> Tensor:
            return x + 1

    def other(self: Any, x: Tensor) -> Tensor:
        return x * 5

    scaled = Fresh()
    follows(lambda x: scaled.apply(x), setting(Fresh.apply, __code__=other.__code__))


def test_what_super_finds() -> None:
    base = scaled_class()

    class Child(base):  # type: ignore[misc, valid-type]
        def apply(self, x: Tensor) -> Tensor:
            return super().apply(x) * 2  # type: ignore[no-any-return]

    child = Child()
    follows(lambda x: child.apply(x), setting(base, apply=lambda self, x: x * 5), deleting(base, "apply"))


def test_a_static_method() -> None:
    kind = scaled_class()
    scaled = kind()
    follows(lambda x: scaled.static(x), setting(kind, static=staticmethod(lambda x: x * 9)))


def test_what_a_class_method_reads() -> None:
    kind = scaled_class()
    scaled = kind()
    follows(lambda x: scaled.scaled(x), setting(kind, scale=9.0))


def test_a_property() -> None:
    kind = scaled_class()
    scaled = kind()
    follows(lambda x: x * scaled.rate, setting(kind, rate=property(lambda self: 7)), setting(kind, rate=3))


def test_a_descriptor() -> None:
    class Reading:
        value = 2

        def __get__(self, instance: object, owner: type) -> int:
            return self.value

    class Options:
        rate = Reading()

    options = Options()
    follows(lambda x: x * options.rate, setting(vars(Options)["rate"], value=7))


# ---- what an object is
def test_the_class_of_an_object() -> None:
    class Other(Scaled):
        def apply(self, x: Tensor) -> Tensor:
            return x * 5

    scaled = scaled_class()()
    follows(lambda x: scaled.apply(x), setting(scaled, __class__=Other))


def test_the_bases_of_a_class() -> None:
    class Other:
        def apply(self, x: Tensor) -> Tensor:
            return x * 4

    class Child(scaled_class()):  # type: ignore[misc]
        pass

    child = Child()
    follows(lambda x: child.apply(x), setting(Child, __bases__=(Other,)))


def test_an_enum_member_by_its_value() -> None:
    class Mode(enum.Enum):
        PLAIN = "plain"
        TWICE = "twice"

    holder = Box(mode="plain")
    follows(lambda x: x * 2 if Mode(holder.mode) is Mode.TWICE else x, setting(holder, mode="twice"))


# ---- what makes objects
def test_a_default_factory() -> None:
    initial = [2.0]

    @dataclasses.dataclass
    class Options:
        rates: list[float] = dataclasses.field(default_factory=lambda: list(initial))

    follows(lambda x: x * Options().rates[0], storing(initial, 0, 5.0))


def test_a_constructor() -> None:
    class Options:
        def __init__(self) -> None:
            self.rate = 2

    def initialise(self: Any) -> None:
        self.rate = 7

    follows(lambda x: x * Options().rate, setting(Options, __init__=initialise))


def test_a_registry_of_classes() -> None:
    registry: dict[str, type[Scaled]] = {}

    def register(name: str) -> Callable[[type[Scaled]], type[Scaled]]:
        def decorate(kind: type[Scaled]) -> type[Scaled]:
            registry[name] = kind
            return kind

        return decorate

    @register("main")
    class Main(Scaled):
        scale = 3.0

    @register("other")
    class Other(Scaled):
        scale = 5.0

    follows(
        lambda x: registry["main"]().scaled(x) * len(registry),
        storing(registry, "main", Other),
        setting(Other, scale=7.0),
        partial(register("third"), Main),
    )


def test_a_class_that_a_decorator_changed() -> None:
    factors = {"rate": 2.0}

    def with_rate(kind: type[Any]) -> type[Any]:
        kind.rate = property(lambda self: factors["rate"])
        return kind

    @with_rate
    class Options:
        pass

    options: Any = Options()
    follows(lambda x: x * options.rate, storing(factors, "rate", 5.0), setting(Options, rate=3.0))


def test_subclasses_registered_as_they_are_made() -> None:
    class Plugin:
        found: ClassVar[list[type[Plugin]]] = []
        rate = 1

        def __init_subclass__(cls) -> None:
            Plugin.found.append(cls)

    class First(Plugin):
        rate = 2

    def function(x: Tensor) -> Tensor:
        for plugin in Plugin.found:
            x = x * plugin.rate
        return x

    follows(function, setting(First, rate=4), lambda: type("Second", (Plugin,), {"rate": 3}))


def test_a_generic_alias() -> None:
    class Holder(Generic[T]):
        rate = 2

        def __init__(self, value: T) -> None:
            self.value = value

    made = Box(kind=Holder[int])
    follows(
        lambda x: x * made.kind(3).value * made.kind.rate,
        setting(Holder, rate=5),
        setting(made, kind=Holder[float]),
        setting(made, kind=lambda value: Box(value=7)),
    )
