"""The page of reasons: every code has a section, and every example is refused, or captured, as the page says."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from torch import distributed

import stillgraph as sg
from stillgraph.core.reasons import REASONS
from tests.structure.examples import Example, examples_below, loader, prelude

TEXT = (Path(__file__).parents[2] / "docs/errors.md").read_text().partition("\n# Ten typical mistakes")[0]
EXAMPLES = list(examples_below("##", TEXT))
REFUSED = [example for example in EXAMPLES if example.code is not None and not example.told]
TOLD = [pair for pair in itertools.pairwise(EXAMPLES) if pair[0].told]
MENDED = [example for example in EXAMPLES if example.code is None]
CALLED = [example for example in REFUSED if "sg.to_static" in example.source and ".code" not in example.source]

WITHOUT_EXAMPLES = {
    "SG102": "Python has to be started with -X no_debug_ranges",
    "SG106": "wants a newer Python, or hundreds of nested statements",
    "SG107": "of captures without a full graph",
    "SG307": "a fault of stillgraph's, and a warning rather than an error",
    "SG403": "a fault of stillgraph's or of an exporter's",
}


# ---- the page
def test_every_code_has_a_section_in_the_order_of_the_catalogue() -> None:
    headings = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    assert headings == [f"{reason.code} {reason.title}" for reason in REASONS.values()]


def test_every_section_has_an_example_and_what_to_write_instead() -> None:
    shown = [(example.anchor[:5].upper(), example.code) for example in EXAMPLES]
    expected = [code for code in REASONS if code not in WITHOUT_EXAMPLES]
    assert shown == [pair for code in expected for pair in ((code, code), (code, None))]


# ---- its examples
@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Example], ModuleType]]:
    """Imports an example in a folder of its own; a group of processes that it has made is left again."""
    monkeypatch.chdir(tmp_path)
    yield loader(prelude(TEXT), tmp_path, monkeypatch)
    if distributed.is_initialized():
        distributed.destroy_process_group()


@pytest.mark.parametrize("example", CALLED, ids=str)
def test_what_is_refused_is_taken_by_eager(example: Example, load: Callable[[Example], ModuleType]) -> None:
    with sg.enable_to_static(False):
        load(example)


@pytest.mark.parametrize("example", REFUSED, ids=str)
def test_refused(example: Example, load: Callable[[Example], ModuleType]) -> None:
    with pytest.raises((sg.CaptureError, sg.LoadError)) as raised:
        load(example)
    assert raised.value.reason.code == example.code, str(raised.value)


@pytest.mark.parametrize("example", MENDED, ids=str)
def test_captured(example: Example, load: Callable[[Example], ModuleType]) -> None:
    load(example)


@pytest.mark.parametrize(("example", "mended"), TOLD, ids=str)
def test_told(example: Example, mended: Example, load: Callable[[Example], ModuleType]) -> None:
    assert f"({example.code})" in str(load(example).explained)
    assert f"({example.code})" not in str(load(mended).explained)
