"""Every conformance case as a static function that may leave steps to Python: those refused in a full graph as well."""

from __future__ import annotations

import pytest

from tests.cases.case import Case, all_cases
from tests.cases.harness import SEGMENTS, check_partial

SLOW = {"M08_shape_change_in_while"}


def cases() -> list[object]:
    """All of them; one in six is fast."""
    return [
        pytest.param(case, id=name, marks=[pytest.mark.slow] if number % 6 or name in SLOW else [])
        for number, (name, case) in enumerate(all_cases().items())
    ]


@pytest.mark.parametrize("case", cases())
def test_partial(case: Case) -> None:
    plan = check_partial(case)
    assert len(plan.segments) == SEGMENTS.get(case.name, 1), dict(plan.breaks.residual)
