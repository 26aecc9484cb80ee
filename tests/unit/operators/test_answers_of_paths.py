"""Answers that methods give on some paths only: `NotImplemented`, an error that Python handles, another object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.trace.agreement import agree, refusal

CALLS = [torch.tensor(each) for each in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [2.0, -1.0, 3.0])]
WEIGHT = torch.tensor([1.5, 1.2, 1.1], requires_grad=True)


# ---- NotImplemented
class Money:
    def __init__(self, amount: Any) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> Any:
        return self.amount == other.amount if isinstance(other, Money) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return self.amount - other.amount if isinstance(other, Money) else NotImplemented

    def __hash__(self) -> int:
        return 1


class Rest:
    def __rsub__(self, other: Any) -> str:
        return "the rest"


class Declining:
    """Knows the operators where its value is positive."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __add__(self, other: Any) -> Any:
        if self.value < 0:
            return NotImplemented
        return self.value

    def __lt__(self, other: Any) -> Any:
        if self.value < 0:
            return NotImplemented
        return True

    def __eq__(self, other: object) -> Any:
        if self.value < 0:
            return NotImplemented
        return 7

    def __hash__(self) -> int:
        return 1


class Mirrored:
    def __radd__(self, other: Any) -> int:
        return 50

    def __gt__(self, other: Any) -> str:
        return "greater"


def compared(x: Tensor) -> Any:
    other: Any = Money(1) if x.sum() > 0 else None
    equal, unequal = Money(1) == other, not Money(1) == other  # noqa: SIM201  # `!=` asks another method
    return equal, unequal, (Money(1),) == (other,)


def compared_in_containers(x: Tensor) -> Any:
    other: Any = Money(1) if x[0] > 0 else 5
    return [Money(1)] == [other], {"k": Money(1)} == {"k": other}, Money(1) != other


def taken_by_the_other(x: Tensor) -> Any:
    other: Any = Money(1) if x[0] > 0 else Rest()
    return Money(5) - other


def declined(x: Tensor) -> Any:
    mine = Declining(x[0])
    return mine + Mirrored(), mine < Mirrored(), Declining(x[0]) == mine


# ---- objects that a path's __new__ gives
class Numbered:
    number: int

    def __new__(cls, x: Tensor) -> Numbered:
        first, second = object.__new__(cls), object.__new__(cls)
        first.number = second.number = 0
        return first if x.sum() < 0 else second

    def __init__(self, x: Tensor) -> None:
        self.number += 5


def made(x: Tensor) -> Any:
    return Numbered(x).number


@pytest.mark.parametrize("function", [compared, compared_in_containers, taken_by_the_other, declined, made])
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


# ---- errors that Python takes for answers
class Asked:
    def __init__(self, x: Tensor) -> None:
        self.x = x

    @property
    def five(self) -> int:
        if self.x.sum() < 0:
            raise AttributeError("none")
        return 5


class AskedFurther(Asked):
    def __getattr__(self, name: str) -> str:
        return "further"


class AskedModule(nn.Module):
    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.x = x

    five = Asked.five


def with_a_default(x: Tensor) -> Any:
    return getattr(Asked(x), "five", None)


def whether_there_is_one(x: Tensor) -> Any:
    return hasattr(Asked(x), "five")


def in_a_pattern(x: Tensor) -> Any:
    match Asked(x):
        case Asked(five=5):
            return "five"
        case _:
            return "other"


def asked_further(x: Tensor) -> Any:
    return AskedFurther(x).five


def of_a_module(x: Tensor) -> Any:
    try:
        return AskedModule(x).five
    except AttributeError as error:
        return str(error)


def positive(value: Any) -> Any:
    if value < 0:
        raise StopIteration
    return value


def in_map(x: Tensor) -> Any:
    return list(map(positive, x))


def in_a_generator(x: Tensor) -> Any:
    def positives() -> Iterator[Any]:
        for value in x.tolist():
            if value < 0:
                raise StopIteration
            yield value

    try:
        return list(positives())
    except RuntimeError as error:
        return str(error)


def in_an_expression(x: Tensor) -> Any:
    try:
        return sum(positive(value) for value in x.tolist())
    except RuntimeError as error:
        return str(error)


class Holding:
    def __init__(self, x: Tensor) -> None:
        self.asked = Asked(x)

    @property
    def five(self) -> Any:
        try:
            return getattr(self.asked, "five", 7)
        except AttributeError:
            return 8


def in_another_answer(x: Tensor) -> Any:
    return getattr(Holding(x), "five", 9)


ANSWERS = [
    in_another_answer,
    *(with_a_default, whether_there_is_one, in_a_pattern, asked_further, of_a_module),
    *(in_map, in_a_generator, in_an_expression),
]


@pytest.mark.parametrize("function", ANSWERS)
def test_an_error_of_the_run_that_is_an_answer_is_refused(function: Any) -> None:
    error = refusal(function, CALLS[0])
    assert error.reason.code == "SG208"
    assert "is an answer to Python" in str(error)


def left_to_the_caller(x: Tensor) -> Any:
    return positive(x.sum())


def handled_inside(x: Tensor) -> Any:
    class Inner:
        @property
        def five(self) -> int:
            try:
                if x.sum() < 0:
                    raise AttributeError("none")
            except AttributeError:
                return 0
            return 5

    return getattr(Inner(), "five", None)


@pytest.mark.parametrize("function", [left_to_the_caller, handled_inside])
def test_one_that_is_none_is_not(function: Any) -> None:
    agree(function, *CALLS)


# ---- requires_grad behind a write in place
def written(x: Tensor) -> Any:
    y = x * 1
    if x.sum() > 0:
        y.add_(WEIGHT)
    return y * 2 if y.requires_grad else y


def written_by_an_index(x: Tensor) -> Any:
    y = torch.zeros(3)
    if x.sum() > 0:
        y[0] = WEIGHT[0]
    return y.is_leaf


def written_in_a_loop(x: Tensor) -> Any:
    y, i = x * 1, 0
    while i < x.sum():
        y[i % 3] += WEIGHT[i % 3]
        i += 1
    return y.requires_grad


def written_through_another_name(x: Tensor) -> Any:
    y = x * 1
    view = y[:2]
    if x.sum() > 0:
        y.mul_(WEIGHT)
    return view.requires_grad


def computed_of_what_is_written(x: Tensor) -> Any:
    y = x * 1
    if x.sum() > 0:
        y.add_(WEIGHT)
    return (y * 2).sum().requires_grad


def turned_into_an_array(x: Tensor) -> Any:
    y = torch.zeros(3)
    if x.sum() > 0:
        y += WEIGHT
    try:
        return len(y.numpy())
    except RuntimeError:
        return "with a gradient"


@pytest.mark.parametrize(
    "function",
    [
        *(written, written_by_an_index, written_in_a_loop, written_through_another_name, computed_of_what_is_written),
        turned_into_an_array,
    ],
)
def test_whether_a_path_has_asked_for_a_gradient_is_not_known(function: Any) -> None:
    assert refusal(function, CALLS[0]).reason.code == "SG301"


def test_what_is_written_is_handed_out() -> None:
    def add(x: Tensor) -> Any:
        y = x * 1
        if x.sum() > 0:
            y.add_(WEIGHT)
        return y, (y * 2).sum()

    agree(add, *CALLS)
