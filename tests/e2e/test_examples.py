"""Every example runs as a script and does what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

_EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what an example writes stays out of the source tree
    namespace = runpy.run_path(str(path), run_name="example")
    namespace["main"]()


def test_examples_are_short() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in _EXAMPLES}
    assert lengths
    assert max(lengths.values()) < 60, lengths
