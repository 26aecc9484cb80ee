"""Every example runs as a script and does what it says."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path

import pytest

_EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.stem)
def test_example_does_what_it_says(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what an example writes stays out of the source tree
    namespace = runpy.run_path(str(path), run_name="example")
    main = namespace["main"]
    main(**{"steps": 2} if "steps" in inspect.signature(main).parameters else {})


def test_examples_are_short() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in _EXAMPLES}
    assert lengths
    assert max(lengths.values()) < 110, lengths
