"""Every conformance case, captured through its bytecode."""
from __future__ import annotations

import pytest

from tests.cases import pending
from tests.cases.case import Case
from tests.cases.harness import check_static
from tests.cases.test_cases import cases
from tests.front_ends import bytecode

__all__ = ["bytecode"]  # the fixture


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("case", cases(pending.BYTECODE))
def test_static(case: Case) -> None:
    check_static(case)
