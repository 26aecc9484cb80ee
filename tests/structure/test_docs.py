"""Documents: links lead somewhere, Python in them is Python, examples with a prompt give what they show."""
from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text())
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_python_blocks_are_python(path: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL):
        if ">>>" not in block:
            ast.parse(block)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_examples_give_what_they_show(path: Path) -> None:
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_each_module_of_the_bytecode_front_end_is_told_of() -> None:
    text = (ROOT / "docs" / "dev" / "bytecode.md").read_text()
    told = set(re.findall(r"`((?:bytecode|operators|api)/[\w/]+\.py)`", text))
    package = ROOT / "src" / "stillgraph"
    assert [each for each in sorted(told) if not (package / each).exists()] == []
    paths = [path for path in (package / "bytecode").rglob("*.py") if path.name != "__init__.py"]
    modules = {path.relative_to(package).as_posix() for path in paths if path.parent.name != "handlers"}
    assert sorted(modules - told) == []


def test_the_changelog_has_one_short_line_for_each_change() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    assert len(lines) < 150, "merge lines of one kind: git keeps the stories"
    assert [line for line in lines if len(line) > 120] == []
    continued = [line for line in lines[lines.index("## [Unreleased]") :] if line and not line.startswith(("- ", "#"))]
    assert continued == [], "each change is one line"
