"""A list of an attribute that each call makes longer: it is told of before programs are dropped."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg


class History(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.h: Any = []


class Added(History):
    def forward(self, x: Tensor) -> Tensor:
        self.h = [*self.h, x * 2]
        return x.sum()


class Inserted(History):
    def forward(self, x: Tensor) -> Tensor:
        self.h.insert(0, x * 2)
        return x.sum()


class Appended(History):
    def forward(self, x: Tensor) -> Tensor:
        self.h.append(x * 2)
        return x.sum()


class Filled(History):
    def forward(self, x: Tensor) -> Tensor:
        self.h = [*self.h, x][-3:]
        return torch.stack(self.h).sum()


def told(module: nn.Module, calls: int) -> tuple[list[str], int]:
    """What calls warn of, and how many programs they make."""
    static = sg.to_static(module, backend="eager")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for number in range(calls):
            static(torch.full((2,), float(number)))
    return [str(each.message) for each in found], static.forward.cache_info().programs


@pytest.mark.parametrize("kind", [Added, Inserted])
def test_a_list_that_grows_is_told_of_once(kind: type[History]) -> None:
    module = kind()
    texts, programs = told(module, 8)
    assert len(module.h) == programs == 8
    assert len(texts) == 1
    assert f"{kind.__name__}.forward is captured anew at every call, for each makes self.h longer" in texts[0]
    assert "it had 0, 1, 2, 3, 4, 5 elements. Write self.h.append(...)" in texts[0]


def test_what_is_only_appended_to_is_one_program() -> None:
    module = Appended()
    assert told(module, 8) == ([], 1)
    assert [float(each[0]) for each in module.h] == [2.0 * n for n in range(8)]


def test_a_window_fills_up_and_stays() -> None:
    assert told(Filled(), 8) == ([], 4)


def test_longer_arguments_are_nobodys_list_that_grows() -> None:
    static = sg.to_static(lambda rows: torch.stack(rows).sum(), backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(1, 8):
            static([torch.ones(2)] * number)
