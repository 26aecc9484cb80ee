"""Values that are None on one path: every way of asking, for every type of the other path, on both."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.sampling import few
from tests.unit.operators import asserting
from tests.unit.trace.agreement import N, P, agree

NOTHING = None

MADE: dict[str, Callable[[Tensor], Any]] = {
    "a float": lambda x: None if x.sum() > 0 else 5.0,
    "a zero": lambda x: None if x.sum() > 0 else 0.0,
    "an int": lambda x: None if x.sum() > 0 else 2,
    "a bool": lambda x: None if x.sum() > 0 else True,
    "False": lambda x: None if x.sum() > 0 else False,
    "an item": lambda x: None if x.sum() > 0 else x.sum().item(),
    "an index": lambda x: None if x.sum() > 0 else x.argmax().item(),
    "a comparison": lambda x: None if x.sum() > 0 else x.sum().item() < -3,
    "a tensor": lambda x: None if x.sum() > 0 else x[0] * 2,
    "a tensor of zero": lambda x: None if x.sum() > 0 else x[0] * 0,
    "a tensor that is true": lambda x: None if x.sum() > 0 else x[0] < 0,
    "a text": lambda x: None if x.sum() > 0 else "text",
    "a tuple": lambda x: None if x.sum() > 0 else (x, 1),
    "a dict": lambda x: None if x.sum() > 0 else {},
}


# ---- whether it is None
def is_it(v: Any, x: Tensor) -> Any:
    return x * 2 if v is None else x * 3


def is_it_not(v: Any, x: Tensor) -> Any:
    return x * 2 if v is not None else x * 3


def is_it_what_a_variable_holds(v: Any, x: Tensor) -> Any:
    nothing = NOTHING
    return x * 2 if v is nothing else x * 3 if nothing is not v else x


def exists(v: Any) -> bool:
    return v is not None


def asked_by_a_helper(v: Any, x: Tensor) -> Any:
    return x * 2 if exists(v) else x * 3


class Asks:
    def method(self, v: Any) -> bool:
        return v is None

    def __call__(self, v: Any) -> int:
        if v is None:
            return 1
        return 2

    @staticmethod
    def static(v: Any) -> bool:
        return v is None


def asked_by_a_method(v: Any, x: Tensor) -> Any:
    return x * 2 if Asks().method(v) else x * 3


def asked_by_an_object(v: Any, x: Tensor) -> Any:
    return x * Asks()(v)


def asked_by_a_static_method(v: Any, x: Tensor) -> Any:
    return x * 2 if Asks.static(v) else x * 3


def asked_by_a_generator(v: Any, x: Tensor) -> Any:
    def present(values: Any) -> Any:
        for value in values:
            yield 1 if value is None else 3

    return x * sum(present([v, x]))


def asked_in_a_comprehension(v: Any, x: Tensor) -> Any:
    return x * len([w for w in (v, x) if w is not None])


def asked_before_raising(v: Any, x: Tensor) -> Any:
    if v is None:
        raise ValueError("there is none")
    return x * 2


def caught(v: Any, x: Tensor) -> Any:
    try:
        if v is None:
            raise ValueError("there is none")
        x = x * 2
    except ValueError:
        x = x * 3
    return x


def matched(v: Any, x: Tensor) -> Any:
    def chosen(v: Any) -> Any:
        match v:
            case None:
                return x * 2
            case _:
                return x * 3

    return chosen(v)


def until_it_is_there(v: Any, x: Tensor) -> Any:
    count = 0
    while v is None:
        count += 1
        v = None if count < 3 else x
    return x * count


def none_in_a_list(v: Any, x: Tensor) -> Any:
    return x * 2 if v in (None,) else x * 3


def a_list_with_none(v: Any, x: Tensor) -> Any:
    return x * 2 if None in [v] else x * 3


def counted(v: Any, x: Tensor) -> Any:
    return x * (2 + [v].count(None))


def found(v: Any, x: Tensor) -> Any:
    return x * (2 + [v, None].index(None))


def equal(v: Any, x: Tensor) -> Any:
    return x * 2 if v == None else x * 3  # noqa: E711 (what is shown is ==)


def unequal(v: Any, x: Tensor) -> Any:
    return x * 2 if v != None else x * 3  # noqa: E711 (what is shown is ==)


def equal_to_a_variable(v: Any, x: Tensor) -> Any:
    nothing = NOTHING
    return x * 2 if v == nothing else x * 3


def itself(v: Any, x: Tensor) -> Any:
    return x * 2 if v is v else x * 3


# ---- whether it is true
def true(v: Any, x: Tensor) -> Any:
    return x * 2 if v else x * 3


def false(v: Any, x: Tensor) -> Any:
    return x * 2 if not v else x * 3


def truth_returned(v: Any, x: Tensor) -> Any:
    return bool(v), not v


def a_default(v: Any, x: Tensor) -> Any:
    return v or 7


def a_condition(v: Any, x: Tensor) -> Any:
    return v and 7


def in_all(v: Any, x: Tensor) -> Any:
    return all((v, 1)), all([1, v, 0])


def in_any(v: Any, x: Tensor) -> Any:
    return any((v, 0)), any([0, v, 1])


def filtered(v: Any, x: Tensor) -> Any:
    return x * len([k for k in (v, 1) if k])


def filtered_by_none(v: Any, x: Tensor) -> Any:
    return x * len(list(filter(None, [v, 1])))


def a_loop_while_true(v: Any, x: Tensor) -> Any:
    count = 0
    while v:
        count += 1
        v = None
    return x * count


# ---- what it is
def its_type(v: Any, x: Tensor) -> Any:
    return x * 2 if type(v) is type(None) else x * 3


def instance_of_none(v: Any, x: Tensor) -> Any:
    return x * 2 if isinstance(v, type(None)) else x * 3


def instance_of_number(v: Any, x: Tensor) -> Any:
    return x * 2 if isinstance(v, (int, float)) else x * 3


def instance_of_tensor(v: Any, x: Tensor) -> Any:
    return x + v if isinstance(v, Tensor) else x * 3


# ---- what is done with it
def returned(v: Any, x: Tensor) -> Any:
    return v, [v], {"v": v}


def printed(v: Any, x: Tensor) -> Any:
    print("is", v, f"{v}", str(v), repr(v))
    return x


ASKING = (
    *(is_it, is_it_not, is_it_what_a_variable_holds, asked_by_a_helper, asked_by_a_method, asked_by_an_object),
    *(asked_by_a_static_method, asked_by_a_generator, asked_in_a_comprehension, asserting.of_what_is_there),
    *(asked_before_raising, caught, matched, until_it_is_there, none_in_a_list, a_list_with_none, counted, found),
    *(equal, unequal, equal_to_a_variable, itself, true, false, truth_returned, a_default, a_condition, in_all, in_any),
    *(filtered, filtered_by_none, a_loop_while_true, asserting.of_what_is_true, its_type, instance_of_none),
    *(instance_of_number, instance_of_tensor, returned, printed),
)


@pytest.mark.parametrize(
    ("ask", "made"), few(itertools.product(ASKING, MADE), 3), ids=lambda each: getattr(each, "__name__", None)
)
def test_a_value_that_is_none_on_one_path_answers_as_in_eager(ask: Any, made: str) -> None:
    def function(x: Tensor) -> Any:
        return ask(MADE[made](x), x)

    agree(function, P, N)


# ---- what the first iteration lacks, a later one has
def behind_a_flag(x: Tensor) -> Any:
    last, n = None, torch.tensor(0)
    while x.sum() < 10:
        x = x * 1.5
        if n > 0:
            x = x + last * 0.1  # type: ignore[operator]  # what is shown
        last, n = x, n + 1
    return x


def behind_the_flag_of_an_outer_loop(x: Tensor) -> Any:
    last, n = None, torch.tensor(0)
    while x.sum() < 10:
        k = torch.tensor(0)
        while k < 2:
            x = x * 1.5
            if n > 0:
                x = x + last * 0.1  # type: ignore[operator]  # what is shown
            k = k + 1
        last, n = x, n + 1
    return x


def never_there(x: Tensor) -> Any:
    last = None
    while x.sum() < 10:
        x = x * 1.5
        if x.sum() > 8:
            x = x + last
    return x


@pytest.mark.parametrize("function", [behind_a_flag, behind_the_flag_of_an_outer_loop])
def test_a_value_of_an_earlier_iteration_is_used_behind_a_flag(function: Any) -> None:
    agree(function, torch.ones(2), torch.full((2,), 4.0), torch.full((2,), 9.0))


def test_a_path_that_fails_in_every_iteration_is_refused() -> None:
    with pytest.raises(sg.CaptureError, match=r"unsupported operand type.*'Tensor' and 'NoneType'") as caught:
        sg.to_static(never_there, backend="eager")(torch.ones(2))
    assert caught.value.reason.code == "SG209"
