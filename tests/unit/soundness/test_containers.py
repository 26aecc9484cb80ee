"""Changes of what containers hold: Python's own, those of the standard library, numpy's arrays, iterators."""

from __future__ import annotations

import array
import collections
import ctypes
import io
import itertools
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.soundness.following import Box, Change, X, deleting, follows, nothing, setting, storing, total
from tests.unit.trace.agreement import refusal


class Key:
    """A key that is compared by identity."""


# ---- sets and dictionaries
def test_a_set_of_objects() -> None:
    key = Key()
    keys = {key}
    follows(lambda x: x * 2 if key in keys else x, keys.clear, partial(keys.add, key))


def test_a_set_of_types() -> None:
    kinds = {int, nn.Linear}
    follows(lambda x: x * 2 if nn.Linear in kinds else x, partial(kinds.discard, nn.Linear))


def made_in_turn(kind: type, *elements: Any) -> Any:
    """A set whose elements were added one after the other."""
    made: set[Any] = set()
    for element in elements:
        made.add(element)
    return kind(made)


def in_order(elements: Any) -> float:
    """A number that depends on the order of the elements."""
    result = 0.0
    for element in elements:
        result = result * 3 + (element if isinstance(element, int) else ord(element))
    return result


@pytest.mark.parametrize("elements", [(8, 0), (16, 8, 0), tuple(chr(i) for i in range(97, 110))])
@pytest.mark.parametrize("kind", [set, frozenset])
@pytest.mark.parametrize("read", [in_order, lambda s: in_order(list(s)), lambda s: in_order(v for v in s)])
def test_the_order_of_a_set(kind: type, elements: tuple[Any, ...], read: Callable[[Any], float]) -> None:
    box = Box(elements=made_in_turn(kind, *elements))
    orders = [made_in_turn(kind, *each) for each in itertools.permutations(elements[:3])]
    follows(lambda x: x * read(box.elements), *(setting(box, elements=each) for each in orders))


def test_the_order_of_a_set_given_as_an_argument() -> None:
    static = sg.to_static(lambda x, given: x * in_order(given), backend="eager")
    for given in (made_in_turn(set, 8, 0), made_in_turn(set, 0, 8), frozenset((0, 8)), made_in_turn(frozenset, 8, 0)):
        assert static(X, given).tolist() == (X * in_order(given)).tolist()


def test_keys_that_are_objects() -> None:
    key = Key()
    table = {key: 1}
    follows(lambda x: x * table[key], storing(table, key, 5), table.clear)


def test_keys_that_are_types() -> None:
    table: dict[Any, int] = {int: 1, "s": 2}
    follows(lambda x: x * table[int], storing(table, int, 5))


def test_the_values_of_a_dictionary_that_grows() -> None:
    table = {"a": torch.ones(3)}

    def function(x: Tensor) -> Tensor:
        for value in table.values():
            x = x + value
        return x

    follows(function, storing(table, "b", torch.ones(3) * 2), partial(table.pop, "a"))


def test_the_order_of_a_dictionary() -> None:
    table = {"a": 2, "b": 3}

    def function(x: Tensor) -> Tensor:
        for value in table.values():
            x = x * value + 1
        return x

    follows(function, lambda: table.update(a=table.pop("a")))


def test_views_of_a_dictionary() -> None:
    table = {"a": 1}
    values = table.values()
    follows(lambda x: x * sum(values), storing(table, "a", 5), storing(table, "b", 5))


def test_a_mapping_proxy() -> None:
    table = {"a": 1}
    proxy = types.MappingProxyType(table)
    follows(lambda x: x * proxy["a"], storing(table, "a", 5))


@pytest.mark.parametrize("container", [list(range(5000)), {i: i for i in range(5000)}], ids=["list", "dict"])
def test_large_containers(container: Any) -> None:
    follows(lambda x: x * container[4500], storing(container, 4500, 5))


# ---- methods that are held by themselves
@pytest.mark.parametrize(
    ("make", "bind", "use", "change"),
    [
        (lambda: {"a": 1}, lambda d: d.get, lambda get: get("a"), lambda d: d.update(a=5)),
        (lambda: {"b": 1}, lambda d: d.get, lambda get: get("a", 2), lambda d: d.update(a=5)),
        (lambda: {"a": 1}, lambda d: d.__getitem__, lambda get: get("a"), lambda d: d.update(a=5)),
        (lambda: {"a": 1}, lambda d: d.__len__, lambda length: length(), lambda d: d.update(b=5)),
        (lambda: {"a": 1}, lambda d: d.items, lambda items: sum(v for _, v in items()), lambda d: d.update(b=5)),
        (lambda: [3, 4], lambda a: a.index, lambda index: index(4), lambda a: a.insert(0, 1)),
        (lambda: [3, 4], lambda a: a.count, lambda count: count(4), lambda a: a.append(4)),
        (lambda: [3, 4], lambda a: a.__getitem__, lambda get: get(0), lambda a: a.reverse()),
        (lambda: {3, 4}, lambda a: a.__contains__, lambda has: 2 if has(5) else 1, lambda a: a.add(5)),
        (lambda: collections.deque([3]), lambda a: a.count, lambda count: count(3), lambda a: a.append(3)),
        (lambda: Box(k=2), lambda c: c.__getattribute__, lambda get: get("k"), lambda c: setattr(c, "k", 5)),
        (lambda: {"a": 1}, lambda d: partial(d.get, "a"), lambda get: get(), lambda d: d.update(a=5)),
    ],
)  # fmt: skip
def test_a_method_of_a_container(make: Any, bind: Any, use: Any, change: Any) -> None:
    container = make()
    method = bind(container)
    box = Box(method=method)
    follows(lambda x: x * use(method) + use(box.method), lambda: change(container))
    other = make()
    change(other)
    follows(lambda x: x * use(box.method), setting(box, method=bind(make())), setting(box, method=bind(other)))


def test_a_method_of_a_tensor() -> None:
    weight = torch.ones(3)
    add = weight.add
    follows(lambda x: add(x), lambda: weight.fill_(7.0))


# ---- the standard library's
def test_a_chain_map() -> None:
    first, second = {"k": 1}, {"j": 2}
    chain = collections.ChainMap(first, second)
    follows(
        lambda x: x * chain["j"],
        storing(second, "j", 5),
        storing(first, "j", 7),
        partial(chain.maps.insert, 0, {"j": 9}),
        partial(chain.maps.pop, 0),
    )


def test_a_layer_of_a_chain_map() -> None:
    defaults = {"rate": 2.0}
    layers = Box(settings=collections.ChainMap(defaults))

    def push(**values: float) -> Change:
        return lambda: setting(layers, settings=layers.settings.new_child(values))()

    follows(
        lambda x: x * layers.settings["rate"] + layers.settings.get("bias", 0.0),
        push(rate=3.0),
        push(bias=1.0),
        lambda: setting(layers, settings=layers.settings.parents.parents)(),
        storing(defaults, "rate", 7.0),
    )


def test_an_ordered_dictionary() -> None:
    table = collections.OrderedDict(a=1, b=2)

    def function(x: Tensor) -> Tensor:
        for value in table.values():
            x = x * value + 1
        return x

    follows(function, storing(table, "a", 6), partial(table.move_to_end, "a"))


def test_a_default_dictionary() -> None:
    table: collections.defaultdict[str, int] = collections.defaultdict(int, z=3)
    follows(lambda x: x * table["z"], storing(table, "z", 7))


def test_a_counter() -> None:
    counter = collections.Counter("aab")
    follows(lambda x: x * counter["a"] + counter["z"], partial(counter.update, "aaa"), partial(counter.update, "z"))


def test_a_deque() -> None:
    items = collections.deque([1, 2], maxlen=5)
    follows(
        lambda x: x * items[0] + len(items), partial(items.appendleft, 7), partial(items.append, 8), items.rotate
    )


@pytest.mark.parametrize("items", [bytearray(b"ab"), array.array("i", [1, 2])], ids=["bytearray", "array"])
def test_arrays_of_numbers(items: Any) -> None:
    follows(lambda x: x * items[0], storing(items, 0, 5))


# ---- classes derived from containers
def test_an_attribute_of_a_text() -> None:
    class Text(str):
        rate: int

    text = Text("a")
    text.rate = 2
    follows(lambda x: x * text.rate, setting(text, rate=5))


def test_a_list_with_attributes() -> None:
    class Items(list[int]):
        rate = 2

    items = Items([1])
    follows(lambda x: x * items.rate * items[0], setting(items, rate=5), storing(items, 0, 9), setting(Items, rate=7))


def test_a_dictionary_with_attributes() -> None:
    class Table(dict[str, int]):
        def __getattr__(self, name: str) -> int:
            return self[name]

    table = Table(k=2)
    follows(lambda x: x * table.k, storing(table, "k", 5))


def test_a_user_dictionary() -> None:
    table: collections.UserDict[str, int] = collections.UserDict(k=2)
    follows(lambda x: x * table["k"], storing(table, "k", 5), partial(table.data.update, k=7))


# ---- numpy
def test_a_numpy_array_changed_in_place() -> None:
    numbers = np.arange(6.0)
    follows(
        lambda x: (x * len(numbers), str(numbers.dtype), numbers.flags.writeable),
        setting(numbers, shape=(2, 3)),
        setting(numbers, dtype=np.int64),
        lambda: numbers.setflags(write=False),
    )


def test_a_large_numpy_array() -> None:
    numbers = np.arange(100_000.0)
    follows(lambda x: x * float(numbers[-1]), storing(numbers, -1, 5.0), storing(numbers, 0, 1.0))


def test_a_numpy_array_of_plain_objects() -> None:
    numbers = np.array([1, "a", None], dtype=object)
    follows(lambda x: (x * numbers[0], numbers[1]), storing(numbers, 0, 2), storing(numbers, 1, "b"))


BUFFERS: dict[str, Any] = {
    "memoryview": memoryview(bytearray(b"abc")),
    "ctypes array": (ctypes.c_int * 3)(1, 2, 3),
    "ctypes number": ctypes.c_int(3),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_a_buffer_is_refused(name: str) -> None:
    buffer = BUFFERS[name]
    with pytest.raises(sg.CaptureError, match="whose contents no guard follows"):
        sg.to_static(lambda x: (x, str(buffer)), backend="eager")(X)


def test_a_stream_that_is_read_is_refused() -> None:
    stream = io.StringIO("abc")
    with pytest.raises(sg.CaptureError, match="whose contents no guard follows"):
        sg.to_static(lambda x: (x, stream.getvalue()), backend="eager")(X)


def test_a_numpy_array_of_objects_is_refused() -> None:
    numbers = np.array([[1], [2]], dtype=object)
    numbers[0, 0] = [1]
    with pytest.raises(sg.CaptureError, match="a numpy array of objects"):
        sg.to_static(lambda x: x * numbers[0, 0][0], backend="eager")(X)


def test_an_element_of_an_array() -> None:
    numbers = np.array([1.0, 2.0, 3.0])
    follows(lambda x: x * float(numbers[0]), storing(numbers, 0, 5.0))


def test_an_array_as_a_tensor() -> None:
    numbers = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    follows(lambda x: x * torch.from_numpy(numbers), storing(numbers, 0, 5.0))


def test_an_array_in_a_list() -> None:
    numbers = [np.array([1.0, 2.0, 3.0])]
    follows(
        lambda x: x * float(numbers[0].sum()), storing(numbers[0], 0, 5.0), storing(numbers, 0, np.array([9.0]))
    )


def test_an_array_of_an_object() -> None:
    holder = Box(numbers=np.array([1.0, 2.0, 3.0]))
    follows(
        lambda x: x * float(holder.numbers.sum()),
        storing(holder.numbers, 0, 5.0),
        setting(holder, numbers=np.array([9.0])),
    )


# ---- registries
def test_a_registry_of_functions() -> None:
    registry: dict[str, Callable[[Tensor], Tensor]] = {}

    def register(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        registry[function.__name__] = function
        return function

    @register
    def double(x: Tensor) -> Tensor:
        return x * 2

    @register
    def negate(x: Tensor) -> Tensor:
        return -x

    chosen = ["double"]

    def function(x: Tensor) -> Tensor:
        for name in chosen:
            x = registry[name](x)
        return x

    follows(
        function,
        partial(chosen.append, "negate"),
        storing(registry, "double", negate),
        partial(registry.pop, "negate"),
    )


def test_a_table_of_settings_for_each_type() -> None:
    settings: dict[type, Box] = {nn.ReLU: Box(gain=2.0), nn.Tanh: Box(gain=3.0)}
    activation = Box(made=nn.ReLU())
    follows(
        lambda x: activation.made(x) * settings[type(activation.made)].gain,
        setting(settings[nn.ReLU], gain=5.0),
        setting(activation, made=nn.Tanh()),
        deleting(settings[nn.Tanh], "gain"),
    )


# ---- iterators from outside
def counting() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


@pytest.mark.parametrize(
    "make", [counting, lambda: map(abs, [1, 2, 3]), lambda: zip(counting())], ids=["generator", "map", "zip"]
)
def test_an_iterator_from_outside_is_refused_that_does_something(make: Callable[[], Iterator[Any]]) -> None:
    held = [make()]

    def function(x: Tensor) -> Tensor:
        return x * next(held[0])

    error = refusal(function, X)
    assert error.reason.code == "SG305"
    assert "an iterator from outside the function is advanced" in str(error)


def test_an_iterator_made_inside_starts_anew() -> None:
    items = [1, 2, 3]
    follows(lambda x: x * next(iter(items)), nothing, storing(items, 0, 5))


def test_a_sum_of_what_a_container_holds() -> None:
    items = [1.0, 2.0]
    follows(lambda x: x * total(items), storing(items, 0, 5.0), partial(items.append, 1.0))


class Instances(dict[str, Any]):
    """Makes a new object of what it keeps, each time that it is asked."""

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(key)()


MAKERS: dict[str, Any] = Instances(double=lambda: Doubling())


class Doubling:
    factor = 2.0


def test_a_mapping_that_makes_what_it_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MAKERS, "double", MAKERS.get("double"))
    follows(
        lambda x: x * MAKERS["double"].factor,
        lambda: MAKERS.update(double=lambda: types.SimpleNamespace(factor=5.0)),
        lambda: MAKERS.update(double=lambda: types.SimpleNamespace(factor=7.0)),
    )
