"""Numbers and truth values that tensors have besides their contents, or of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

CALLS = (torch.tensor([5.0, 1.0, -3.0]), torch.tensor([-1.0, 0.0, 2.0]), torch.zeros(3))


def bytes_of(x: Tensor) -> Any:
    chosen = x.double() if x.sum() > 2 else x
    return x.nbytes, x[x > 0].nbytes, x[:0].nbytes, torch.zeros(()).nbytes, chosen.nbytes, x[None].expand(4, 3).nbytes


def whether_it_is_nothing(x: Tensor) -> Any:
    total = x.sum()
    return total.is_nonzero(), torch.is_nonzero(total), 1 if total.is_nonzero() else 2


def of_as_many_as_there_are(x: Tensor) -> Any:
    try:
        return x[x > 1].is_nonzero()
    except RuntimeError:
        return "not one"


def of_several(x: Tensor) -> Any:
    try:
        return torch.is_nonzero(x)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("function", [bytes_of, whether_it_is_nothing, of_as_many_as_there_are, of_several])
def test_answers_are_eagers(function: Any) -> None:
    agree(function, *CALLS)


def test_one_hot_without_a_number_of_classes() -> None:
    agree(lambda x: torch.nn.functional.one_hot(x.long()), CALLS[2], CALLS[2] + 1)
