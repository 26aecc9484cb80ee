"""A capture that fails is not made again for each call, and its warning is given once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import CaptureError
from stillgraph.operators.names import booleans
from stillgraph.program.program import Program
from tests.unit.runtime.test_static_function import static


def test_what_failed_often_is_made_in_plain_pytorch() -> None:
    captures: list[Tensor] = []

    def original(x: Tensor) -> Tensor:
        return x * 2

    def capture(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        captures.append(args[0])
        raise ZeroDivisionError("inside")

    function = static(original, capture)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number in range(6):
            x = torch.full((2,), float(number))
            assert torch.equal(function(x), x * 2)
        assert len(captures) == 2
        for size in range(3, 9):  # other calls, which fail in the same line
            assert torch.equal(function(torch.ones(size)), torch.full((size,), 2.0))
    assert len(captures) == 4
    assert len([each for each in told if "SG307" in str(each.message)]) == 1


def test_a_program_for_other_calls_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, Any] = {}
    exec(compile("def breaks(value): raise AssertionError('a fault')", booleans.__file__, "exec"), space)

    def asks(x: Tensor, a: Any, b: Any) -> Tensor:
        return x + 1 if a is b else x

    monkeypatch.setattr(booleans, "is_told_by_value", space["breaks"])
    with pytest.raises(CaptureError, match=r"(?s)AssertionError: a fault.*SG307"):
        sg.export(asks, (torch.ones(2), 3.0, 4.0))
