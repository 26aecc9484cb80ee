"""Generated programs with their loops written out give what they give with loops."""

from __future__ import annotations

import contextlib
import copy
import io
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch

import stillgraph as sg
from stillgraph.deploy.exporting.iterations import most_iterations
from stillgraph.passes import pipeline
from stillgraph.passes.loops.bounding import loop_lines, with_bounds
from stillgraph.passes.regions.regions import WHILE
from stillgraph.program.graphs import regions
from stillgraph.program.interpreter import interpret
from stillgraph.program.program import Program
from stillgraph.program.verify import verify
from stillgraph.runtime.native.function_writer import read_source
from tests.cases.compare import assert_same
from tests.cases.interpreted import interpreted_segments
from tests.cases.test_interpreter import as_tensor, outcome, raised
from tests.property.programs import programs
from tests.property.test_programs import SEED, Inputs, folder, inputs, load
from tests.property.ways import BYTECODE, SEGMENTS, SOURCE, Way, way, ways

__all__ = ["folder", "way"]  # the fixtures

BATCH, SOME, BATCHES = 5, 2, 4


def captured(function: Any, calls: Inputs) -> Program | None:
    """A program with loops that a file can have, or None."""
    try:
        program = sg.export(function, copy.deepcopy(calls[0]))
    except Exception:  # what the function itself raises
        return None
    return program if is_bounded(program) else None


def is_bounded(program: Program) -> bool:
    """Whether a program has loops, and a file can have it."""
    try:
        pipeline.run(program)
    except sg.ExportError:
        return False
    return bool(loop_lines(program))


def called(function: Any, calls: Inputs, way: Way) -> dict[int, tuple[Program, list[Any]]]:
    """The programs with loops among the segments of calls, and what each is called with."""
    found: dict[int, tuple[Program, list[Any]]] = {}

    def note(program: Program, inputs: tuple[Any, ...]) -> None:
        if id(program) in found or is_bounded(program):
            found.setdefault(id(program), (program, []))[1].append(copy.deepcopy(inputs))

    static = way.convert(function, None)
    with interpreted_segments(note), contextlib.redirect_stdout(io.StringIO()):
        for args in calls:
            with contextlib.suppress(Exception):  # what the function itself raises; other tests compare that
                static(*copy.deepcopy(args))
    return found


@pytest.mark.slow
@ways(SOURCE, BYTECODE)
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.usefixtures("way")
def test_bounded_programs_agree_with_their_loops(folder: Path, batch: int) -> None:
    passed: set[str] = set()

    @hypothesis.seed(SEED * 1000 + batch + 1)
    @hypothesis.settings(
        max_examples=BATCH, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(programs(), inputs())
    def agrees(source: str, calls: Inputs) -> None:
        with torch.no_grad():
            program = captured(load(source, folder), calls) if source not in passed else None
            if program is None:
                hypothesis.reject()
            hypothesis.note(source)
            check(program, [tuple(read_source(each.source, call, {}) for each in program.inputs) for call in calls[:3]])
        passed.add(source)

    agrees()
    assert len(passed) >= BATCH


@pytest.mark.slow
@ways(SEGMENTS)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_bounded_segments_agree_with_their_loops(folder: Path, batch: int, way: Way) -> None:
    passed: set[str] = set()

    @hypothesis.seed(SEED * 1000 + batch + 1)
    @hypothesis.settings(
        max_examples=SOME, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(way.written(programs()), inputs())
    def agrees(source: str, calls: Inputs) -> None:
        with torch.no_grad():
            found = called(load(source, folder), calls, way) if source not in passed else {}
            if not found:
                hypothesis.reject()
            hypothesis.note(source)
            for program, given in found.values():
                check(program, given)
        passed.add(source)

    agrees()
    assert len(passed) >= SOME


def check(program: Program, given: list[tuple[Any, ...]]) -> None:
    """Compare a program with itself, its loops written out as often as its inputs need."""
    bounds = dict.fromkeys(loop_lines(program), 1)
    for values in given:
        for node, count in most_iterations(program, copy.deepcopy(values)).items():
            bounds[node.meta["location"].line] = max(bounds[node.meta["location"].line], count)
    lowered, bounded = pipeline.run(program), pipeline.run(with_bounds(program, bounds))
    verify(bounded)
    assert not any(node.target is WHILE for module in regions(bounded.graph) for node in module.graph.nodes)
    for values in given:
        tensors = tuple(map(as_tensor, values))
        expected, _ = outcome(lambda *each: interpret(lowered, each), tensors)
        actual, _ = outcome(lambda *each: interpret(bounded, each), tensors)
        assert raised(actual) == raised(expected), (actual, expected)
        if not raised(expected):
            assert_same(list(expected), list(actual))
