"""The harness itself: eager passes for a static function, and each way of being wrong is seen."""
from __future__ import annotations

import collections
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.cases.case import Case, all_cases
from tests.cases.compare import assert_same
from tests.cases.devices import checked_on
from tests.cases.harness import check_static


class Counted:
    """A callable that claims to hold a number of programs."""

    def __init__(self, function: Callable[..., Any], programs: int = 1) -> None:
        self.function = function
        self.programs = programs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def cache_info(self) -> SimpleNamespace:
        return SimpleNamespace(programs=self.programs)


def eager(target: Any, input_spec: object) -> Any:
    """A conversion that changes nothing."""
    if isinstance(target, nn.Module):
        target.forward = Counted(target.forward)
        return target
    return Counted(target)


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=n) for n, c in all_cases().items() if c.capture_refused is None]
)
def test_eager_passes_for_a_static_function(case: Case) -> None:
    check_static(case, convert=eager)


def double(x: Tensor) -> Tensor:
    return x * 2


def returned(x: Tensor) -> Tensor:
    return x


def raising(x: Tensor) -> Tensor:
    raise ValueError("no")


def number(x: Tensor) -> float:
    return float(x.sum())


def printing(x: Tensor) -> Tensor:
    print("seen")
    return x * 2


def writing(x: Tensor) -> Tensor:
    return x.mul_(2)


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        (double, lambda x: x * 3, "Tensor-likes are not close"),
        (double, lambda x: x.double() * 2, "dtype"),
        (double, lambda x: (x * 2)[None], r"float32\[1, 2\]"),
        (double, lambda x: [x * 2], "list"),
        (double, raising, "raises ValueError: no"),
        (raising, double, "eager raises ValueError"),
        (raising, lambda x: {}["no"], "raises KeyError"),
        (number, lambda x: x.sum(), "eager gives float"),
        (printing, double, "prints ''"),
        (writing, double, "arguments returned"),
        (returned, lambda x: x + 0, "arguments returned"),
        (double, lambda x: x.detach() * 2, "does not require a gradient"),
        (double, lambda x: x * 1.5 + (x * 0.5).detach(), "gradient: Tensor-likes"),
    ],
)
def test_a_wrong_static_function_is_seen(right: Callable[..., Any], wrong: Callable[..., Any], says: str) -> None:
    case = Case("it", lambda: right, [(torch.tensor([1.0, 2.0]),)], grad=right not in (writing, number))
    with pytest.raises(AssertionError, match=says):
        check_static(case, convert=lambda target, spec: Counted(wrong))


def test_one_program_too_many_is_seen() -> None:
    inputs = [(torch.ones(2),), (torch.zeros(2),)]
    with pytest.raises(AssertionError, match="2 programs are held, 1 are enough"):
        check_static(Case("it", lambda: double, inputs), convert=lambda target, spec: Counted(target, programs=2))


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("total", torch.zeros(()))
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.total += x.sum()
        return x * self.weight


@pytest.mark.parametrize(
    ("stale", "says"), [("calls", "attributes"), ("total", r"state_dict\(\)"), ("weight", "gradient of parameters")]
)
def test_module_state_left_behind_is_compared(stale: str, says: str) -> None:
    def convert(target: Counter, spec: object) -> Counter:
        def forward(x: Tensor) -> Tensor:
            target.calls += stale != "calls"
            target.total += x.sum() * (stale != "total")
            return x * (target.weight.detach() + target.weight * 0 if stale == "weight" else target.weight)

        target.forward = Counted(forward)
        return target

    case = Case("it", Counter, [(torch.ones(2),)], attrs=("calls",), pgrad=True)
    with pytest.raises(AssertionError, match=says):
        check_static(case, convert=convert)


Pair = collections.namedtuple("Pair", ["a", "b"])


@dataclass
class Record:
    a: object


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, True),
        (1, 1.0),
        (1.0, 1.5),
        ((1, 2), [1, 2]),
        (Pair(1, 2), (1, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, collections.OrderedDict(a=1)),
        ([1], [1, 2]),
        (Record(1), Record(2)),
        (None, 0),
        (torch.tensor(1), 1),
        (torch.ones(2), nn.Parameter(torch.ones(2))),
        (torch.tensor([float("nan")]), torch.tensor([0.0])),
    ],
)
def test_unlike_values_are_told_apart(expected: object, actual: object) -> None:
    assert_same(expected, expected)
    with pytest.raises(AssertionError):
        assert_same(expected, actual)


def test_a_case_on_a_device_has_all_there() -> None:
    given: list[Case] = []
    linear = Case("linear", lambda: nn.Linear(2, 2), [(torch.ones(2), {"a": [torch.ones(3), 4]})])

    def check(case: Case) -> None:
        given.append(case)
        assert torch.ones(1).device.type == "meta"
        raise AssertionError("seen")

    with pytest.raises(AssertionError, match="seen"):
        checked_on("meta", linear, check)
    (moved,) = given
    tensors = [moved.inputs[0][0], moved.inputs[0][1]["a"][0], *moved.target().parameters()]
    assert {each.device.type for each in tensors} == {"meta"}
    assert moved.inputs[0][1]["a"][1] == 4
    assert torch.ones(1).device.type == "cpu"
