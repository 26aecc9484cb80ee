"""What stands for a number, a text or an array in a capture: it answers as that would, or the capture is refused."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.core.diagnostics import CaptureError
from tests.front_ends import through_bytecode
from tests.importing import loaded
from tests.property.stand_ins import FUNCTION, OF_TEXTS, OTHERS
from tests.sampling import crossed, few

POSITIVE, NEGATIVE = (1.0, 2.0), (-1.0, -2.0)
REFUSED = "refused: "
WAYS = ("source", "bytecode", "in steps")


def written(folder: Path, expression: str) -> FunctionType:
    path = folder / "written.py"
    path.write_text(FUNCTION.format(expression=expression))
    module = loaded(path)
    function: FunctionType = module.function
    return function


def static(function: FunctionType, way: str) -> Any:
    return sg.to_static(function, backend="eager", full_graph=way != "in steps")


def told(result: Any) -> str:
    return f"{type(result).__name__}: {result!r}"


@pytest.mark.parametrize(("expression", "way"), crossed(OF_TEXTS, WAYS))
def test_what_a_text_of_the_run_answers(tmp_path: Path, expression: str, way: str) -> None:
    function = written(tmp_path, expression)
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext():
        compiled = static(function, way)
        for values in (POSITIVE, NEGATIVE):
            x = torch.tensor(values)
            assert told(compiled(x)) == told(function(x))


@pytest.mark.parametrize(("expression", "way"), few(itertools.product(OTHERS, WAYS), every=7))
def test_no_handler_sees_what_eager_does_not_raise(tmp_path: Path, expression: str, way: str) -> None:
    function = written(tmp_path, expression)
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # by which a call is told that was made in plain PyTorch
        compiled = static(function, way)
        for values in (POSITIVE, NEGATIVE):
            x = torch.tensor(values)
            found = told_or_refused(compiled, x)
            assert "SG307" not in found  # which says that eager PyTorch does not raise what the capture has raised
            assert found.startswith(REFUSED) or _eagers(found) == _eagers(told(function(x)))


def told_or_refused(compiled: Any, x: torch.Tensor) -> str:
    try:
        return told(compiled(x))
    except (CaptureError, RuntimeWarning) as refused:
        return f"{REFUSED}{refused}"


def _eagers(text: str) -> str:
    return text.partition("'data': (")[0]  # where it is in memory
