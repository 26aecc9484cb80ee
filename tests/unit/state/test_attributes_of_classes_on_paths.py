"""Attributes that a class gets or loses on some paths only, while its bases may have others of the name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode


def classes(parent: type = object) -> Any:
    class Base(parent):
        best: Any = None
        count = 0
        state = "idle"
        items: Any = ()

        @classmethod
        def keep(cls, x):
            if x.sum() > 0:
                cls.best = x * 2
            return x if cls.best is None else cls.best

        def inherited(self):
            return super().other

    class Mixin:
        other = 3.0

    class Kind(Base):
        def inherited(self):
            return super().best

    class Special(Kind, Mixin):
        pass

    return SimpleNamespace(Base=Base, Mixin=Mixin, Kind=Kind, Special=Special, o=Kind(), special=Special())


def by_a_classmethod(n, x):
    return n.Kind.keep(x)


def by_a_classmethod_of_another(n, x):
    return n.Special.keep(x), n.Kind.best, n.Base.best, n.o.best


def by_its_type(n, x):
    if x.sum() > 0:
        type(n.o).best = x
    return n.o.best


def never_read(n, x):
    if x.sum() > 0:
        n.o.__class__.best = x
    return x


def counts(n, x):
    if x.sum() > 0:
        type(n.o).count += 1
    return x + n.o.count, n.special.count, n.Base.count


def a_text(n, x):
    if x.sum() > 0:
        n.Kind.state = "busy"
    return (x if n.o.state == "idle" else -x), n.special.state == "busy"


def grows(n, x):
    if x.sum() > 0:
        n.Kind.items = (*n.Kind.items, x)
    return len(n.Kind.items)


def of_base_and_class(n, x):
    if x.sum() > 0:
        n.Base.best = x
    if x[0] > 1:
        n.Kind.best = x * 3
    return n.special.best, n.Kind.best, n.Base.best


def of_object_and_class(n, x):
    if x.sum() > 0:
        n.o.best = x
    if x[0] > 1:
        n.Kind.best = x * 3
    return n.o.best, n.special.best


def a_new_name(n, x):
    if x.sum() > 0:
        n.Kind.new = x
    return n.o.new


def a_new_name_of_the_class(n, x):
    if x.sum() > 0:
        n.Kind.new = x
    print("before")
    return n.Special.new


def asks(n, x):
    if x.sum() > 0:
        n.Kind.new = x
    return hasattr(n.o, "new"), hasattr(n.Base, "new"), getattr(n.special, "new", None), getattr(n.Kind, "best", 3)


def catches(n, x):
    if x.sum() > 0:
        n.Kind.new = x
    try:
        return n.special.new + 1
    except AttributeError:
        return x


def in_a_loop(n, x):
    for i in range(int(x.abs().sum())):
        n.Kind.best = x * i
    return n.o.best


def in_some_iterations(n, x):
    for i in range(3):
        if x[0] > i:
            n.Kind.count = n.Kind.count + i
    return x + n.special.count


def deletes(n, x):
    n.Kind.best = x
    if x.sum() > 0:
        del n.Kind.best
    return n.o.best


def deletes_again(n, x):
    if x.sum() > 0:
        n.Kind.best = x
    del n.Kind.best
    return x


def by_super(n, x):
    if x.sum() > 0:
        n.Base.best = x
    return n.o.inherited(), n.special.inherited()


def behind_another(n, x):
    if x.sum() > 0:
        n.Special.other = x
    return n.special.other


def in_both_arms(n, x):
    if x.sum() > 0:
        n.Kind.best = x
    else:
        n.Special.best = x * 5
    return n.Kind.best, n.Special.best


FUNCTIONS = [
    *(by_a_classmethod, by_a_classmethod_of_another, by_its_type, never_read, counts, a_text, grows),
    *(of_base_and_class, of_object_and_class, a_new_name, a_new_name_of_the_class, asks, catches, in_a_loop),
    *(in_some_iterations, deletes, deletes_again, by_super, behind_another, in_both_arms),
]
ONES, LESS, NONE, MORE = map(torch.tensor, ([0.25, 1.0], [-1.0, -1.0], [0.0, 0.0], [2.0, -1.0]))
ORDERS = [(MORE, LESS, NONE), (LESS, ONES, NONE), (NONE, MORE, LESS, MORE)]
NAMES = ("best", "count", "state", "items", "new", "other")


def _state(n: Any) -> Any:
    owners = (n.Base, n.Mixin, n.Kind, n.Special, n.o, n.special)
    return [{name: repr(vars(owner)[name]) for name in NAMES if name in vars(owner)} for owner in owners]


def _outcome(function: Callable[..., Any], n: Any, x: Any, capsys: pytest.CaptureFixture[str]) -> Any:
    try:
        result = repr(function(n, x.clone()))
    except AttributeError as error:
        result = f"{error}, {error.name}"
    return result, _state(n), capsys.readouterr().out


def _run(function: Callable[..., Any], way: str, capsys: Any, orders: Any = ORDERS, parent: type = object) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        for order in orders:
            found = sg.to_static(function, full_graph=way != "segments", backend="eager")
            mine, other = classes(parent), classes(parent)
            for x in order:
                assert _outcome(found, mine, x, capsys) == _outcome(function, other, x, capsys)


@pytest.mark.parametrize("way", ["source", "bytecode"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_as_in_eager(function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]) -> None:
    _run(function, way, capsys)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_without_a_full_graph(function: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    _run(function, "segments", capsys, ORDERS[:1])


@pytest.mark.parametrize("function", [by_a_classmethod, counts, a_new_name, of_object_and_class, by_super])
def test_classes_of_modules(function: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    _run(function, "source", capsys, ORDERS[1:], torch.nn.Module)


def test_one_program_serves_the_path_that_leaves_it() -> None:
    n, found = classes(), sg.to_static(by_its_type, backend="eager")
    for x in (LESS, NONE, MORE):
        found(n, x)
    assert len(found.programs) == 1
    assert torch.equal(n.Kind.best, MORE)
    assert n.Base.best is None


# ---- refused
def a_method(n, x):
    if x.sum() > 0:
        n.Kind.keep = lambda self: x
    return x


def looked_at(n, x):
    if x.sum() > 0:
        n.Kind.new = x
    return sorted(vars(n.Kind))


def looked_at_before(n, x):
    held = n.Kind.__dict__
    if x.sum() > 0:
        n.Kind.new = x
    return "new" in held


class Answers(type):
    def __getattr__(cls, name):
        return 3


class Answered(metaclass=Answers):
    pass


class Special:
    pass


class Asked(Special):
    def __getattr__(self, name):
        return 5


def of_a_metaclass(n, x):
    if x.sum() > 0:
        Answered.new = x
    return Answered.new


def of_a_subclass_that_answers(n, x):
    if x.sum() > 0:
        Special.new = x
    return Asked().new


REFUSED = [a_method, looked_at, looked_at_before, of_a_metaclass, of_a_subclass_that_answers]


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_what_nobody_is_told_of_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(sg.CaptureError) as raised:
        sg.to_static(function, backend="eager")(classes(), MORE)
    assert raised.value.reason.code == "SG204"
