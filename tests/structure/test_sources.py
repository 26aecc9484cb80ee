"""What holds of every source file."""
from __future__ import annotations

import ast
import collections
import re
from collections.abc import Callable
from pathlib import Path

from stillgraph.core.logs import TOPICS
from stillgraph.trace.guards.knowledge import _LESSONS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src/stillgraph"
TEXTS = {path.relative_to(FOLDER).as_posix(): path.read_text() for path in sorted(FOLDER.rglob("*.py"))}
LONGEST = 400
LONGEST_FUNCTION = 60
MOST_IN_A_FOLDER = 25
ADAPTERS = {
    "deploy/aoti/aoti.py",
    "deploy/aoti/inductor.py",
    "runtime/native/backends.py",
    "runtime/native/region_examples.py",
    "trace/fakes/symbolic.py",
}
"""They alone know inside torch's compilers, or tell the user of them."""


def those_with(asked: Callable[[str], object]) -> list[str]:
    return [name for name, text in TEXTS.items() if asked(text)]


def test_each_says_what_it_is_for() -> None:
    assert those_with(lambda text: not ast.get_docstring(ast.parse(text))) == []


def test_none_is_so_long_that_it_wants_a_second_name() -> None:
    assert those_with(lambda text: text.count("\n") > LONGEST) == []


def test_functions_fit_on_a_screen() -> None:
    """A docstring is not counted: those of the public interface are what people read."""
    long = []
    for name, text in TEXTS.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                told = node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node) else 0
                if lines - told >= LONGEST_FUNCTION:
                    long.append(f"{name}: {node.name} has {lines - told} lines")
    assert long == []


def test_each_is_finished() -> None:
    assert those_with(lambda text: re.search(r"\b(TODO|FIXME|XXX)\b", text)) == []


def test_private_compiler_modules_stay_behind_an_adapter() -> None:
    assert set(those_with(lambda text: re.search(r"\btorch\._(?:dynamo|inductor)\b", text))) <= ADAPTERS


def test_each_topic_that_is_logged_is_one() -> None:
    logged = {topic for text in TEXTS.values() for topic in re.findall(r'\blog\(\s*"(\w+)"', text)}
    assert len(logged) > 5
    assert logged <= TOPICS.keys()


def test_python_versions_are_asked_for_in_one_place() -> None:
    assert those_with(lambda text: "sys.version_info" in text) == ["bytecode/code/decode.py"]


def test_no_folder_holds_more_than_a_reader_can_overlook() -> None:
    modules = collections.Counter(Path(name).parent for name in TEXTS if not name.endswith("__init__.py"))
    assert {folder: count for folder, count in modules.items() if count > MOST_IN_A_FOLDER} == {}


def test_each_room_says_what_it_gives_and_what_it_must_not_know() -> None:
    """A room is a package inside one of the packages that are divided."""
    rooms = [name for name in TEXTS if name.count("/") == 2 and name.endswith("/__init__.py")]
    divided = [name for name in rooms if name.split("/")[0] in DIVIDED and name.split("/")[1] not in WHOLE]
    assert len(divided) > 30
    assert [name for name in divided if len((ast.get_docstring(ast.parse(TEXTS[name])) or "").splitlines()) < 4] == []


DIVIDED = {"trace", "operators", "bytecode", "deploy", "passes", "runtime", "program"}
WHOLE = {"handlers", "python"}  # of instructions, and of a file format: older than the rooms, one subject each


def test_whatever_begins_a_capture_anew_teaches_it_something() -> None:
    said = {kind for text in TEXTS.values() for kind in re.findall(r'Restart\("(\w+)"', text)}
    assert said == set(_LESSONS)
