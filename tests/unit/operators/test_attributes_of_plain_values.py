"""A plain value that some paths leave, asked for an attribute that it does not have: raised where it is that value."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import N, P, agree


def method(x: Tensor) -> Any:
    y = 0 if x.sum() > 0 else x
    return y.type_as(x) + 1


def attribute(x: Tensor) -> Any:
    y = [1, 2] if x.sum() > 0 else x
    return y.shape[0]


def caught(x: Tensor) -> Any:
    y = "text" if x.sum() > 0 else x
    try:
        return y.sum()
    except AttributeError as error:
        return str(error), x


def of_two_texts(x: Tensor) -> Any:
    y = "text" if x.sum() > 0 else ("a", "b")
    return y.upper()


def of_a_sum(x: Tensor) -> Any:
    return sum(each * 2 for each in x if each > 0).type_as(x)


@pytest.mark.parametrize("function", [method, attribute, caught, of_two_texts, of_a_sum], ids=lambda f: f.__name__)
def test_it_is_raised_on_that_path(function: Any) -> None:
    agree(function, P, N, torch.tensor([1.0, -4.0, 2.0]))
