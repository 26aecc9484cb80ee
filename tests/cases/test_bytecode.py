"""Every conformance case, captured through its bytecode."""
from __future__ import annotations

import pytest

from tests.cases import pending
from tests.cases.case import Case, all_cases
from tests.cases.harness import check_static
from tests.front_ends import bytecode

__all__ = ["bytecode"]  # the fixture


def some_are_slow() -> list[object]:
    """All of them; one in six is fast."""
    found = [*all_cases().items()]
    marks = {name: [pytest.mark.xfail(strict=True, reason=why)] for name, why in pending.BYTECODE.items()}
    slow = [[pytest.mark.slow] if (number + 3) % 6 else [] for number in range(len(found))]
    return [pytest.param(case, id=name, marks=[*marks.get(name, []), *s]) for (name, case), s in zip(found, slow)]


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("case", some_are_slow())
def test_static(case: Case) -> None:
    check_static(case)
