"""``f(**options)`` of a dict with keys that are there on some paths only."""

from __future__ import annotations

import collections
import dataclasses
import functools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree

INPUTS = [(torch.tensor(each),) for each in ([1.0, 2.0], [-1.0, -2.0], [3.0, -5.0], [-3.0, 5.0])]


def scaled(x: Tensor, scale: Any = 1.0, mask: Tensor | None = None, **rest: Any) -> Tensor:
    y = x * scale
    if mask is not None:
        y = y + mask
    if "extra" in rest:
        y = y + rest["extra"]
    for name, _ in rest.items():
        y = y * 2 if name == "twice" else y
    return y


def handing_on(*args: Any, **kwargs: Any) -> Tensor:
    if "old" in kwargs:
        kwargs["mask"] = kwargs.pop("old")
    return scaled(*args, **kwargs)


class Handing(nn.Module):
    def forward(self, x: Tensor, mask: Tensor | None = None, **rest: Any) -> Tensor:
        return handing_on(x, mask=mask, **rest)


MODULE = Handing()


def options(x: Tensor) -> dict[str, Any]:
    made: dict[str, Any] = {"scale": 2.0}
    if x.sum() > 0:
        made["mask"] = x * 3
    if x[0] > 0:
        made["extra"] = x * 5
    return made


def of_a_function(x: Tensor) -> Any:
    return scaled(x, **options(x))


def through_another(x: Tensor) -> Any:
    return handing_on(x, **options(x))


def under_an_old_name(x: Tensor) -> Any:
    made: dict[str, Any] = {}
    if x.sum() > 0:
        made["old"] = x * 3
    return handing_on(x, **made)


def of_a_module(x: Tensor) -> Any:
    return MODULE(x, **options(x))


def of_torch(x: Tensor) -> Any:
    made: dict[str, Any] = {}
    if x.sum() > 0:
        made["alpha"] = 3
    return torch.add(x, x, **made)


class Kept:
    def __init__(self, value: Tensor, by: Any = 1) -> None:
        self.value = value * by


def of_a_class(x: Tensor) -> Any:
    made = {}
    if x.sum() > 0:
        made["by"] = x
    return Kept(x, **made).value


def of_a_lambda(x: Tensor) -> Any:
    made = {}
    if x.sum() > 0:
        made["a"] = 2
    return (lambda **rest: len(rest))(**made), len(dict(b=1, **made))


def beside_others(x: Tensor) -> Any:
    return scaled(x, **{"scale": 3.0, **options(x)}, twice=x)


@dataclasses.dataclass
class Settings:
    by: int = 1
    name: str = "a"


SETTINGS = Settings()
Pair = collections.namedtuple("Pair", "first second", defaults=(5,))


@torch.no_grad()
def under_a_mode(x: Tensor, by: int = 1, **rest: Any) -> Any:
    return x * by + len(rest)


@functools.singledispatch
def dispatching(x: Any, by: int = 1) -> Any:
    return by


def counted(depth: int, **rest: Any) -> int:
    return len(rest) if depth == 0 else counted(depth - 1, **rest)


class Hooked(nn.Module):
    def forward(self, x: Tensor, **rest: Any) -> Tensor:
        return x * (1 + len(rest))


HOOKED = Hooked()
HOOKED.register_forward_pre_hook(lambda module, args, kwargs: (args, {**kwargs, "z": 1}), with_kwargs=True)


def _by(x: Tensor) -> dict[str, Any]:
    made = {}
    if x.sum() > 0:
        made["by"] = 7
    return made


def of_what_python_makes(x: Tensor) -> Any:
    made = {}
    if x.sum() > 0:
        made["second"] = 7
    return dataclasses.replace(SETTINGS, **_by(x)).by, Pair(first=1, **made).second, made


def of_decorated(x: Tensor) -> Any:
    return under_a_mode(x, **_by(x)), under_a_mode(x, **options(x)).sum(), dispatching(x, **_by(x))


def of_recursion(x: Tensor) -> Any:
    return counted(3, **_by(x))


def of_a_hooked_module(x: Tensor) -> Any:
    return HOOKED(x, **_by(x)), HOOKED.forward(x, **_by(x))


def of_a_partial(x: Tensor) -> Any:
    return functools.partial(scaled, x, **options(x))(), functools.partial(scaled, x)(**options(x))


FUNCTIONS = [
    *(of_what_python_makes, of_decorated, of_recursion, of_a_hooked_module, of_a_partial),
    *(of_a_function, through_another, under_an_old_name, of_a_module, of_torch, of_a_class, of_a_lambda),
    beside_others,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_each_path_calls_with_its_own(function: Any) -> None:
    agree(function, *INPUTS)


def in_python(by: int) -> int:
    open("/dev/null").close()  # what no program does
    return by


def with_python_in_between(x: Tensor) -> Any:
    try:
        return in_python(**_by(x))
    except TypeError:
        return 0


class Counting(type):
    def __call__(cls, *args: Any, **rest: Any) -> Any:
        return super().__call__(*args, **rest)


class Counted(metaclass=Counting):
    def __init__(self, by: int = 1) -> None:
        self.by = by


def of_a_metaclass(x: Tensor) -> Any:
    return Counted(**_by(x)).by


WITH_PYTHON = [with_python_in_between, of_a_metaclass, *FUNCTIONS]


@pytest.mark.parametrize("function", WITH_PYTHON, ids=lambda each: each.__name__)
def test_without_a_full_graph_no_path_goes_on_as_another(function: Any) -> None:
    static = sg.to_static(function, full_graph=False)
    for (x,) in (*INPUTS, *INPUTS):
        assert str(static(x)) == str(function(x))
