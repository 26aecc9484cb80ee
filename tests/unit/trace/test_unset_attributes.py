"""Attributes that an object made by the function has on some paths only: they are looked at where they are read."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.front_ends import through_bytecode


class Config:
    def scale(self):
        return getattr(self, "factor", 7)


DEFAULTS = Config()
DEFAULTS.base = 1


def never_read(x):
    made = copy.deepcopy(DEFAULTS)
    if x.sum() > 0:
        made.size = x.shape[0]
    return x + made.base


def with_a_default(x):
    made = copy.deepcopy(DEFAULTS)
    if x.sum() > 0:
        made.size = x.shape[0]
    return x + getattr(made, "size", 0)


def asked_first(x):
    made = Config()
    if x.sum() > 0:
        made.kept = [x, x * 2]
    if hasattr(made, "kept"):
        return made.kept[1], hasattr(made, "kept")
    return x - 1, hasattr(made, "other")


def read(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x * 2
    print("before")
    return made.kept + 1


def read_elsewhere(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x * 2
    return _add(made, x)


def _add(made, x):
    return torch.stack([made.kept, x])


def caught(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x * 2
    try:
        return made.kept + 1
    except AttributeError:
        return x - 1


def texts(x):
    made = Config()
    if x.sum() > 0:
        made.status = "done"
    return getattr(made, "status", None)


def in_a_loop(x):
    made = Config()
    for i in range(int(x.abs().sum())):
        if x[0] > i:
            made.best = x * i
    return getattr(made, "best", x)


def deleted(x):
    made = Config()
    made.kept = x
    if x.sum() > 0:
        del made.kept
    return getattr(made, "kept", x * 3)


def deleted_once_more(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x
    del made.kept
    return x, hasattr(made, "kept")


def set_on_two_ways(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x
    if x[0] > 1:
        made.kept = x + 1
    return getattr(made, "kept", -x)


def in_a_method(x):
    made = Config()
    if x.sum() > 0:
        made.factor = 5
    return made.scale() * x


def copied(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x * 2
    return getattr(copy.copy(made), "kept", 0)


def its_list_with_a_default(x):
    made = Config()
    if x.sum() > 0:
        made.kept = [x, x * 2]
    kept = getattr(made, "kept", None)
    return x if kept is None else kept[1]


FUNCTIONS = [
    its_list_with_a_default,
    *(never_read, with_a_default, asked_first, read, read_elsewhere, caught, texts, in_a_loop, deleted),
    *(deleted_once_more, set_on_two_ways, in_a_method, copied),
]
INPUTS = [torch.tensor([2.0, 1.0]), torch.tensor([-1.0, -1.0]), torch.tensor([0.5, 1.5]), torch.tensor([2.0, -3.0])]


def _outcome(function: Callable[..., Any], x: torch.Tensor, capsys: pytest.CaptureFixture[str]) -> Any:
    try:
        result = repr(function(x.clone()))
    except AttributeError as error:
        result = type(error), str(error)
    return result, capsys.readouterr().out


@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_as_in_eager(function: Callable[..., Any], way: str, capsys: pytest.CaptureFixture[str]) -> None:
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        found = sg.to_static(function, full_graph=way != "segments", backend="eager")
        for x in INPUTS:
            assert _outcome(found, x, capsys) == _outcome(function, x, capsys)


def test_the_error_tells_the_name() -> None:
    with pytest.raises(AttributeError) as caught:
        sg.to_static(read, backend="eager")(INPUTS[1])
    assert caught.value.name == "kept"


def test_gradients_go_through_what_has_a_value() -> None:
    found = sg.to_static(with_a_default_of_tensors, backend="eager")
    for x in INPUTS:
        taken = [x.clone().requires_grad_() for _ in range(2)]
        for function, each in zip((found, with_a_default_of_tensors), taken):
            function(each).sum().backward()
        assert torch.equal(taken[0].grad, taken[1].grad)


def with_a_default_of_tensors(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x.sin()
    return getattr(made, "kept", x * 3) * x


def returned(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x
    return made


def all_of_it(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x
    return sorted(vars(made))


def its_dictionary(x):
    made = Config()
    if x.sum() > 0:
        made.kept = x
    return "kept" in made.__dict__


def its_dictionary_before(x):
    made = Config()
    held = made.__dict__
    if x.sum() > 0:
        made.kept = x
    return len(held)


def test_who_has_its_dictionary_is_not_told() -> None:
    with pytest.raises(sg.CaptureError, match="whose __dict__ is looked at"):
        sg.to_static(its_dictionary_before, backend="eager")(INPUTS[0])


@pytest.mark.parametrize("function", [returned, all_of_it, its_dictionary], ids=lambda function: function.__name__)
def test_what_looks_at_all_that_it_has_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(sg.CaptureError, match="'kept' on some paths only") as caught:
        sg.to_static(function, backend="eager")(INPUTS[0])
    assert caught.value.reason.code == "SG204"
