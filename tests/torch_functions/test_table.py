"""The table of torch's functions: each row is captured for open sizes, and for sizes that only the run knows.

What a program gives is eager PyTorch's in value, type, shape and gradient, or the row is one of `REFUSED`. The fast
suite takes a sample of the rows.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from torch import nn
from torch.overrides import get_overridable_functions

from tests.torch_functions.inputs import forms, outcome
from tests.torch_functions.left_out import LEFT_OUT, MODULES_LEFT_OUT, REFUSED, why_refused
from tests.torch_functions.table import EXPRESSIONS

FORMS = forms()
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "torch-functions.md"
_SAMPLE = 61


def _holds(expression: str, cut: bool) -> None:
    """A form of a row that fails in eager PyTorch, such as one in place, says nothing; the row itself must not."""
    found = outcome(expression, cut)
    wanted = {why_refused(expression, cut) or "equal"} | ({"eager"} if expression not in EXPRESSIONS else set())
    assert found.said in wanted, f"{expression}: {found}"


@pytest.mark.parametrize("expression", FORMS[::_SAMPLE])
def test_a_sample(expression: str) -> None:
    for cut in (False, True):
        _holds(expression, cut)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [False, True], ids=["open", "of_the_run"])
@pytest.mark.parametrize("expression", FORMS)
def test_all(expression: str, cut: bool) -> None:
    _holds(expression, cut)


def _names() -> set[str]:
    return set(re.findall(r"\.(\w+)", " ".join(FORMS)))


def test_no_function_is_missing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = {function for each in get_overridable_functions().values() for function in each}
    names = {re.sub("^(linalg|fft|special)_", "", getattr(each, "__name__", "_")) for each in known}
    assert {name for name in names if not name.startswith("_")} - _names() - LEFT_OUT == set()


def test_no_module_is_missing() -> None:
    modules = {name for name, kind in vars(nn).items() if isinstance(kind, type) and issubclass(kind, nn.Module)}
    assert {name for name in modules if not name.startswith("Lazy")} - _names() - MODULES_LEFT_OUT == set()


def test_what_is_refused_is_in_the_table() -> None:
    assert [piece for piece in REFUSED if not any(piece in form for form in FORMS)] == []


def test_the_guide_has_the_count() -> None:
    refused = [[why_refused(row, cut) for row in EXPRESSIONS] for cut in (False, True)]
    counts = [len(EXPRESSIONS), *(sum(map(bool, each)) for each in refused)]
    told = re.search(r"(\d+) calls.* (\d+) of them are refused.* (\d+) are", " ".join(GUIDE.read_text().split()))
    assert told is not None
    assert [*map(int, told.groups())] == counts
