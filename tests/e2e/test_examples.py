"""Every example runs as a script and does what it says."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path

import pytest

_EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


_SLOW = {"generate"}  # a minute of capture
_RUNS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in _SLOW else []) for path in _EXAMPLES
]


@pytest.mark.parametrize("path", _RUNS)
def test_example_does_what_it_says(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what an example writes stays out of the source tree
    namespace = runpy.run_path(str(path), run_name="example")
    main = namespace["main"]
    main(**{"steps": 2} if "steps" in inspect.signature(main).parameters else {})


# A model, its data, its training loop and eager's beside it: these take more than one idea does.
_WHOLE_RUNS = {"adaptive_computation", "bert_pretraining", "early_stopping", "gradient_accumulation"} | {
    "mixture_of_experts",
    "train_ddp",
}


def test_examples_are_short() -> None:
    lengths = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in _EXAMPLES}
    assert lengths
    for name, length in lengths.items():
        assert length < (100 if name in _WHOLE_RUNS else 60), name


@pytest.mark.slow
def test_the_notebook_runs_and_shows_programs_and_reports(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install nbclient ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install nbclient ipykernel")
    notebook = nbformat.read(_EXAMPLES[0].parent / "notebook.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = "".join(
        output["data"].get("text/html", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.output_type == "execute_result"
    )
    assert "<pre" in shown
    assert "<iframe" in shown
