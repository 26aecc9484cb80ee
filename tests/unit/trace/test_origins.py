"""What a value is where the condition of the branch that it comes from is known, or anything that tells of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import IF, N, P, agree, count, program_of


class Settings:
    length: Any


def an_attribute_set_where_another_value_is_none(x: Tensor) -> Any:
    settings = Settings()
    mask: Any = torch.ones(x.shape) * (x.sum() > 0)
    if (mask == 1).all():
        settings.length = mask.shape[0]
        mask = None
    length = mask.shape[0] if mask is not None else getattr(settings, "length", -1)
    return x[-length:] if length == x.shape[0] else x + 1


def asked_for_its_form(x: Tensor) -> Any:
    mask = None if x.sum() > 0 else x * 2
    if isinstance(mask, Tensor) and len(mask.shape) == 4:
        return True, None, None
    if mask is not None and mask.ndim == 1:
        mask = mask + 1
    return False, mask, x.shape[0]


def by_numbers(x: Tensor) -> Any:
    if x.sum() > 0:
        step, kind = 5, None
    else:
        step, kind = int(x.abs().sum()), 2
    if kind is None:
        again = step + 1
    else:
        again = step * kind
    same = step if kind is None else 5
    return same, again, step


def by_nested_conditions(x: Tensor) -> Any:
    a = None if x.sum() > 0 else x
    b = 1 if a is None else None
    c = (b if b is not None else 7) if a is None else 7
    return c, a is None, b


def a_condition_that_is_written(x: Tensor) -> Any:
    flag = x.sum() > 0
    step = 5 if flag else 6
    flag.logical_not_()
    again = step if flag else 0
    return again, step


def written_in_its_arm(x: Tensor) -> Any:
    flag = x.sum() > 0
    if flag:
        step = None
        flag.logical_not_()
    else:
        step = 6
    first = step is None
    second = 1 if flag else 2
    return first, second, step if flag else 3


def written_and_asked_again(x: Tensor) -> Any:
    flag = x.sum() > 0
    if flag:
        flag.logical_not_()
        step = 5 if flag else None
        return step, step is None
    return 7, flag


def asked_again_in_its_arm(x: Tensor) -> Any:
    holds = bool(x.sum() > 0)
    inner = holds and (not holds or x.max() > 0)
    name = "x" if holds else "y"
    return inner, {name}.issubset({"x", "q"}), {name} == {"x"}, (not holds) or True, holds


def written_in_a_loop(x: Tensor) -> Any:
    flag = x.sum() > 0
    a = 5 if flag else None
    name = "p" if flag else "q"
    out, n = 0, 0
    while n < x.abs().sum():
        if flag:
            out = out + (1 if a is None else 2) + (10 if name == "p" else 20)
        flag.logical_not_()
        n = n + 1
    return out


def written_in_an_unrolled_loop(x: Tensor) -> Any:
    flag = x.sum() > 0
    a, name = (5, "p") if flag else (6, "q")
    out = 0
    for _ in range(3):
        if flag:
            out = out + a + (10 if name == "p" else 20)
        flag.logical_not_()
    return out


def unset_on_one_path(x: Tensor) -> Any:
    if x.sum() > 0:
        found = 3
    try:
        return found + 1
    except UnboundLocalError:
        return x


def test_none_elsewhere_tells_of_an_attribute() -> None:
    agree(an_attribute_set_where_another_value_is_none, P, N, P - P)
    program = program_of(an_attribute_set_where_another_value_is_none, P)
    assert count(program, IF) == 1  # its mask: the length is known


def test_what_has_no_such_form_is_not_staged() -> None:
    agree(asked_for_its_form, P, N)
    assert count(program_of(asked_for_its_form, P), IF) == 2


def test_numbers() -> None:
    agree(by_numbers, P, N)


def test_nested_conditions() -> None:
    agree(by_nested_conditions, P, N)


def test_a_condition_that_was_written_tells_nothing() -> None:
    agree(a_condition_that_is_written, P, N)
    agree(written_in_its_arm, P, N)
    agree(written_and_asked_again, P, N)
    agree(written_in_a_loop, P, N)
    agree(written_in_an_unrolled_loop, P, N)


@pytest.mark.parametrize(
    "function",
    [
        *(a_condition_that_is_written, written_in_its_arm, written_and_asked_again, by_numbers),
        *(written_in_a_loop, written_in_an_unrolled_loop),
    ],
)
def test_in_inference_mode(function: Any) -> None:
    with torch.inference_mode():
        agree(function, P, N)


def test_a_condition_is_decided_in_its_arms() -> None:
    agree(asked_again_in_its_arm, P, N)


def test_unset() -> None:
    agree(unset_on_one_path, P, N)


def sizes_asked_on_two_paths(x: Tensor, m: Tensor, count: Tensor) -> Any:
    length = int(count) + x[x > 0].shape[0]
    if m.sum() > 0:
        return m[:, torch.arange(length)]
    return m[:, torch.arange(length) + 1]


def test_what_torch_learns_of_a_size_is_learned_on_each_path() -> None:
    m, two = torch.ones(1, 7), torch.tensor(2)
    agree(sizes_asked_on_two_paths, (P, m, two), (N, -m, two))
