"""A capture that fails is not made again for each call, and its warning is given once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import CaptureError
from stillgraph.operators.objects import identity
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


class _Tried:
    """A static function whose captures fail, but for whole numbers; it takes down what it was to capture."""

    def __init__(self) -> None:
        self.captures: list[Tensor] = []
        self.function = static(_double, self._capture)

    def _capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        self.captures.append(args[0])
        if args[0].dtype == torch.int64:
            return sg.export(_double, args)
        raise ZeroDivisionError("inside")

    def call(self, *given: Tensor) -> int:
        """Call it with each; how many captures that took."""
        before = len(self.captures)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for x in given:
                assert torch.equal(self.function(x), x * 2)
        return len(self.captures) - before


def _double(x: Tensor) -> Tensor:
    return x * 2


def test_calls_of_another_form_are_tried_again() -> None:
    tried = _Tried()
    assert tried.call(*(torch.ones(size) for size in range(2, 22))) == 4
    assert tried.call(*[torch.ones(2, dtype=torch.int64)] * 3) == 1  # captured, though a line is stuck
    assert tried.call(*(torch.ones(size) for size in range(22, 42))) == 4  # it was captured: others may be


def test_forms_that_fail_are_tried_so_often_only() -> None:
    tried = _Tried()
    assert tried.call(*(torch.ones([2] * dims) for dims in range(1, 24) for _ in range(4))) <= 2 * 17


def test_other_sizes_are_tried_ever_more_rarely() -> None:
    tried = _Tried()
    counts = [tried.call(*(torch.ones(size) for size in range(begin, 2 * begin))) for begin in (8, 16, 32, 64, 128)]
    assert sum(counts) <= 6
    assert tried.call(*(torch.ones(size) for size in range(300, 1300))) in (2, 3)


def test_a_program_for_other_calls_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    space: dict[str, Any] = {}
    exec(compile("def breaks(value): raise AssertionError('a fault')", identity.__file__, "exec"), space)

    def asks(x: Tensor, a: Any, b: Any) -> Tensor:
        return x + 1 if a is b else x

    monkeypatch.setattr(identity, "is_told_by_value", space["breaks"])
    with pytest.raises(CaptureError, match=r"(?s)AssertionError: a fault.*SG307"):
        sg.export(asks, (torch.ones(2), 3.0, 4.0))


def _doubled(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


class _Doubling(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return _doubled(x)


@pytest.mark.parametrize("target", [_doubled, sg.to_static(_doubled), _Doubling(), _Doubling().forward])
def test_an_example_call_without_its_arguments_is_no_fault_of_ours(target: Any, tmp_path: Any) -> None:
    with pytest.raises(TypeError, match=r"missing a required argument: 'x'\. args= and kwargs= are the arguments"):
        sg.export(target)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        sg.save(target, tmp_path / "f.pt2")
    with pytest.raises(TypeError, match="too many positional arguments"):
        sg.export(target, (torch.ones(2), 3))
