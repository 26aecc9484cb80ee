"""The guide's table of constructs: every row has an example, and every example does what the table says."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import stillgraph as sg
from stillgraph.core.reasons import REASONS
from tests.structure.examples import Example, examples_below, loader, prelude
from tests.unit.trace.agreement import agree_fresh

PAGE = Path(__file__).parents[2] / "docs/guide/constructs.md"
TEXT = PAGE.read_text()
CODE = re.compile(r"\bSG\d{3}\b")


@dataclass(frozen=True)
class Row:
    """A row of a table: the anchor it links to, and the codes in its last column."""

    anchor: str
    codes: frozenset[str]


def rows() -> Iterator[Row]:
    """Every row of every table."""
    for line in TEXT.splitlines():
        link = re.match(r"\| \[.*?\]\(#([\w-]+)\) \|", line)
        if link:
            yield Row(link[1], frozenset(CODE.findall(line)))
        else:
            assert not line.startswith("| ") or line.startswith("| construct |"), f"a row without a link: {line}"


ROWS, EXAMPLES = list(rows()), list(examples_below("####", TEXT))
WORKING = [example for example in EXAMPLES if example.code is None]
REFUSED = [example for example in EXAMPLES if example.code is not None]


# ---- the page
def test_every_row_has_an_example_and_every_example_a_row() -> None:
    headings = list(dict.fromkeys(example.anchor for example in EXAMPLES))
    assert [row.anchor for row in ROWS] == headings
    assert len(re.findall(r"^#### ", TEXT, re.MULTILINE)) == len(headings), "a heading without an example, or twice"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.anchor)
def test_the_codes_of_a_row_are_in_the_catalogue_and_those_of_its_examples(row: Row) -> None:
    assert row.codes <= REASONS.keys()
    assert {example.code for example in REFUSED if example.anchor == row.anchor} == row.codes


# ---- its examples
@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Example], ModuleType]:
    return loader(prelude(TEXT), tmp_path, monkeypatch)


def maker(module: ModuleType, again: Callable[[], ModuleType]) -> Callable[[], Any]:
    """What makes the example's target: twice the same function, or a fresh one where it keeps state."""
    if hasattr(module, "make"):
        return module.make  # type: ignore[no-any-return]
    if isinstance(module.example, type):
        return module.example
    if "\n    global " in Path(str(module.__file__)).read_text():
        return lambda: again().example
    return lambda: module.example


def kind(value: Any) -> Any:
    """All that the calls of one program have in common."""
    if isinstance(value, Tensor):
        return value.dtype, tuple(value.shape), value.requires_grad
    return repr(value)


def programs_for(module: ModuleType) -> int:
    """How many programs the calls of an example may need."""
    if hasattr(module, "programs"):
        return int(module.programs)
    if hasattr(module, "input_spec"):
        return 1
    calls = [call for call in module.calls if isinstance(call, tuple)]
    return len({(str(pytree.tree_structure(call)), *map(kind, pytree.tree_leaves(call))) for call in calls})


@pytest.mark.parametrize("example", WORKING, ids=str)
def test_as_in_eager(example: Example, load: Callable[[Example], ModuleType]) -> None:
    module = load(example)
    make = maker(module, lambda: load(example))
    agree_fresh(make, *module.calls, programs=programs_for(module), input_spec=getattr(module, "input_spec", None))


@pytest.mark.parametrize("example", REFUSED, ids=str)
def test_refused(example: Example, load: Callable[[Example], ModuleType]) -> None:
    module = load(example)
    make = maker(module, lambda: load(example))
    for call in module.calls:
        with torch.enable_grad():  # what an example leaves switched is switched back
            result = make()(*copy.deepcopy(call))  # Python takes it
        if inspect.iscoroutine(result):
            result.close()
        torch.manual_seed(0)
        static = sg.to_static(make(), backend="eager", input_spec=getattr(module, "input_spec", None))
        with pytest.raises(sg.CaptureError) as raised:
            static(*copy.deepcopy(call))
        assert raised.value.reason.code == example.code, str(raised.value)
