"""Every conformance case, as a static function and through the export formats."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import pending
from tests.cases.case import Case, all_cases
from tests.cases.harness import check_onnx, check_pt2, check_python, check_static


def cases(reasons: dict[str, str]) -> list[object]:
    """All cases as parameters; those with a reason must fail."""
    marks = {name: [pytest.mark.xfail(strict=True, reason=reason)] for name, reason in reasons.items()}
    return [pytest.param(case, id=name, marks=marks.get(name, [])) for name, case in all_cases().items()]


@pytest.mark.parametrize("case", cases(pending.STATIC))
def test_static(case: Case) -> None:
    check_static(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(pending.PT2))
def test_pt2(case: Case, tmp_path: Path) -> None:
    check_pt2(case, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(pending.ONNX))
def test_onnx(case: Case, tmp_path: Path) -> None:
    check_onnx(case, tmp_path)


@pytest.mark.parametrize("case", cases(pending.PYTHON))
def test_python(case: Case, tmp_path: Path) -> None:
    check_python(case, tmp_path)


def test_pending_names_only_cases() -> None:
    names = set(all_cases())
    assert set(pending.STATIC) <= names
    assert set(pending.BYTECODE) <= names
    assert set(pending.PT2) <= names
    assert set(pending.ONNX) <= names
    assert set(pending.PYTHON) <= names
