"""Documents: links lead somewhere, Python in them is Python, examples with a prompt give what they show."""
from __future__ import annotations

import ast
import doctest
import logging
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stillgraph as sg

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
    for block in re.findall(r"```python(?: slow)?\n(.*?)```", path.read_text(), re.DOTALL):
        if ">>>" not in block:
            ast.parse(block)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_examples_give_what_they_show(path: Path) -> None:
    failed, _ = doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert failed == 0


# ---- Python without a prompt: it runs as it stands, block after block of a page
TESTED_ELSEWHERE = {"docs/errors.md", "docs/guide/constructs.md", "docs/guide/torchscript.md"}
FOR_DEVELOPERS = ("docs/dev/", "docs/decisions/", "docs/field.md")
BLOCK = re.compile(r"^```python( slow)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def plain_blocks() -> Iterator[Any]:
    for path in DOCUMENTS:
        if name(path) in TESTED_ELSEWHERE or name(path).startswith(FOR_DEVELOPERS):
            continue
        blocks = [(slow, code) for slow, code in BLOCK.findall(path.read_text()) if ">>> " not in code]
        quick = "\n".join(code for slow, code in blocks if not slow)
        if quick:
            yield pytest.param(quick, id=name(path))
        for number, (slow, code) in enumerate(blocks):
            if slow:
                yield pytest.param(code, id=f"{name(path)}-{number}", marks=pytest.mark.slow)


@pytest.mark.parametrize("code", [*plain_blocks()])
def test_blocks_without_a_prompt_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    (tmp_path / "page.py").write_text(code)
    try:
        exec(compile(code, str(tmp_path / "page.py"), "exec"), vars(module))
    finally:
        sys.modules.pop("net", None)  # what the page about Python source writes and imports
        sg.set_verbosity(0)
        logging.getLogger("stillgraph.cache").setLevel(logging.NOTSET)


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    listed = set(re.findall(r"([\w/-]+\.md)$", site, re.MULTILINE))
    outside = {"architecture.md", "changelog.md", "contributing.md", "security.md"}
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed - outside == {page for page in pages if not page.startswith("decisions/")}


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
