"""Constants that paths leave, behind a question that decides: what a path cannot be, it is not joined as."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree

CALLS = (P, N, torch.zeros_like(P))


def named(x: Tensor) -> Any:
    name = None
    if x.sum() > 0:
        name = "pos"
    return name


def filled_in(x: Tensor) -> Any:
    name = named(x)
    if name is None:
        name = "zero"
    return name.upper()


def or_another(x: Tensor) -> Any:
    return (named(x) or "zero").upper()


def chosen(x: Tensor) -> Any:
    name = named(x)
    return name.upper() if name else "none"


def returned_early(x: Tensor) -> Any:
    name = named(x)
    if name is not None:
        return name.upper()
    return "none"


def of_three(x: Tensor) -> Any:
    name = None
    if x.sum() > 0:
        name = "pos"
    elif x.sum() < 0:
        name = "neg"
    if name is None:
        name = "zero"
    return {"pos": 1, "neg": 2, "zero": 3}[name], name + "!"


def asked_by_a_tensor(x: Tensor) -> Any:
    if x.sum() > 0:
        name, is_known = "a", x.sum() * 0 == 0
    else:
        is_known = x.sum() * 0 == 1
    if is_known:
        pass
    else:
        name = "b"
    return name


def by_a_flag(x: Tensor) -> Any:
    is_known = False
    if x.sum() > 0:
        name, is_known = "a", True
    if not is_known:
        name = "b"
    return name * 2


# ---- with an else, by which the variable always has a value
def in_the_else_of_a_try(x: Tensor) -> Any:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
        y = x * 2
    except ValueError:
        y, result = -x, "neg"
    else:
        result = "fine"
    return y, result, result + "!"


def in_the_else_of_a_while(x: Tensor) -> Any:
    n = 0
    while n < 4:
        n += 1
        if x.sum() * n > 10:
            why = "big"
            break
    else:
        why = "limit"
    return why.upper(), n


def in_the_else_of_a_for(x: Tensor) -> Any:
    for i in range(4):
        if x.sum() * i > 10:
            why = "big"
            break
    else:
        why = "limit"
    return {"big": 1, "limit": 2}[why]


def in_the_else_of_a_staged_loop(x: Tensor) -> Any:
    y = x.abs() + 1
    while y.sum() < 100:
        y = y * 2
        if x.sum() > y.sum() / 4:
            why = "big"
            break
    else:
        why = "limit"
    return why + "!", y


ELSE = (in_the_else_of_a_try, in_the_else_of_a_while, in_the_else_of_a_for, in_the_else_of_a_staged_loop)


@pytest.mark.parametrize(
    "function",
    [filled_in, or_another, chosen, returned_early, of_three, asked_by_a_tensor, by_a_flag, *ELSE],
    ids=lambda function: function.__name__,
)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


# ---- in what is shown
def in_what_is_printed(x: Tensor) -> Any:
    status = "up" if x.sum() > 0 else "down"
    print([status], {"status": status, "loss": x.sum().item()}, (status, [status]))
    print(f"{ {'k': status} }")
    return x


def test_texts_in_containers_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    static = sg.to_static(in_what_is_printed, backend="eager")
    for x in CALLS:
        in_what_is_printed(x)
        expected = capsys.readouterr().out
        static(x)
        assert capsys.readouterr().out == expected
    assert static.cache_info().programs == 1
