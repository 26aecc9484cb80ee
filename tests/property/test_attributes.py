"""Generated programs that set, delete and read attributes on some paths leave the state that eager leaves."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.importing import loaded
from tests.property.attributes import NAMES, attribute_programs

QUICK, BATCH, BATCHES = 5, 30, 6
WAYS = ("source", "bytecode", "segments")
INPUTS = [torch.tensor(each) for each in ([0.25, 1.0], [-1.0, -1.5], [0.0, 0.0], [2.0, -1.0])]
REFUSED = {"SG201", "SG202", "SG203", "SG204", "SG205", "SG208", "SG209", "SG301", "SG305"}
_count = itertools.count()


def _outcome(function: Any, o: Any, x: torch.Tensor) -> tuple[str, dict[str, str], list[str]]:
    try:
        result = repr(function(o, x.clone()))
    except (AttributeError, TypeError, RuntimeError) as error:
        result = f"{type(error).__name__}: {error}"
    own = {name for name in NAMES if name in getattr(o, "__dict__", {})}
    return result, {name: repr(getattr(o, name, "absent")) for name in NAMES}, sorted(own)


def _compare(source: str, order: tuple[int, ...], way: str, folder: Path) -> str | None:
    """Compare calls with eager's; the code of the reason for which one is refused."""
    path = folder / f"attributes_{next(_count)}.py"
    path.write_text(source)
    module = loaded(path)
    mine, other = module.Owner(), module.Owner()
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(module.function, full_graph=way != "segments", backend="eager")
        for number in order:
            try:
                given = _outcome(static, mine, INPUTS[number])
            except sg.CaptureError as error:
                if way == "segments" or error.reason.code not in REFUSED:
                    raise
                return error.reason.code
            assert given == _outcome(module.function, other, INPUTS[number]), f"call with {INPUTS[number]}"
    return None


def _check(folder: Path, count: int, seed: int, way: str) -> Counter[str]:
    refused: Counter[str] = Counter()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(attribute_programs(), st.permutations(range(len(INPUTS))))
    def agrees(source: str, order: list[int]) -> None:
        hypothesis.note(source)
        code = _compare(source, tuple(order[:3]), way, folder)
        if code is not None:
            refused[code] += 1

    agrees()
    return refused


@pytest.mark.parametrize("way", WAYS)
def test_programs_agree_with_eager(way: str, tmp_path: Path) -> None:
    refused = _check(tmp_path, QUICK, WAYS.index(way), way)
    assert sum(refused.values()) <= QUICK / 2, refused


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("way", WAYS)
def test_many_programs_agree_with_eager(way: str, batch: int, tmp_path: Path) -> None:
    refused = _check(tmp_path, BATCH, 100 + batch, way)
    assert sum(refused.values()) <= BATCH / 2, refused
