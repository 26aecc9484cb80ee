"""What refusals say, word for word. `STILLGRAPH_UPDATE_GOLDEN=1` writes what they say now."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed

import stillgraph as sg
from stillgraph.core.reasons import REASONS
from tests.cases.compare import assert_same
from tests.unit.messages import checks, containers, demands, files, joins, lanes, loops, outside, run_time
from tests.unit.messages.case import MENDED, ROOT, Case, cases_of

GOLDEN = ROOT / "tests" / "golden" / "messages"
_MODULES = (checks, containers, demands, files, joins, lanes, loops, outside, run_time)
CASES = [case for module in _MODULES for case in cases_of(module.__name__.rpartition(".")[2])]

WITHOUT_A_MESSAGE = {
    "SG102": "Python has to be started with -X no_debug_ranges",
    "SG106": "wants a newer Python, or hundreds of nested statements",
    "SG107": "of captures without a full graph",
    "SG307": "a fault of stillgraph's",
    "SG404": "says what is wrong with a file: see tests/unit/deploy/test_hostile_files.py",
    "SG403": "a fault of stillgraph's or of an exporter's",
    "SG601": "no error: explain tells it",
    "SG602": "no error: explain tells it",
    "SG603": "no error: explain tells it",
    "SG604": "no error: explain tells it",
    "SG605": "no error: explain tells it",
    "SG606": "no error: explain tells it",
}
OURS = re.compile(
    r"Unjoined|_Dead|Staged[A-Z]|FakeTensor|MaybeKey|\bEntry\b|Exit\(|<locals>|stillgraph\.(trace|operators)"
)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    demands.factor.cache_clear()  # what another test has computed would not be printed
    yield
    if distributed.is_initialized():
        distributed.destroy_process_group()
    assert not list(tmp_path.glob("not_to_be_made*")), "what was refused has left a file"


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="columns and Python's own texts differ between versions")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_says(case: Case) -> None:
    message = case.message() + "\n"
    path = GOLDEN / f"{case}.txt"
    if os.environ.get("STILLGRAPH_UPDATE_GOLDEN"):
        path.write_text(message)
    assert message == path.read_text()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_golden_messages_speak_of_the_users_code(case: Case) -> None:
    text = (GOLDEN / f"{case}.txt").read_text()
    assert not OURS.search(text), OURS.search(text)
    assert "\n  hint: " in text
    assert f"\n  reason {case.code} (stillgraph errors {case.code})" in text


@pytest.mark.parametrize(("wrong", "mended", "args"), MENDED, ids=lambda each: getattr(each, "__name__", ""))
def test_what_the_hint_says_gives_what_eager_gives(
    wrong: Any, mended: Any, args: tuple[Any, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert any(case.target is wrong for case in CASES)
    for scale in (1.0, 2.0, 0.1):
        given = tuple(value * scale if isinstance(value, torch.Tensor) else value for value in args)
        torch.manual_seed(0)
        function = mended() if isinstance(mended, type) else mended
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            actual = sg.to_static(function, backend="eager")(*given)
        shown = capsys.readouterr().out
        assert_same(function(*given), actual, mended.__name__)
        assert capsys.readouterr().out == shown


def test_every_code_has_a_message() -> None:
    assert {case.code for case in CASES} | WITHOUT_A_MESSAGE.keys() == REASONS.keys()


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(map(str, CASES))
