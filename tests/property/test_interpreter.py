"""Generated programs mean what the native driver makes of them: the reference interpreter agrees with eager, too."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.cases.case import Case
from tests.cases.harness import check_static
from tests.cases.interpreted import interpreted_segments, to_interpreted
from tests.property.containers import container_programs
from tests.property.programs import programs
from tests.property.residuals import residual_programs
from tests.property.test_containers import REFUSED, refusal
from tests.property.test_programs import SEED, Inputs, folder, inputs, load
from tests.property.ways import BYTECODE, SEGMENTS, SOURCE, STEPS, Way, way, ways

__all__ = ["folder", "way"]  # the fixtures

FEW, SOME, BATCH, BATCHES = 1, 10, 20, 4
WRITERS = {"plain": programs, "containers": container_programs}


@pytest.mark.slow
@ways(SOURCE, BYTECODE)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.usefixtures("way")
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


def check_in_segments(folder: Path, writer: str, count: int, seed: int, way: Way) -> None:
    """Compare so many programs with eager PyTorch, their segments interpreted; the seed says which."""
    passed: set[str] = set()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(way.written((WRITERS | {"residuals": residual_programs})[writer]()), inputs(), st.booleans())
    def agrees(source: str, calls: Inputs, grad: bool) -> None:
        if source in passed:
            hypothesis.reject()
        hypothesis.note(source)
        given = [(*args, [0.5]) for args in calls] if writer == "residuals" else calls
        with interpreted_segments():
            way.check(lambda: load(source, folder), given, grad)
        passed.add(source)

    agrees()
    assert len(passed) >= count


@ways(SEGMENTS)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_few_interpreted_segments_agree_with_eager(folder: Path, writer: str, way: Way) -> None:
    check_in_segments(folder, writer, FEW, -1 - SEED * 1000, way)


@pytest.mark.slow
@ways(SEGMENTS, STEPS)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_interpreted_segments_agree_with_eager(folder: Path, writer: str, batch: int, way: Way) -> None:
    check_in_segments(folder, writer, SOME, SEED * 1000 + batch + 1, way)


@pytest.mark.slow
@ways(STEPS)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_interpreted_residuals_agree_with_eager(folder: Path, batch: int, way: Way) -> None:
    check_in_segments(folder, "residuals", SOME, SEED * 1000 + batch + 1, way)
