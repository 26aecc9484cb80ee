"""Generated programs with steps for Python mixed into them agree with eager, call by call."""
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.cases.case import Case
from tests.cases.harness import check_static
from tests.property.programs import Grammar, programs
from tests.property.residuals import residual_programs
from tests.property.test_programs import SEED, Inputs, folder, inputs, load
from tests.property.ways import MANY, to_segments

__all__ = ["folder"]  # the fixture

QUICK, BATCH, BATCHES = 2, 12, 5
STEPS = (
    'print("step", float(s))',
    "seen.append(v.sum().item())",
    "n = (n + random.Random(3).randint(0, 3)) % 5",
    "c = cache.setdefault(n % 3, 0.5)",
    'print("length", len(seen))',
)


@st.composite
def partial_programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> str:
    """A program with a few steps put in front of its statements."""
    lines = draw(programs(Grammar(statements=(3, 5, 8)))).split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith("def ")) + 1
    places = [
        index
        for index in range(start, len(lines))
        if lines[index].strip() and not re.match(r"\s*(elif|else)\b", lines[index])
    ]
    for index in sorted(draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True)), reverse=True):
        indent = re.match(r"\s*", lines[index]).group()  # type: ignore[union-attr]  # it matches nothing, too
        lines.insert(index, indent + draw(st.sampled_from(STEPS)))
    lines.insert(start, "    seen, cache = [], {}")
    return "import random\n" + "\n".join(lines)


WRITERS = {"steps": partial_programs, "residuals": residual_programs}


def check(folder: Path, writer: str, count: int, seed: int) -> None:
    """Compare so many programs with eager PyTorch, each over several inputs and those once more."""
    passed: set[str] = set()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(WRITERS[writer](), inputs(), st.booleans())
    def agrees(source: str, calls: Inputs, grad: bool) -> None:
        if source in passed:
            hypothesis.reject()
        hypothesis.note(source)
        given = calls if writer == "steps" else [(*args, [0.5]) for args in calls]
        changes = writer == "residuals"  # counters in closures, for one, are others in each call
        make = lambda: load(source, folder)  # noqa: E731  -- each has globals of its own
        case = Case("a generated program", make, given * 2, grad=grad, programs=MANY, may_give_up=changes)
        check_static(case, to_segments)
        passed.add(source)

    agrees()
    assert len(passed) >= count


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("batch", range(2))
def test_programs_with_steps_agree_with_eager(folder: Path, writer: str, batch: int) -> None:
    check(folder, writer, QUICK if writer == "steps" else 1, seed=-1 - batch - SEED * 1000)


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_programs_with_steps_agree_with_eager(folder: Path, writer: str, batch: int) -> None:
    check(folder, writer, BATCH, seed=SEED * 1000 + batch + 1)
