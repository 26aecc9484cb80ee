"""Generated programs mean what the native driver makes of them: the reference interpreter agrees with eager, too."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.cases.case import Case
from tests.cases.harness import check_static
from tests.cases.interpreted import to_interpreted
from tests.property.containers import container_programs
from tests.property.programs import programs
from tests.property.test_containers import REFUSED, refusal
from tests.property.test_programs import SEED, Inputs, folder, inputs, load

__all__ = ["folder"]  # the fixture

BATCH, BATCHES = 40, 2
WRITERS = {"plain": programs, "containers": container_programs}


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_interpreted_programs_agree_with_eager(folder: Path, writer: str, batch: int) -> None:
    passed: set[str] = set()

    @hypothesis.seed(SEED * 1000 + batch + 1)
    @hypothesis.settings(
        max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(WRITERS[writer](), inputs(), st.booleans())
    def agrees(source: str, calls: Inputs, grad: bool) -> None:
        if source in passed:
            hypothesis.reject()
        hypothesis.note(source)
        function = load(source, folder)
        error = refusal(function, calls) if writer == "containers" else None
        if error is None:
            check_static(Case("a generated program", lambda: function, calls, grad=grad), to_interpreted)
        else:
            assert error.reason.code in REFUSED, error
        passed.add(source)

    agrees()
    assert len(passed) >= BATCH
