"""Generated programs give the same results with each pass of the optimiser and without it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch

import stillgraph as sg
from stillgraph.passes import pipeline
from stillgraph.passes.optimise.optimise import PASSES, optimise
from stillgraph.passes.regions.dead_code import drop_dead_code
from stillgraph.program.program import Program
from stillgraph.program.verify import verify
from tests.property.programs import programs
from tests.property.test_programs import SEED, Inputs, folder, inputs, load
from tests.unit.passes.captured import run

__all__ = ["folder"]  # the fixture

BATCH, BATCHES = 20, 4
PLACE = pipeline.WHOLE_GRAPH.index(optimise)


def outcome(program: Program, args: tuple[Any, ...]) -> Any:
    try:
        return [each.tolist() if isinstance(each, torch.Tensor) else each for each in run(program, args)]
    except Exception as error:  # the program's own
        return type(error)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and left == right


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_generated_programs_mean_the_same(folder: Path, batch: int) -> None:
    passed, smaller = set[str](), set[str]()

    @hypothesis.seed(SEED * 1000 + batch + 7)
    @hypothesis.settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],  # a smaller program would take minutes to find
    )
    @hypothesis.given(programs(), inputs())
    def agrees(source: str, calls: Inputs) -> None:
        if source in passed:
            hypothesis.reject()
        hypothesis.note(source)
        with torch.no_grad():
            try:
                program = sg.export(load(source, folder), calls[0])
                lowered = pipeline.run(program, pipeline.WHOLE_GRAPH[:PLACE])
                before = pipeline.run(lowered, pipeline.WHOLE_GRAPH[PLACE + 1 :])
            except Exception:  # what the function itself raises, or what no file holds
                hypothesis.reject()
            everything = lowered
            for name, optimised in PASSES.items():
                alone = drop_dead_code(optimised(lowered))
                everything = drop_dead_code(optimised(everything))
                if str(alone) != str(lowered):
                    smaller.add(name)
                for made in (alone, everything):
                    made = pipeline.run(made, pipeline.WHOLE_GRAPH[PLACE + 1 :])
                    verify(made)
                    for args in calls[:-1]:  # the last has other Python arguments, which are constants of the program
                        hypothesis.note(name)
                        assert same(outcome(made, args), outcome(before, args))
        passed.add(source)

    agrees()
    assert len(passed) >= BATCH // 2
    assert "selections" in smaller
