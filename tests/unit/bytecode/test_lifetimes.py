"""Objects live as long between segments as the variables of Python's own frames would hold them."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import Any

import pytest
import torch

from tests.unit.bytecode.segmented import CALLS, Record, agrees, count, segments, to_partial


class Thing:
    def __init__(self, value: int = 1) -> None:
        self.value = value


class Dies:
    """Prints when it is gone."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __del__(self) -> None:
        print("gone", self.name)


def folder(x: Any) -> Any:
    made = tempfile.TemporaryDirectory()
    path = made.name
    print("x")
    return os.path.exists(path), x * 2


def referred(x: Any) -> Any:
    thing = Thing()
    reference = weakref.ref(thing)
    print("x")
    y = x + 1
    print("y")
    return reference() is None, y


def deleted(x: Any) -> Any:
    thing = Thing()
    reference = weakref.ref(thing)
    print("x")
    y = x + 1
    del thing
    print("y", reference() is None)
    return y


def rebound(x: Any) -> Any:
    thing: Any = Thing()
    reference = weakref.ref(thing)
    print("x")
    thing = None
    return reference() is None, x + 1


def deleted_at_once(x: Any) -> Any:
    thing = Thing()
    reference = weakref.ref(thing)
    del thing
    return reference() is None, x + 1


def in_an_attribute(x: Any) -> Any:
    outer, inner = Thing(), Thing()
    outer.inner = inner  # type: ignore[attr-defined]
    reference = weakref.ref(inner)
    del inner
    print(reference() is None)
    outer.inner = None  # type: ignore[attr-defined]
    return reference() is None, x


def finalized(x: Any) -> Any:
    thing = Thing()
    weakref.finalize(thing, print, "gone")
    print("x")
    del thing
    print("y")
    return x + 1


def called_back(x: Any) -> Any:
    thing = Thing()
    reference = weakref.ref(thing, lambda _: print("gone"))
    print("x")
    del thing
    print("y", reference() is None)
    return x + 1


def printing(x: Any) -> Any:
    first, second = Dies("1"), Dies("2")
    print("a", first.name)
    y = x + 1
    del second
    print("b")
    return y


def printing_again(x: Any) -> Any:
    made = Dies("1")
    print("a")
    made = Dies("2")
    print("b", made is not None)
    return x + 1


def in_a_loop(x: Any) -> Any:
    for i in range(3):
        made = Dies(str(i))
        x = x + 1
        print("turn", made is not None)
    print("end")
    return x


def _inner(x: Any) -> Any:
    made = Dies("inner")
    y = x * 2
    print("in", made is None)
    return y + 1


def called(x: Any) -> Any:
    y = _inner(x)
    print("out")
    return y


def in_a_list(x: Any) -> Any:
    made = [Dies("1")]
    print("a")
    made.clear()
    print("b")
    return x


def of_a_generator(x: Any) -> Any:
    def counted() -> Any:
        try:
            yield 1
            yield 2
        finally:
            print("closed")

    numbers = counted()
    first = next(numbers)
    print("a")
    x = x + first
    print("b")
    return x


def in_weak_containers(x: Any) -> Any:
    values: Any = weakref.WeakValueDictionary()
    members: Any = weakref.WeakSet()
    thing = Thing()
    values["a"] = thing
    members.add(thing)
    print(len(values), len(members))
    del thing
    return len(values), len(members), x


def of_weak_containers(x: Any) -> Any:
    values = weakref.WeakValueDictionary({"a": Thing()})
    members = weakref.WeakSet([Thing(), Thing()])
    print("made")
    return len(values), len(members), x + 1


def by_a_proxy(x: Any) -> Any:
    thing = Thing(3)
    proxy = weakref.proxy(thing)
    print("x")
    return x * proxy.value


_OF_LIFETIMES = [
    *(folder, referred, deleted, rebound, deleted_at_once, in_an_attribute, finalized, called_back, printing),
    *(printing_again, in_a_loop, called, in_a_list, of_a_generator, in_weak_containers, of_weak_containers, by_a_proxy),
]


@pytest.mark.parametrize("function", _OF_LIFETIMES, ids=lambda each: each.__name__)
def test_as_in_eager(function: Any) -> None:
    agrees(lambda record: function, *CALLS, times=5, settled=3)


# ---- what it does not cost
def _ordinary(x: Any) -> Any:
    layer = torch.nn.functional.relu
    parts = [x * i for i in range(3)]
    names, size = ["a", "b"], x.shape
    table = {"first": parts[0], "size": size}
    y = layer(x).sum() + table["first"].sum() + len(names)
    print(y.item())
    z = x * 2
    print(z.sum().item())
    return z + 1


def test_plain_values_are_not_handed_on() -> None:
    static = agrees(lambda record: _ordinary, *CALLS)
    assert count(static) == segments(static)
    for part in static.plan.parts:
        (frame,) = part
        names = [frame.code.co_varnames[slot] for slot in frame.slots]
        assert names in (["x"], ["z"]), names


def test_what_is_not_read_any_more_is_not_guarded() -> None:
    record: list[Any] = []

    def f(x: Any, things: list[Thing]) -> Any:
        thing = things[0]
        value = thing.value
        print(value)
        x = x + 1
        print("end")
        return x

    static = to_partial(f)
    held = [Thing(1)]
    for _ in range(4):
        held[0] = Thing(1)
        record.append(static(torch.ones(2), held).tolist())
    assert record == [[2.0, 2.0]] * 4
    assert [len(part.programs) for part in static.plan.parts.values()] == [1]


def test_a_variable_that_is_not_read_any_more_may_hold_anything(capsys: Any) -> None:
    gone: list[bool] = []

    def make(record: Record) -> Any:
        def f(x: Any, make_thing: Any) -> Any:
            thing = make_thing()  # noqa: F841  # nobody reads it: that is what is tested
            print("made")
            y = x + 1
            print("used")
            return y

        return f

    static = to_partial(make(gone.append))
    x = torch.ones(2)
    for maker in (int, int, int, lambda: Dies("late"), int, lambda: Dies("late")):
        static(x, maker)
        late = [] if maker is int else ["gone late"]
        assert capsys.readouterr().out.split("\n")[:-1] == ["made", "used", *late]
