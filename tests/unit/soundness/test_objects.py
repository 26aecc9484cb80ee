"""Changes of objects: their attributes, slots, and what their special methods read."""

from __future__ import annotations

import collections
import contextvars
import copy
import dataclasses
import enum
import functools
import gc
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from tests.unit.soundness.following import Box, Change, deleting, follows, in_turn, setting, storing


class Config:
    """What people keep their settings in."""

    scale = 2.0

    def __init__(self) -> None:
        self.flag = True
        self.inner = Box(k=1)
        self.cache: Any = None
        self.k_1 = 2
        del self.cache

    @property
    def from_dictionary(self) -> float:
        return self.__dict__.get("p", 4)  # type: ignore[no-any-return]


def numbered(config: Config) -> float:
    """Attributes whose names are put together."""
    result = 0.0
    for i in range(3):
        result += getattr(config, f"k_{i}", 10)
    return result


READINGS: dict[str, tuple[Callable[[Config], float], list[Callable[[Config], Change]]]] = {
    "a flag": (lambda c: 2 if c.flag else 1, [lambda c: setting(c, flag=False)]),
    "an inner object": (
        lambda c: c.inner.k,
        [lambda c: setting(c.inner, k=5), lambda c: setting(c, inner=Box(k=8)), lambda c: deleting(c.inner, "k")],
    ),
    "what a property reads": (lambda c: c.from_dictionary, [lambda c: setting(c, p=9)]),
    "hasattr": (
        lambda c: 2 if hasattr(c, "cache") else 1,
        [lambda c: setting(c, cache=1), lambda c: deleting(c, "cache")],
    ),
    "getattr with a default": (lambda c: getattr(c, "cache", 3), [lambda c: setting(c, cache=7)]),
    "a name put together": (
        numbered,
        [lambda c: setting(c, k_1=7), lambda c: setting(c, k_2=7), lambda c: deleting(c, "k_1")],
    ),
    "its dictionary": (lambda c: c.__dict__["k_1"], [lambda c: setting(c, k_1=7)]),
    "its class's attribute": (
        lambda c: c.scale,
        [lambda c: setting(c, scale=6.0), lambda c: setting(c, scale=None), lambda c: deleting(c, "scale")],
    ),
}


@pytest.mark.parametrize("name", READINGS)
def test_what_is_read_of_an_object(name: str) -> None:
    read, changes = READINGS[name]
    config = Config()
    # Changes read the object as they find it.
    follows(lambda x: x * read(config), *(lambda make=make: make(config)() for make in changes))


def test_a_tensor_of_an_object() -> None:
    holder = Box(t=torch.ones(3))
    values = (torch.ones(3) * 3, torch.ones(1), 3.0, torch.ones(3, dtype=torch.float64))
    follows(lambda x: x * holder.t, *(setting(holder, t=value) for value in values))


# ---- tensors themselves
def test_an_attribute_of_a_tensor() -> None:
    held: Any = torch.ones(3)
    held.scale = 2
    follows(lambda x: x * held.scale, setting(held, scale=5))


def test_whether_a_tensor_requires_a_gradient() -> None:
    held = torch.ones(3)
    follows(lambda x: x * 2 if held.requires_grad else x * held, held.requires_grad_)


def test_the_data_of_a_tensor() -> None:
    held = torch.ones(3)
    follows(lambda x: x * held, setting(held, data=torch.ones(3) * 5), setting(held, data=torch.ones(1)))


# ---- slots
class Slotted:
    __slots__ = ("items", "rate")

    def __init__(self) -> None:
        self.rate, self.items = 1, [1]


class SlottedChild(Slotted):
    __slots__ = ("bias",)

    def __init__(self) -> None:
        super().__init__()
        self.bias = 2


GLOBAL_SLOTTED = Slotted()


def test_slots() -> None:
    slotted = Slotted()
    follows(
        lambda x: x * slotted.rate + slotted.items[0],
        setting(slotted, rate=7),
        storing(slotted.items, 0, 7),
        setting(slotted, items=[9]),
    )


def test_slots_of_a_module_level_object() -> None:
    follows(lambda x: x * GLOBAL_SLOTTED.rate, setting(GLOBAL_SLOTTED, rate=7))


def test_a_slot_without_a_value() -> None:
    slotted = Slotted()
    del slotted.rate
    follows(lambda x: x * getattr(slotted, "rate", 3), setting(slotted, rate=7), deleting(slotted, "rate"))


def _or_else(o, x):
    try:
        return x * o.rate
    except AttributeError:
        return -x


@pytest.mark.parametrize("kind", [Slotted, Box, torch.nn.Module], ids=lambda kind: kind.__name__)
def test_an_attribute_that_comes_to_be(kind: Any) -> None:
    made = kind()
    if kind is Slotted:
        del made.rate
    follows(lambda x: _or_else(made, x), setting(made, rate=7))


def _rate_of(o):
    return o.rate


def test_an_attribute_that_comes_to_be_where_what_is_called_reads_it() -> None:
    box, other = Box(), Box()

    def calls(x):
        try:
            return x * _rate_of(box)
        except AttributeError:
            return -x

    def has_a_lambda(x):
        try:
            return x * max([other], key=lambda each: each.rate).rate
        except AttributeError:
            return -x

    follows(calls, setting(box, rate=7))
    follows(has_a_lambda, setting(other, rate=7))


def test_an_attribute_that_comes_to_be_of_what_is_copied() -> None:
    module = torch.nn.Module()
    follows(lambda x: x * getattr(copy.copy(module), "rate", 3), setting(module, rate=7))


def test_inherited_slots() -> None:
    slotted = SlottedChild()
    follows(
        lambda x: x * slotted.rate + slotted.bias,
        setting(slotted, rate=3),
        setting(slotted, bias=5),
        deleting(slotted, "bias"),
    )


# ---- special methods
def test_getattr() -> None:
    class Attributes:
        def __init__(self) -> None:
            self._table = {"a": 2}

        def __getattr__(self, name: str) -> int:
            try:
                return self.__dict__["_table"][name]  # type: ignore[no-any-return]
            except KeyError:
                raise AttributeError(name) from None

    attributes = Attributes()
    follows(lambda x: x * attributes.a, partial(attributes._table.update, a=5), setting(attributes, a=7))


def test_attributes_that_are_items_as_in_omegaconf() -> None:
    class Node(dict[str, Any]):
        def __getattr__(self, name: str) -> Any:
            value = self.get(name)
            return Node(value) if isinstance(value, dict) else value

        def __setattr__(self, name: str, value: Any) -> None:
            self[name] = value

    config = Node(model={"rate": 2, "layers": [1, 2]}, bias=None)

    def function(x: Tensor) -> Tensor:
        x = x * config.model.rate + len(config.model.layers)
        return x if config.bias is None else x + config.bias

    follows(
        function,
        storing(config["model"], "rate", 5),
        partial(config["model"]["layers"].append, 3),
        setting(config, bias=4.0),
        setting(config, model={"rate": 1, "layers": []}),
    )


def test_getitem() -> None:
    class Table(Box):
        def __getitem__(self, name: str) -> int:
            return self.items[name]  # type: ignore[no-any-return]

    table = Table(items={"a": 2})
    follows(
        lambda x: x * table["a"],
        partial(table.items.update, a=5),
        setting(Table, __getitem__=lambda self, name: 11),
    )


def test_call() -> None:
    class Scaler:
        rate = 2

        def __call__(self, x: Tensor) -> Tensor:
            return x * self.rate

    scaler = Scaler()
    follows(lambda x: scaler(x), setting(scaler, rate=5), setting(Scaler, __call__=lambda self, x: x * 11))


def test_length_and_truth() -> None:
    class Sized(Box):
        def __len__(self) -> int:
            return self.n  # type: ignore[no-any-return]

    sized = Sized(n=2)
    follows(lambda x: x * len(sized) if sized else x - 1, setting(sized, n=0), setting(sized, n=4))


def test_equality() -> None:
    class Value(Box):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Value) and self.v == other.v

        __hash__ = None  # type: ignore[assignment]

    left, right = Value(v=1), Value(v=1)
    follows(lambda x: x * 2 if left == right else x, setting(right, v=0))


# ---- dataclasses, named tuples, enums
def test_a_dataclass() -> None:
    @dataclasses.dataclass
    class Options:
        rate: int = 1
        items: list[int] = dataclasses.field(default_factory=list)

    options = Options()
    follows(
        lambda x: x * options.rate + len(options.items),
        setting(options, rate=4),
        partial(options.items.append, 1),
        partial(options.__dict__.update, rate=8),
    )


def test_a_dataclass_with_slots() -> None:
    @dataclasses.dataclass(slots=True)
    class Options:
        rate: int = 1

    options = Options()
    follows(lambda x: x * options.rate, setting(options, rate=4))


def test_a_frozen_dataclass_that_is_replaced() -> None:
    @dataclasses.dataclass(frozen=True)
    class Optimiser:
        rate: float = 0.5

    @dataclasses.dataclass(frozen=True)
    class Options:
        optimiser: Optimiser = dataclasses.field(default_factory=Optimiser)
        name: str = "plain"

    holder = Box(options=Options())

    def replace(**changes: Any) -> Change:
        return lambda: setting(holder, options=dataclasses.replace(holder.options, **changes))()

    follows(
        lambda x: x * holder.options.optimiser.rate if holder.options.name == "plain" else -x,
        replace(optimiser=Optimiser(2.0)),
        replace(name="other"),
        replace(name="plain"),
    )


def test_named_tuples() -> None:
    pair = collections.namedtuple("pair", "a b")
    held = [pair(1, 2)]
    follows(lambda x: x * held[0].a, storing(held, 0, pair(5, 2)))


def test_a_typed_named_tuple_that_is_replaced() -> None:
    class Pair(NamedTuple):
        rate: float = 2.0
        offset: float = 1.0

    holder = Box(pair=Pair())
    follows(
        lambda x: x * holder.pair.rate + holder.pair[1],
        setting(holder, pair=Pair(rate=5.0)),
        setting(holder, pair=holder.pair._replace(offset=-1.0)),
        setting(holder, pair=(2.0, 3.0)),
    )


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Part(enum.Flag):
    SCALE = enum.auto()
    SHIFT = enum.auto()


def test_enum_members() -> None:
    holder = Box(colour=Colour.RED)
    follows(lambda x: x * 2 if holder.colour is Colour.RED else x, setting(holder, colour=Colour.GREEN))


def test_the_values_of_enum_members() -> None:
    holder = Box(colour=Colour.RED)
    follows(lambda x: x * holder.colour.value, setting(holder, colour=Colour.GREEN))


def test_enum_flags() -> None:
    holder = Box(parts=Part.SCALE)

    def function(x: Tensor) -> Tensor:
        if Part.SCALE in holder.parts:
            x = x * 2
        return x + 1 if holder.parts & Part.SHIFT else x

    changes = (Part.SCALE | Part.SHIFT, Part.SHIFT, Part(0))
    follows(function, *(setting(holder, parts=parts) for parts in changes))


# ---- what remembers
def test_a_cached_property() -> None:
    class Lazy:
        rate = 2

        @functools.cached_property
        def tripled(self) -> int:
            return self.rate * 3

    lazy = Lazy()
    follows(
        lambda x: x * lazy.tripled,
        setting(lazy, rate=7),
        partial(lazy.__dict__.pop, "tripled"),
        partial(lazy.__dict__.update, tripled=11),
    )


# ---- objects of the standard library
def test_a_context_variable() -> None:
    variable = contextvars.ContextVar("stillgraph_test", default=1)
    follows(lambda x: x * variable.get(), partial(variable.set, 5))


def _or_one(variable: contextvars.ContextVar[Any]) -> Any:
    try:
        return variable.get()
    except LookupError:
        return 1


@pytest.mark.parametrize(
    "read",
    [
        _or_one,
        lambda variable: variable.get(1),
        lambda variable: next(map(_or_one, [variable])),
        lambda variable: sum(map(variable.get, [1])),
        lambda variable: dict(contextvars.copy_context().items()).get(variable, 1),
    ],
)
def test_a_context_variable_that_is_set_later(read: Any) -> None:
    variable: contextvars.ContextVar[Any] = contextvars.ContextVar("stillgraph_unset")
    follows(lambda x: x * read(variable), partial(variable.set, 5), partial(variable.set, 7))


def test_the_default_of_a_context_variable() -> None:
    held = {"a": 1.0}
    variable = contextvars.ContextVar("stillgraph_default", default=held)
    follows(lambda x: x * variable.get()["a"], storing(held, "a", 7.0), partial(variable.set, {"a": 2.0}))


def test_an_object_that_is_the_default_of_a_context_variable() -> None:
    box = Box(k=1)
    variable = contextvars.ContextVar("stillgraph_default_box", default=box)
    follows(lambda x: x * variable.get().k, setting(box, k=5))


def test_a_thread_local() -> None:
    local = threading.local()
    local.k = 1
    follows(lambda x: x * local.k, setting(local, k=5))


def test_a_weak_reference() -> None:
    referred = Box(k=1)
    reference = weakref.ref(referred)
    follows(lambda x: x * reference().k, setting(referred, k=5))  # type: ignore[union-attr]


def test_a_weak_reference_that_dies() -> None:
    owner = Box(referred=Box(k=5))
    reference = weakref.ref(owner.referred)
    # A capture leaves cycles behind, which hold what it saw until they are collected.
    follows(lambda x: x * 2 if reference() is None else x, in_turn(deleting(owner, "referred"), gc.collect))


def test_a_weak_dictionary() -> None:
    owner = Box(first=Box(k=1), second=Box(k=2))
    weights = weakref.WeakKeyDictionary({owner.first: 2.0})
    follows(
        lambda x: x * weights.get(owner.first, 1.0) + len(weights),
        storing(weights, owner.first, 5.0),
        storing(weights, owner.second, 1.0),
        in_turn(deleting(owner, "second"), setting(owner, first=Box(k=3))),
    )


# ---- objects that say what torch's functions do with them
class Factor:
    """Stands for a number among the arguments of torch's functions."""

    bias = 0.0

    def __init__(self, value: float) -> None:
        self.value = value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = [argument.value if isinstance(argument, Factor) else argument for argument in args]
        return func(*plain, **(kwargs or {})) + cls.bias


def test_an_object_with_torch_functions_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    factor: Any = Factor(2.0)
    monkeypatch.setattr(Factor, "bias", 1.0)
    follows(lambda x: torch.mul(x, factor), setting(factor, value=5.0), setting(Factor, bias=3.0))
    follows(lambda x: x * factor if x.sum() > 0 else torch.sub(x, factor), setting(factor, value=7.0))


# ---- torch.distributions
@pytest.mark.parametrize("checks", [True, False])
def test_a_distribution(checks: bool) -> None:
    normal = torch.distributions.Normal(torch.zeros(3), torch.ones(3), validate_args=checks)
    follows(lambda x: normal.log_prob(x), setting(normal, loc=torch.ones(3)), lambda: normal.scale.fill_(2.0))
