"""The table of torch's functions: each row is captured for open sizes, and for sizes that only the run knows.

What a program gives is eager PyTorch's in value, type, shape and gradient, or the row is one of `REFUSED`. The fast suite
takes a sample of the rows.
"""
from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.overrides import get_overridable_functions

from tests.torch_functions.inputs import forms, outcome
from tests.torch_functions.left_out import LEFT_OUT, REFUSED, RANDOM_MEMORY, why_refused

FORMS = forms()
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "torch-functions.md"
_SAMPLE = 45


def _holds(expression: str, cut: bool) -> None:
    found = outcome(expression, cut)
    wanted = "equal" if why_refused(expression, cut) is None else why_refused(expression, cut)
    assert found.said in (wanted, "eager"), f"{expression}: {found}"
    if found.said == "eager":
        assert expression not in torch_rows(), f"{expression}: {found}"


def torch_rows() -> set[str]:
    from tests.torch_functions.table import EXPRESSIONS

    return {*EXPRESSIONS} - RANDOM_MEMORY


@pytest.mark.parametrize("expression", FORMS[::_SAMPLE])
def test_a_sample(expression: str) -> None:
    for cut in (False, True):
        _holds(expression, cut)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [False, True], ids=["open", "of-the-run"])
@pytest.mark.parametrize("expression", FORMS)
def test_all(expression: str, cut: bool) -> None:
    _holds(expression, cut)
