"""Every operation on every kind of value that only the run knows: as in eager PyTorch, or refused with a reason.

What each pair gives is in a table, and may not change unnoticed. ``STILLGRAPH_UPDATE_GOLDEN=1`` writes what it gives
now (without ``-n``); a change from ``.`` to anything else needs a reason.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from tests.property.operation_table import SIGNS, cell, read, write
from tests.property.operations import KINDS, OPERATIONS
from tests.sampling import few


@pytest.mark.parametrize(("kind", "operation"), few(itertools.product(KINDS, OPERATIONS), every=101))
def test_each_pair_gives_what_the_table_says(tmp_path: Path, kind: str, operation: str) -> None:
    found = cell(tmp_path, kind, operation)
    if os.environ.get("STILLGRAPH_UPDATE_GOLDEN"):
        write({**read(), (kind, operation): found.sign})
    assert found.sign == read()[kind, operation], found.why


@pytest.mark.parametrize(("kind", "operation"), few(itertools.product(KINDS, OPERATIONS), every=307))
def test_through_bytecode_nothing_differs_that_the_table_does_not_say(
    tmp_path: Path, kind: str, operation: str
) -> None:
    found = cell(tmp_path, kind, operation, bytecode=True)
    known = read()[kind, operation]
    assert found.sign == "." or SIGNS[found.sign].startswith("SG") or known == found.sign, found.why


def test_the_table_has_a_sign_for_each_pair() -> None:
    assert set(read()) == set(itertools.product(KINDS, OPERATIONS))
    assert set(read().values()) <= set(SIGNS)
