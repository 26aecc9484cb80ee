"""Numbers that are of one kind on one path and of another on the other: what asks for the kind gets that of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree, refusal

P = torch.tensor([1.0, 2.0])


def whole_or_not(x: Tensor) -> Any:
    return 1 if x.sum() > 0 else 2.5


def true_or_not(x: Tensor) -> Any:
    return True if x.sum() > 0 else 2


def converted(x: Tensor) -> Any:
    h, t = whole_or_not(x), true_or_not(x)
    return float(h), f"{float(h)}", str(int(t)), int(h), float(round(h)), x


def of_results(x: Tensor) -> Any:
    h, t = whole_or_not(x), true_or_not(x)
    doubled, least, masked = h * 2, max(h, 0), t & True
    kinds = [isinstance(each, int) for each in (doubled, least, -h, abs(h), round(h, 1))]
    return kinds, float(doubled), float(least), isinstance(masked, bool), isinstance(t + 0, bool), x


def the_larger(x: Tensor) -> Any:
    most = max(x[0].item(), 0)
    return float(most), str(most), isinstance(most, int), x


def with_a_dtype(x: Tensor) -> Any:
    h = whole_or_not(x)
    return torch.full((2,), h, dtype=torch.float64), torch.tensor([h, h / 3], dtype=torch.float64), x * h


def measured(value: Any) -> Any:
    if value is None:
        return 3
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return value[-1].sum()
    return value * 2 if isinstance(value, (int, float)) else value.sum()


def of_no_such_kind(x: Tensor) -> Any:
    tensor_or_number = x.sum() if x.sum() > 0 else 2
    return measured(whole_or_not(x)), measured(true_or_not(x)), measured(tensor_or_number)


class Answering(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return bool(value == 2)


class Two(metaclass=Answering):
    pass


@runtime_checkable
class HasReal(Protocol):
    real: float


def of_a_protocol_with_data(x: Tensor) -> Any:
    mixed = 2 if x.sum() > 0 else 2.5
    classes: Any = (int, float, 5)  # Python asks one after the other, and comes to none that is no class
    return isinstance(mixed, HasReal), isinstance(int(x.sum()), HasReal), isinstance(mixed, classes)


def asked_by_its_class(x: Tensor) -> Any:
    mixed = 2 if x.sum() > 0 else 2.5
    return isinstance(mixed, Two), isinstance(int(x.sum()), Two), isinstance(mixed, (Two, str))


def perhaps_unbound(x: Tensor) -> Any:
    if x.sum() > 1:
        value = 3 if x[0] > 1 else 4
    return measured(value), x


def perhaps_an_attribute(x: Tensor) -> Any:
    class Owner:
        value: Any

    owner = Owner()
    for _ in range(int(x.abs().sum()) % 2):
        owner.value = 5
    return measured(getattr(owner, "value", 0)), x


@pytest.mark.parametrize(
    "function",
    [
        *(converted, of_results, the_larger, with_a_dtype, of_no_such_kind, asked_by_its_class),
        of_a_protocol_with_data,
        *(perhaps_unbound, perhaps_an_attribute),
    ],
)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    agree(function, P, -P)


def full(x: Tensor) -> Any:
    return torch.full((2,), whole_or_not(x)).dtype


def scalar(x: Tensor) -> Any:
    return torch.tensor(whole_or_not(x) * 2).dtype


def elements(x: Tensor) -> Any:
    return torch.tensor([whole_or_not(x)] * 2).is_floating_point()


def product(x: Tensor) -> Any:
    return torch.arange(2) * (whole_or_not(x) * 2)


@pytest.mark.parametrize("function", [full, scalar, elements, product])
def test_a_dtype_that_depends_on_the_path(function: Callable[[Tensor], Any]) -> None:
    assert refusal(function, P).reason.code == "SG202"


def is_true(x: Tensor) -> Any:
    return true_or_not(x) is True, x


def is_one(x: Tensor) -> Any:
    one = 1
    return whole_or_not(x) is one, x


def has_hex(x: Tensor) -> Any:
    return hasattr(whole_or_not(x), "hex"), x


@pytest.mark.parametrize("function", [is_true, is_one, has_hex])
def test_what_only_the_run_knows(function: Callable[[Tensor], Any]) -> None:
    assert refusal(function, P).reason.code == "SG301"


def test_attributes_of_what_stands_for_a_number() -> None:
    def attributes(x: Tensor) -> Any:
        n, length, value = int(x.sum()), len(x[x > 0]), x.sum().item()
        names = ("is_integer", "node", "real", "bit_length", "hex", "recorder", "__name__", "__index__")
        return [hasattr(each, name) for each in (n, length, value) for name in names], x

    agree(attributes, P, -P)
