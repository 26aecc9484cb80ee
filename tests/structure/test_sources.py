"""What holds of every source file."""
from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src/stillgraph"
TEXTS = {path.relative_to(FOLDER).as_posix(): path.read_text() for path in sorted(FOLDER.rglob("*.py"))}
LONGEST = 600
ADAPTERS = {"deploy/aoti.py", "deploy/inductor.py", "runtime/backends.py", "trace/symbolic.py"}
"""They alone know inside torch's compilers, or tell the user of them."""


def those_with(asked: Callable[[str], object]) -> list[str]:
    return [name for name, text in TEXTS.items() if asked(text)]


def test_each_says_what_it_is_for() -> None:
    assert those_with(lambda text: not ast.get_docstring(ast.parse(text))) == []


def test_none_is_so_long_that_it_wants_a_second_name() -> None:
    assert those_with(lambda text: text.count("\n") > LONGEST) == []


def test_each_is_finished() -> None:
    assert those_with(lambda text: re.search(r"\b(TODO|FIXME|XXX)\b", text)) == []


def test_private_compiler_modules_stay_behind_an_adapter() -> None:
    assert set(those_with(lambda text: re.search(r"\btorch\._(?:dynamo|inductor)\b", text))) <= ADAPTERS


def test_python_versions_are_asked_for_in_one_place() -> None:
    assert those_with(lambda text: "sys.version_info" in text) == ["bytecode/decode.py"]
