"""Every operation on every kind of value that only the run knows: as eager PyTorch, or refused with a named reason.

``tests/golden/operations/differing.txt`` lists the pairs that still differ, most of them in the text of an error. A
pair that is mended has to leave the list.
"""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

from tests.property.operation_table import Differs, cell
from tests.property.operations import KINDS, OPERATIONS
from tests.sampling import few

LIST = Path(__file__).parents[1] / "golden" / "operations" / "differing.txt"


def _differing() -> frozenset[tuple[str, str]]:
    rows = (line.split(" | ", 2) for line in LIST.read_text(encoding="utf-8").splitlines())
    return frozenset((kind, ast.literal_eval(operation)) for kind, _, operation in rows)


DIFFERING = _differing()


@pytest.mark.parametrize(("kind", "operation"), few(itertools.product(KINDS, OPERATIONS), every=101))
def test_each_pair_is_answered_as_in_eager_or_refused(tmp_path: Path, kind: str, operation: str) -> None:
    if (kind, operation) in DIFFERING:
        with pytest.raises(Differs):
            cell(tmp_path, kind, operation)
        return
    cell(tmp_path, kind, operation)


def test_the_list_of_what_differs_names_pairs_of_the_table() -> None:
    assert {kind for kind, _ in DIFFERING} <= set(KINDS)
    assert {operation for _, operation in DIFFERING} <= set(OPERATIONS)
