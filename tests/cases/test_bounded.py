"""Every conformance case with a loop, written out as so many iterations as its inputs need, and as one less."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import nn

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
from tests.cases.case import Case, all_cases
from tests.cases.compare import assert_same
from tests.cases.harness import check_onnx, check_pt2, signature
from tests.cases.test_interpreter import as_tensor, exported, outcome, raised

CASES = {name: case for name, case in all_cases().items() if case.capture_refused is None}
LOOPED = [
    "A05_while_tensor", "A07_for_range_tensor", "A11_break_usage", "A11d_break_usage_dynshape",
    "A13_while_true_break", "A14_return_in_loop", "A14b_return_in_tensor_while", "A22d_shape_loop_dyn",
    "A28_recur_tensor", "A30_list_append_while", "A30b_list_append_return", "A32b_nested_list_loop",
    "A41_nested_loops", "A48_for_else", "A56_py_counter_in_while", "A60_none_init", "G02_grad_while",
    "GreedyDecoder", "GrowingDecoder", "M06_IfInWhile_var", "M07_scalar_in_var_while", "VariableLengthRNN",
    "backtracking_descent", "binary_search", "bouncing_ball",
    "collatz", "first_saturated_row", "fixed_point", "gcd", "golden_section",
    "kmeans", "power_iteration", "relaxation", "restarted_momentum", "smallest_factor",
]
LONG = {"collatz", "fixed_point", "power_iteration"}
"""They need a hundred iterations and more, over which torch's exporters take minutes."""
LONG_IN_ONNX = LONG | {"backtracking_descent", "bouncing_ball"}
"""Loops in loops, over which the ONNX exporter takes a quarter of an hour."""


def calls(case: Case, program: Program) -> Iterator[tuple[Any, ...]]:
    """The inputs of a program for each call of the case that it was made for."""
    for index, args in enumerate(case.inputs):
        if signature(case, index) == signature(case, 0) and (index == 0 or case.programs is None):
            target = case.target()
            receiver = (target,) if isinstance(target, nn.Module) else ()
            sources = [given.source for given in program.inputs]
            yield tuple(read_source(source, (*receiver, *args), dict(case.kwargs)) for source in sources)


def needed(case: Case, program: Program) -> dict[int, int]:
    """By line how many iterations the loops take for any of the inputs."""
    found = dict.fromkeys(loop_lines(program), 1)
    for inputs in calls(case, program):
        for node, count in most_iterations(program, copy.deepcopy(inputs)).items():
            line = node.meta["location"].line
            found[line] = max(found[line], count)
    return found


def loops(graph: torch.fx.GraphModule) -> int:
    return sum(len(module.graph.find_nodes(op="call_function", target=WHILE)) for module in regions(graph))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_which_cases_have_loops(name: str) -> None:
    with torch.no_grad():
        program, _ = exported(CASES[name])
    assert bool(loop_lines(program)) == (name in LOOPED)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPED)
def test_bounded_programs(name: str) -> None:
    case = CASES[name]
    with torch.no_grad():
        program, _ = exported(case)
        bounds = needed(case, program)
        bounded = pipeline.run(with_bounds(program, bounds))
        verify(bounded)
        assert loops(bounded.graph) == 0
        for inputs in calls(case, program):
            expected, _ = outcome(lambda *given: interpret(program, given), inputs)
            actual, _ = outcome(lambda *given: interpret(bounded, given), tuple(map(as_tensor, inputs)))
            assert raised(actual) == raised(expected), actual
            if not raised(expected):
                plain = [each for each in expected if isinstance(each, (torch.Tensor, bool, int, float))]
                assert_same([as_tensor(each) for each in plain], list(map(as_tensor, actual))[: len(plain)])
        line = max(bounds, key=lambda each: bounds[each])
        short = pipeline.run(with_bounds(program, {**bounds, line: bounds[line] - 1}))
        given = [outcome(lambda *each: interpret(short, each), tuple(map(as_tensor, i))) for i in calls(case, program)]
    text = f":{line} takes more than max_iterations={bounds[line] - 1} iterations"
    assert any(raised(each) and text in each[1] for each, _ in given)


def save_bounded(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """Have the checks of cases save with bounds."""
    with torch.no_grad():
        bounds = needed(case, exported(case)[0])
    monkeypatch.setattr(sg, "save", lambda *args, save=sg.save, **kw: save(*args, **kw, max_iterations=bounds))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LOOPED if name not in LONG])
def test_bounded_pt2(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_bounded(monkeypatch, CASES[name])
    check_pt2(CASES[name], tmp_path)
    assert loops(torch.export.load(tmp_path / f"{name}.pt2").graph_module) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LOOPED if name not in LONG_IN_ONNX])
def test_bounded_onnx(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_bounded(monkeypatch, CASES[name])
    check_onnx(CASES[name], tmp_path)
    assert not {"Loop", "Scan"} & set(operators(onnx.load(tmp_path / f"{name}.onnx").graph))


def operators(graph: onnx.GraphProto) -> Iterator[str]:
    """The operators of an ONNX graph and of those in it."""
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from operators(attribute.g)
