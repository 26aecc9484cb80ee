from __future__ import annotations

import builtins
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

import stillgraph as sg
from stillgraph.report import explain as data
from stillgraph.report.explained import SCHEMA
from tests.unit.report import models

GOLDEN = Path(__file__).parents[2] / "golden" / "report"


@pytest.fixture(scope="module")
def halving() -> Any:
    return sg.to_static(models.halve, backend="eager").explain(torch.ones(3, 4), torch.tensor(1.0))


@pytest.fixture(scope="module")
def refusal() -> Any:
    return sg.to_static(models.reads_a_file, backend="eager").explain(torch.ones(3))


# ---- JSON
@pytest.mark.parametrize("name", ["halving", "refusal"])
def test_json_holds_all_of_it(name: str, request: pytest.FixtureRequest) -> None:
    explanation = request.getfixturevalue(name)
    loaded = json.loads(explanation.to_json())
    assert loaded == explanation.to_dict()
    assert loaded["schema"] == SCHEMA == 1
    assert set(loaded) == {"schema"} | {f for f in type(explanation).__dataclass_fields__ if f != "program"}


def test_json_of_a_program(halving: Any) -> None:
    loaded = halving.to_dict()
    assert loaded["refused"] is None
    top = loaded["boxes"][0]
    assert [value["type"] for value in top["inputs"]] == ["f32[3, 4]", "f32[]"]
    first = top["operations"][0]
    assert (first["id"], first["text"], first["inputs"]) == ("0/mean", "x.mean()", ["x"])
    assert first["place"]["line"] == models.halve.__code__.co_firstlineno + 4
    loop = next(each for each in top["operations"] if each["construct"] == "while")
    assert [loaded["boxes"][number]["role"] for number in loop["boxes"]] == ["test", "body"]
    assert {phase["name"] for phase in loaded["phases"]} >= {"rewriting", "recording", "guards", "lowering"}
    assert loaded["sizes"]["operations"] == loaded["nodes"] == sum(count for _, count in loaded["operations"])


def test_json_is_written_to_a_file(halving: Any, tmp_path: Path) -> None:
    text = halving.to_json(tmp_path / "it.json")
    assert (tmp_path / "it.json").read_text() == text + "\n"
    assert os.listdir(tmp_path) == ["it.json"]


def test_the_cache_is_told_of() -> None:
    static = sg.to_static(models.unlike, backend="eager", dynamic=False)
    static(torch.ones(3))
    static(torch.ones(4))
    static(torch.ones(4))
    cache = static.explain(torch.ones(4)).cache
    assert (cache.hits, cache.misses, cache.programs, cache.this_call) == (1, 2, 2, None)
    assert "the shape is (4,)" in cache.reasons[0]
    assert cache.reasons[1] == ""
    assert "the shape is (5,)" in static.explain(torch.ones(5)).cache.this_call


def test_a_program_without_a_record_is_explained() -> None:
    program = sg.trace(models.unlike, (torch.ones(3),)).program
    explanation = data.explain(program)
    assert [function.name for function in explanation.functions] == ["unlike"]
    assert explanation.nodes == sum(len(box.operations) for box in explanation.boxes)


def test_a_capture_without_an_explanation_keeps_decisions_but_no_lines() -> None:
    record = sg.export(models.halve, (torch.ones(3, 4), torch.tensor(1.0))).record
    assert record.lines == ()
    assert [(each.kind, str(each)) for each in record.decisions] == [
        ("if", "the condition was true"),
        ("for", "unrolled: 3 iterations"),
    ]
    assert [function.name for function in record.functions] == ["halve"]


# ---- texts
def steady(text: str) -> str:
    """A text without times and folders, and frames that do not depend on how long those are."""
    text = re.sub(r"\d+\.\d{3} s", "N s", text)
    text = re.sub(r" +│$", " │", re.sub("─+", "─", text), flags=re.MULTILINE)
    return re.sub(r'File ".*?models.py"', 'File "models.py"', text)


def terminal_text(explanation: Any) -> str:
    console = Console(width=300, force_terminal=True, color_system=None, record=True, file=io.StringIO())
    console.print(explanation)
    return "\n".join(line.rstrip() for line in console.export_text().split("\n"))


@pytest.mark.parametrize("name", ["halving", "refusal"])
@pytest.mark.parametrize("kind", ["text", "terminal"])
def test_what_people_read(name: str, kind: str, request: pytest.FixtureRequest) -> None:
    explanation = request.getfixturevalue(name)
    text = steady(str(explanation) if kind == "text" else terminal_text(explanation)).rstrip() + "\n"
    golden = GOLDEN / f"{name}.{kind}.txt"
    if os.environ.get("STILLGRAPH_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_no_colours_and_panels_where_there_is_no_terminal(halving: Any) -> None:
    console = Console(width=4000, force_terminal=False, record=True, file=io.StringIO())
    console.print(halving)
    assert console.export_text().strip() == str(halving).strip()


# ---- HTML
def test_the_page_needs_nothing_else(halving: Any, tmp_path: Path) -> None:
    path = halving.to_html(tmp_path / "it.html")
    assert path == tmp_path / "it.html"
    page = path.read_text()
    assert not re.findall(r'(?:src|href)\s*=\s*"(?!#|data:)[^"]*"', page)
    assert "url(" not in page
    assert "@import" not in page
    assert "://" not in page


def test_the_page_escapes_what_the_user_wrote(tmp_path: Path) -> None:
    source = tmp_path / "marked.py"
    source.write_text("def f(x):\n    return x + len('<script>alert(1)</script>')\n")
    space: dict[str, Any] = {}
    exec(compile(source.read_text(), str(source), "exec"), space)
    page = sg.to_static(space["f"], backend="eager").explain(torch.ones(2)).to_html(tmp_path / "it.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_without_jinja_it_says_what_to_install(
    halving: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "jinja2":
            raise ModuleNotFoundError("No module named 'jinja2'", name="jinja2")
        return plain(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "jinja2", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'stillgraph[report]'")):
        halving.to_html(tmp_path / "it.html")
    assert os.listdir(tmp_path) == []
