"""Objects that classes make by themselves: members of several flags, tensors of other classes."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import N, P, agree_fresh, refusal


def with_flags(base: Any) -> Callable[[Tensor], Any]:
    """A function with an enumeration of its own, which nobody has asked for a member of several flags."""
    perm: Any = base("Perm", {"R": 1, "W": 2, "X": 4})

    def function(x: Tensor) -> Any:
        if x.sum() > 0:
            return x * (perm.R | perm.W).value, (perm.R | perm.W) is perm(3), str(perm.W ^ perm.X)
        return x, False, str(~perm.R & perm.W)

    return function


@pytest.mark.parametrize("base", [enum.Flag, enum.IntFlag])
@pytest.mark.parametrize("calls", [(P, N, P), (N, P, N)])
def test_several_flags_for_the_first_time(base: Any, calls: tuple[Tensor, ...]) -> None:
    agree_fresh(lambda: with_flags(base), *calls)


class Renamed(torch.Tensor):
    @staticmethod
    def __new__(cls, data: Tensor) -> Any:
        return torch.Tensor._make_subclass(cls, data)


def made(x: Tensor) -> Any:
    return Renamed(x * 2) + 1


def made_in_a_try(x: Tensor) -> Any:
    try:
        return Renamed(x * 2) + 1
    except RuntimeError:
        return x


@pytest.mark.parametrize("function", [made, made_in_a_try])
def test_a_tensor_of_another_class(function: Callable[[Tensor], Any], tmp_path: Path) -> None:
    assert refusal(function, P).reason.code == "SG304"
    with pytest.raises(sg.CaptureError) as caught:
        sg.save(function, tmp_path / "made.pt2", args=(P,))
    assert caught.value.reason.code == "SG304"
    static = sg.to_static(function, full_graph=False, backend="eager")
    assert type(static(P)) is Renamed
    assert torch.equal(static(N), function(N))
