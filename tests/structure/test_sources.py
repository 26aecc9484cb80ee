"""What holds of every source file."""
from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
LONGEST = 600
ADAPTERS = {"deploy/aoti.py", "deploy/inductor.py", "runtime/backends.py", "trace/symbolic.py"}
"""They alone know inside torch's compilers, or tell the user of them."""


def name(path: Path) -> str:
    return path.relative_to(ROOT / "src/stillgraph").as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_file(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "says what it is for"
    assert text.count("\n") <= LONGEST, "wants a second name"
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text), "is finished"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_private_compiler_modules_stay_behind_an_adapter(path: Path) -> None:
    if name(path) not in ADAPTERS:
        assert not re.findall(r"\btorch\._(?:dynamo|inductor)\b", path.read_text())


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_python_versions_are_asked_for_in_one_place(path: Path) -> None:
    if name(path) != "bytecode/decode.py":
        assert "sys.version_info" not in path.read_text()
