"""Every conformance case as a static function that may leave steps to Python: those refused in a full graph as well."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.cases.case import Case, all_cases
from tests.cases.harness import check_static

SEGMENTS = {"A24_print": 2, "M08_shape_change_in_while": 2}
"""By case, how many segments it has, where it is not one."""

SLOW = {"M08_shape_change_in_while"}


def cases() -> list[object]:
    """All of them; one in six is fast."""
    return [
        pytest.param(case, id=name, marks=[pytest.mark.slow] if number % 6 or name in SLOW else [])
        for number, (name, case) in enumerate(all_cases().items())
    ]


@pytest.mark.parametrize("case", cases())
def test_partial(case: Case) -> None:
    made: list[Any] = []

    def convert(target: Any, input_spec: list[sg.InputSpec] | None) -> Any:
        static = sg.to_static(target, input_spec=input_spec, backend="eager", full_graph=False, strict=True)
        made.append(static)
        return static

    several = 999 if case.name in SEGMENTS else case.programs
    check_static(replace(case, capture_refused=None, programs=several), convert)
    static = made[0].forward if isinstance(made[0], torch.nn.Module) else made[0]
    plan = getattr(static, "__func__", static).plan
    assert len(plan.segments) == SEGMENTS.get(case.name, 1), dict(plan.breaks.residual)
