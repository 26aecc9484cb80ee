"""Every conformance case, run by the reference interpreter: as it was captured, and as the passes leave it."""

from __future__ import annotations

import contextlib
import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.passes import pipeline
from stillgraph.program.interpreter import interpret
from stillgraph.program.program import Program
from stillgraph.runtime.native.function_writer import read_source
from stillgraph.runtime.native.native import lower
from tests.cases.case import Case, all_cases
from tests.cases.compare import assert_same
from tests.cases.harness import check_static, input_specs
from tests.cases.interpreted import to_interpreted

CASES = [pytest.param(case, id=name) for name, case in all_cases().items()]


@pytest.mark.parametrize("case", CASES)
def test_interpreted(case: Case) -> None:
    check_static(case, to_interpreted)


# ---- both lowerings, on the very inputs of one captured call
def exported(case: Case) -> tuple[Program, tuple[Any, ...]]:
    """The program of a case's first call without gradients, and its inputs."""
    target, args = case.target(), copy.deepcopy(case.inputs[0])
    program = sg.export(target, args, dict(case.kwargs), input_spec=input_specs(case))
    receiver = (target,) if isinstance(target, nn.Module) else ()
    return program, tuple(read_source(i.source, (*receiver, *args), dict(case.kwargs)) for i in program.inputs)


def outcome(run: Any, inputs: tuple[Any, ...]) -> tuple[Any, str]:
    """The outputs on copies of the inputs, or the exception; and what was printed."""
    torch.manual_seed(1)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            given: Any = tuple(run(*copy.deepcopy(inputs)))
        except Exception as error:
            given = (type(error), str(error))
    return given, printed.getvalue()


def raised(given: tuple[Any, ...]) -> bool:
    return bool(given) and isinstance(given[0], type)


def as_tensor(value: Any) -> Any:
    kinds = {bool: torch.bool, int: torch.int64, float: torch.float64}
    return torch.tensor(value, dtype=kinds[type(value)]) if type(value) in kinds else value


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if c.values[0].capture_refused is None])
def test_lowerings(case: Case) -> None:
    with torch.no_grad():
        program, inputs = exported(case)
        expected, printed = outcome(lambda *given: interpret(program, given), inputs)
        native, natively_printed = outcome(lower(program, None).run, inputs)
        assert_same(expected, native, "the native driver's outputs")
        assert natively_printed == printed
        try:
            lowered = pipeline.run(program)
        except sg.CaptureError:
            return
        tensors = tuple(map(as_tensor, inputs))
        whole, _ = outcome(lambda *given: interpret(lowered, given), tensors)
    if raised(expected):
        assert raised(whole), f"the whole graph gives {whole}, the program raises {expected}"
        return
    plain = [each for each in expected if isinstance(each, (Tensor, bool, int, float))]
    outputs = list(map(as_tensor, whole))[: len(plain)]
    assert_same([as_tensor(each) for each in plain], outputs, "the whole graph's outputs")
