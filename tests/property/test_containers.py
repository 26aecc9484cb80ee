"""Generated programs with containers give what eager gives, or are refused for a reason that aliases give."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

import stillgraph as sg
from tests.property.containers import container_programs
from tests.property.test_programs import SEED, Inputs, folder, inputs, load
from tests.property.ways import BYTECODE, SEGMENTS, SOURCE, STEPS, Way, way, ways

__all__ = ["folder", "way"]  # the fixtures

FEW, QUICK, BATCH, BATCHES, OTHERS = 2, 3, 15, 16, 6
REFUSED = {"SG201", "SG203", "SG204", "SG205", "SG207", "SG210", "SG211", "SG301", "SG305"}


def refusal(function: Any, calls: Inputs, way: Way = SOURCE) -> sg.CaptureError | None:
    """The first error with which the capture of a call is refused; in segments, none is."""
    if not way.is_whole:
        return None
    static = sg.to_static(function, backend="eager")
    for args in calls:
        try:
            static.get_program(*copy.deepcopy(args))
        except sg.CaptureError as error:
            return error
        except Exception:
            return None  # what the function itself raises whatever its tensors hold
    return None


def check(folder: Path, count: int, seed: int, way: Way = SOURCE) -> Counter[str]:
    """Compare `count` different programs with eager; how many were refused, by the code of the reason."""
    passed: set[str] = set()
    refused: Counter[str] = Counter()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(way.written(container_programs()), inputs(), st.booleans())
    def agrees(source: str, calls: Inputs, grad: bool) -> None:
        if source in passed:
            hypothesis.reject()
        hypothesis.note(source)
        error = refusal(load(source, folder), calls, way)
        if error is None:
            way.check(lambda: load(source, folder), calls, grad)
        else:
            assert error.reason.code in REFUSED, error
            refused[error.reason.code] += 1
        passed.add(source)

    agrees()
    assert len(passed) >= count
    return refused


@pytest.mark.parametrize("batch", range(1))
def test_programs_agree_with_eager(folder: Path, batch: int) -> None:
    refused = check(folder, QUICK, seed=-1 - batch - SEED * 1000)
    assert sum(refused.values()) <= QUICK / 2, refused


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_programs_agree_with_eager(folder: Path, batch: int) -> None:
    refused = check(folder, BATCH, seed=SEED * 1000 + batch + 1)
    assert sum(refused.values()) <= BATCH / 3, refused


@ways(BYTECODE, SEGMENTS, STEPS)
def test_a_few_programs_agree_with_eager(folder: Path, way: Way) -> None:
    refused = check(folder, 2 if way is STEPS else FEW, -1 - SEED * 1000, way)
    assert sum(refused.values()) <= FEW / 2, refused


@pytest.mark.slow
@ways(BYTECODE, SEGMENTS, STEPS)
@pytest.mark.parametrize("batch", range(OTHERS))
def test_many_programs_agree_with_eager_other_ways(folder: Path, batch: int, way: Way) -> None:
    refused = check(folder, BATCH, SEED * 1000 + batch + 1, way)
    assert sum(refused.values()) <= BATCH / 3, refused
