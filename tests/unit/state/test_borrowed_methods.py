"""Classes whose attributes are set and deleted by methods of containers, as ``dotdict`` does, or by other things."""

from __future__ import annotations

import collections
import functools
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.state.stories import XS, Static, story


class DotDict(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


class Ordered(collections.OrderedDict):
    __getattr__ = collections.OrderedDict.__getitem__
    __setattr__ = collections.OrderedDict.__setitem__
    __delattr__ = collections.OrderedDict.__delitem__


class Unbound(dict):
    """Calls the methods of its base by the base's name."""

    __getattr__ = dict.__getitem__

    def __setattr__(self, name: str, value: Any) -> None:
        dict.__setitem__(self, name, value)

    def __delattr__(self, name: str) -> None:
        dict.__delitem__(self, name)


class Counting(dict):
    """Counts what is stored by itself, and lets attributes past that."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__

    def __setitem__(self, key: str, value: Any) -> None:
        dict.__setitem__(self, "stored", self.get("stored", 0) + 1)
        super().__setitem__(key, value)


class Half(dict):
    """Only what deletes is the container's."""

    __delattr__ = dict.__delitem__

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


KINDS = [DotDict, Ordered, Unbound, Counting, Half]


@pytest.mark.parametrize("kind", KINDS)
@story(programs=1)
def test_numbers_and_tensors_are_kept(static: Static, kind: type) -> Any:
    held: Any = kind(n=0, last=0.0, h=torch.zeros(3))

    def f(x: Tensor) -> Tensor:
        held.n += 1
        held.last = x.mean().item()
        held.h = held.h + x
        return held.h * held.n

    g = static(f)
    return [(g(x), list(held.items()), type(held["last"])) for x in XS[:4]]


@pytest.mark.parametrize("kind", KINDS)
@story(programs=1)
def test_what_is_stored_on_one_path(static: Static, kind: type) -> Any:
    held: Any = kind(best=-1.0, h=torch.zeros(3))

    def f(x: Tensor) -> Tensor:
        value = x.mean().item()
        if value > held.best:
            held.best = value
            held.h = x * 2
        return held.h + held.best

    g = static(f)
    return [(g(x), list(held.items())) for x in XS[:4]]


@pytest.mark.parametrize("kind", KINDS)
@story(programs=3)
def test_attributes_come_and_go(static: Static, kind: type) -> Any:
    held: Any = kind(a=1.0)

    def f(x: Tensor) -> Any:
        if "a" in held:
            result = held.a
            del held.a
        else:
            held.a = 2.0
            result = 0
        return x + result

    g = static(f)
    return [(g(x), list(held.items())) for x in XS[:3]]


@pytest.mark.parametrize("kind", KINDS)
@story(programs=2)
def test_built_in_functions_do_the_same(static: Static, kind: type) -> Any:
    held: Any = kind(n=0, gone=1)

    def f(x: Tensor) -> Any:
        for name in ("n", "gone"):
            setattr(held, name, held.n + 1)
        delattr(held, "gone")
        held["gone"] = x.sum()
        return x * held.n

    g = static(f)
    return [(g(x), list(held.items())) for x in XS[:3]]


@story(programs=3)
def test_methods_called_by_their_class(static: Static) -> Any:
    held, items = {"n": 0}, [1.0, 2.0]

    def f(x: Tensor) -> Tensor:
        dict.__setitem__(held, "n", held["n"] + 1)
        dict.update(held, h=x * 2)
        if x.sum() > 0:
            list.__setitem__(items, 0, x.mean().item())
            dict.pop(held, "h")
        return x * held["n"] + items[0]

    g = static(f)
    return [(g(x), list(held), held["n"], list(items)) for x in XS[:4]]


@story(programs=1)
def test_a_deleter_of_the_users_is_followed(static: Static) -> Any:
    class Box:
        def __init__(self) -> None:
            self.deleted = 0
            self.a = 1.0

        def __delattr__(self, name: str) -> None:
            self.deleted += 1
            super().__delattr__(name)

    class Kept:
        def __init__(self) -> None:
            self.value: Any = 3.0

        @property
        def v(self) -> Any:
            return self.value

        @v.deleter
        def v(self) -> None:
            self.value = None

    box, kept = Box(), Kept()

    def f(x: Tensor) -> Tensor:
        box.a = x.sum()
        del box.a
        del kept.v
        return x * box.deleted

    g = static(f)
    return [(g(x), vars(box).copy(), kept.value) for x in XS[:3]]


@story(programs=3)
def test_an_attribute_made_and_deleted_is_gone_whatever_was_there(static: Static) -> Any:
    class Box:
        a: Any

    box = Box()

    def f(x: Tensor) -> Tensor:
        box.a = x.sum()
        del box.a
        return x

    def g(x: Tensor) -> Tensor:
        del box.a
        return x

    made, deleted, told = static(f), static(g), []
    for there in (False, True, True, False):
        if there:
            box.a = 1.0
        told.append((made(XS[0]), vars(box).copy()))
    for there in (True, True, False):
        if there:
            box.a = 1.0
        try:
            told.append((deleted(XS[0]), vars(box).copy()))
        except AttributeError as error:
            told.append((str(error), vars(box).copy()))
    return told


def _store(target: Any, name: str, value: Any) -> None:
    target.__dict__[name] = value


@pytest.mark.parametrize("own", [functools.partial(print), dict.setdefault, staticmethod(_store)])
def test_what_else_stores_is_refused_before_it_does(own: Any, capsys: pytest.CaptureFixture[str]) -> None:
    box: Any = type("Box", (), {"__setattr__": own})()

    def f(x: Tensor) -> Tensor:
        box.h = x * 2
        return x

    with pytest.raises(sg.CaptureError, match="SG305") as caught:
        sg.to_static(f, backend="eager")(XS[0])
    assert caught.value.location is not None
    assert not vars(box)
    assert not capsys.readouterr().out


def test_a_dict_that_is_changed_by_reading_it_is_refused_and_put_back() -> None:
    class Popping(dict):
        __getattr__ = dict.pop

    popping = Popping(a=2.0, b=3.0)

    def f(x: Tensor) -> Tensor:
        return x * popping.a

    with pytest.raises(sg.CaptureError, match="SG305"):
        sg.to_static(f, backend="eager")(XS[0])
    assert popping == {"a": 2.0, "b": 3.0}
