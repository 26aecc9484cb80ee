"""Every conformance case passes the check against eager PyTorch in all its calls, and gives what it gives without."""

from __future__ import annotations

from typing import Any

import pytest

import stillgraph as sg
from tests.cases.case import Case, all_cases
from tests.cases.harness import check_static


def to_checked(target: Any, input_spec: list[sg.InputSpec] | None) -> Any:
    return sg.to_static(target, input_spec=input_spec, backend="eager", check=99)


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in all_cases().items()])
def test_checked(case: Case) -> None:
    check_static(case, to_checked)
