"""What is written to an object's ``__dict__``, as ``vars(o)`` gives it, is written to its attributes."""

from __future__ import annotations

import argparse
import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # of what is left to plain PyTorch

XS = [*(torch.ones(2) * i for i in range(4)), torch.zeros(2), torch.ones(2)]


class Tracker:
    def __init__(self) -> None:
        self.wait = 0

    def update(self, bad: Any, **info: Any) -> int:
        if not bad:
            self.wait = 0
            self.__dict__.update(info)
        else:
            self.wait += 1
        return self.wait


class Options(dict):  # type: ignore[type-arg]
    """The idiom of a dict whose items are its attributes."""

    def __init__(self, **items: Any) -> None:
        super().__init__(**items)
        self.__dict__ = self
        self.setdefault("wait", 0)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wait = 1
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 1:
            self.__dict__["wait"] += 1
        else:
            self.wait = 0
        self.__dict__.update(rate=3)
        return x * self.wait + self.rate


@dataclasses.dataclass
class Point:
    wait: int = 1
    rate: float = 2.0


class Filled:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def updated_in_an_arm(o: Any, x: Tensor) -> Any:
    return Tracker.update(o, x.sum() > 1)


def set_by_a_number(o: Any, x: Tensor) -> Any:
    if float(x[0]) < 2:
        o.wait = 0
        o.__dict__.update({})
        return True
    o.wait += 1
    return o.wait


def set_in_both_arms(o: Any, x: Tensor) -> Any:
    attributes = vars(o)
    if x.sum() > 1:
        attributes["wait"] += 1
    else:
        o.wait = 7
    return attributes["wait"], o.wait, len(attributes)


def set_twice_in_an_arm(o: Any, x: Tensor) -> Any:
    if x.sum() < 2:
        o.wait = 0
        o.__dict__["wait"] = 3
    else:
        o.wait += 1
    return o.wait


def updated_with_pairs(o: Any, x: Tensor) -> Any:
    if x.sum() > 1:
        vars(o).update([("wait", 3)])
    else:
        o.wait = 4
    return o.wait


def merged(o: Any, x: Tensor) -> Any:
    attributes = vars(o)
    if x.sum() > 1:
        attributes |= {"wait": 8}
    else:
        o.wait += 4
    return o.wait


def in_a_loop(o: Any, x: Tensor) -> Any:
    attributes = vars(o)
    while x.sum() < 5:
        attributes["wait"] += 1
        o.wait += 1
        x = x + 1
    return o.wait, attributes["wait"]


def in_a_try(o: Any, x: Tensor) -> Any:
    attributes = vars(o)
    try:
        attributes["wait"] = 50
        if x.sum() > 1:
            raise ValueError
        o.wait += 1
    except ValueError:
        attributes["wait"] += 1
    return o.wait


def past_the_class(o: Any, x: Tensor) -> Any:
    made = Tracker()
    attributes, others = (object.__getattribute__(each, "__dict__") for each in (o, made))
    if x.sum() > 1:
        attributes["wait"] = 50
        others["wait"] = 3
    else:
        o.wait += 1
        made.wait = 5
    return o.wait, made.wait


def in_turn(o: Any, x: Tensor) -> Any:
    o.best = x.sum().item()
    o.__dict__.update(n=len(x))
    vars(o)["k"] = o.n + 1
    o.__dict__.pop("k")
    return list(o.__dict__), o.__dict__["n"], o.__dict__.get("no", 3), "best" in o.__dict__


def of_what_is_made(o: Any, x: Tensor) -> Any:
    made = Filled(wait=x.sum(), n=2)
    if x.sum() > 1:
        made.__dict__["n"] += 1
    else:
        made.n = 9
    return made.wait, made.n, vars(made)


def made_in_an_arm(o: Any, x: Tensor) -> Any:
    made = Filled(wait=x.sum(), n=2) if x.sum() > 1 else Filled(wait=x.sum(), n=3)
    return made.wait + made.n


def of_a_namespace(o: Any, x: Tensor) -> Any:
    made = argparse.Namespace(n=1, **vars(o))
    if x.sum() > 1:
        vars(made)["n"] = 5
    else:
        made.wait += 1
    return made.n, made.wait


def of_a_copy(o: Any, x: Tensor) -> Any:
    made = copy.copy(o)
    if x.sum() > 1:
        vars(made).update(wait=30)
    else:
        made.wait += 2
    o.wait += 1
    return made.wait


def of_a_dataclass(o: Any, x: Tensor) -> Any:
    made = Point()
    for name in ("wait", "rate"):
        if x.sum() > 1:
            made.__dict__[name] = made.__dict__[name] + 1
    o.wait = made.wait
    return made.wait, made.rate, dataclasses.asdict(made)


def of_a_function(o: Any, x: Tensor) -> Any:
    def function() -> Any:
        return function.k  # type: ignore[attr-defined]

    if x.sum() > 1:
        function.__dict__["k"] = 3
    else:
        function.k = 4  # type: ignore[attr-defined]
    return function()


def given_beside(o: Any, x: Tensor) -> Any:
    return _beside(vars(o), o, x)


def _beside(attributes: Any, o: Any, x: Tensor) -> Any:
    attributes["wait"] = attributes["wait"] + 1
    if x.sum() > 1:
        attributes["wait"] = 4
    else:
        o.wait = o.wait + 2
    return attributes["wait"], o.wait


def given_a_dictionary(o: Any, x: Tensor) -> Any:
    attributes = {"wait": 1}
    made = Tracker()
    made.__dict__ = attributes
    if x.sum() > 1:
        made.wait += 1
    else:
        attributes["wait"] = 9
    return made.wait, attributes


def made_in_one_arm(o: Any, x: Tensor) -> Any:
    if x.sum() < 1:
        o.__dict__.update(n=1)
    else:
        o.wait += 1
    return o.wait


def made_and_left(o: Any, x: Tensor) -> Any:
    if x.sum() < 1:
        vars(o)["k"] = 1
        return True
    o.wait += 1
    return o.wait


def told_more_in_an_arm(o: Any, x: Tensor) -> Any:
    return Tracker.update(o, x.sum() > 1, n=len(x))


def deleted_in_an_arm(o: Any, x: Tensor) -> Any:
    attributes = o.__dict__
    attributes["k"] = 1
    if x.sum() > 1:
        del attributes["k"]
    else:
        o.wait = 7
    return getattr(o, "k", None), len(attributes)


def emptied_in_an_arm(o: Any, x: Tensor) -> Any:
    o.n = 3
    attributes = vars(o)
    if x.sum() > 1:
        attributes.clear()
        attributes["wait"] = 1
    return attributes["wait"], len(attributes)


def replaced(o: Any, x: Tensor) -> Any:
    o.__dict__ = {"wait": 5}
    o.wait += 1
    return dict(vars(o)), hasattr(o, "n")


def replaced_in_an_arm(o: Any, x: Tensor) -> Any:
    if x.sum() > 1:
        o.__dict__ = {"wait": 5}
    o.wait += 1
    return dict(vars(o))


WHOLE = [
    *(updated_in_an_arm, set_by_a_number, set_in_both_arms, set_twice_in_an_arm, updated_with_pairs, merged, in_a_loop),
    *(in_a_try, past_the_class, in_turn, of_what_is_made, made_in_an_arm, of_a_namespace, of_a_copy, of_a_dataclass),
    *(of_a_function, given_beside, given_a_dictionary),
]
REFUSED = [
    *(made_in_one_arm, made_and_left, told_more_in_an_arm, deleted_in_an_arm, emptied_in_an_arm, replaced),
    replaced_in_an_arm,
]


def _calls(function: Callable[..., Any], kept: Any) -> list[tuple[str, str]]:
    return [(str(function(kept, x)), str(list(vars(kept).items()))) for x in XS]


@pytest.mark.parametrize("made", [Tracker, lambda: argparse.Namespace(wait=1), Point], ids=["own", "namespace", "data"])
@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_a_full_graph_writes_attributes(function: Callable[..., Any], made: Callable[[], Any]) -> None:
    assert _calls(sg.to_static(function, backend="eager"), made()) == _calls(function, made())


@pytest.mark.parametrize("function", [*WHOLE, *REFUSED], ids=lambda f: f.__name__)
def test_without_a_full_graph_nothing_is_refused(function: Callable[..., Any]) -> None:
    assert _calls(sg.symbolic_trace(function), Tracker()) == _calls(function, Tracker())


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_a_full_graph_refuses_and_leaves_the_object_alone(function: Callable[..., Any]) -> None:
    kept = Tracker()
    with pytest.raises(sg.CaptureError) as told:
        sg.to_static(function, backend="eager")(kept, XS[0])
    assert told.value.reason.code in ("SG204", "SG305")
    assert vars(kept) == {"wait": 0}


def set_as_item_and_attribute(o: Any, x: Tensor) -> Any:
    if x.sum() > 1:
        o.wait += 1
        o["wait"] = o.wait + 1
    else:
        o.wait += 7
    return o.wait


def set_as_item_or_attribute(o: Any, x: Tensor) -> Any:
    if x.sum() > 1:
        o["wait"] += 1
    else:
        o.wait = 7
    return o.wait, o["wait"]


def set_on_a_new_one(o: Any, x: Tensor) -> Any:
    made = Options(n=1)
    if x.sum() > 1:
        made["n"] += 1
    else:
        made.n = 7
    return made.n, made["n"], dict(made)


@pytest.mark.parametrize("mode", [lambda f: sg.to_static(f, backend="eager"), sg.symbolic_trace], ids=["full", "parts"])
@pytest.mark.parametrize(
    "function", [set_as_item_and_attribute, set_as_item_or_attribute, set_on_a_new_one], ids=lambda f: f.__name__
)
def test_a_dict_that_is_its_own_dictionary(function: Callable[..., Any], mode: Callable[..., Any]) -> None:
    assert _calls(mode(function), Options()) == _calls(function, Options())


@pytest.mark.parametrize("mode", [lambda f: sg.to_static(f, backend="eager"), sg.symbolic_trace], ids=["full", "parts"])
def test_a_modules_dictionary(mode: Callable[..., Any]) -> None:
    eager, static = Counting(), Counting()
    called = mode(static)
    for x in XS:
        assert torch.equal(called(x), eager(x))
        assert (static.wait, static.rate) == (eager.wait, eager.rate)
