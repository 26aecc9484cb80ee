from __future__ import annotations

import re
from pathlib import Path

from stillgraph.operators.table import OPERATORS
from tests.unit.source.plain_operators import OPERATORS as PLAIN

CONTRACT = Path(__file__).parents[3] / "docs/dev/rewriting.md"


def test_every_operator_of_the_contract_exists() -> None:
    rows = [line.split("|")[1] for line in CONTRACT.read_text().splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)\(", row)}
    assert named
    assert named <= set(OPERATORS)


def test_the_plain_operators_of_the_source_tests_are_the_same_set() -> None:
    assert set(OPERATORS) == set(PLAIN)
