"""Generated programs that are written around steps for Python agree with eager, call by call.

Those of the other tests, steps sprinkled into them, are run there (`tests.property.ways.STEPS`).
"""
from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.property.residuals import residual_programs
from tests.property.test_programs import SEED, Inputs, folder, inputs, load
from tests.property.ways import STEPS

__all__ = ["folder"]  # the fixture

QUICK, BATCH, BATCHES = 1, 4, 15


def check(folder: Path, count: int, seed: int) -> None:
    """Compare so many programs with eager PyTorch, each over several inputs and those once more."""
    passed: set[str] = set()
    given_up: set[str] = set()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(residual_programs(), inputs(), st.booleans())
    def agrees(source: str, calls: Inputs, grad: bool) -> None:
        if source in passed:
            hypothesis.reject()
        hypothesis.note(source)
        if STEPS.check(lambda: load(source, folder), [(*args, [0.5]) for args in calls], grad):
            given_up.add(source)
        passed.add(source)

    agrees()
    assert len(passed) >= count
    assert len(given_up) * 4 <= count  # programs that are left to Python show nothing


@pytest.mark.parametrize("batch", range(2))
def test_programs_with_steps_agree_with_eager(folder: Path, batch: int) -> None:
    check(folder, QUICK, seed=-1 - batch - SEED * 1000)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_programs_with_steps_agree_with_eager(folder: Path, batch: int) -> None:
    check(folder, BATCH, seed=SEED * 1000 + batch + 1)
