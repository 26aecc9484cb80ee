from __future__ import annotations

import ast
import copy
from pathlib import Path
from typing import Any

import pytest

import stillgraph
from stillgraph.program.sources import Argument
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.guards.knowledge import Knowledge
from stillgraph.trace.values.lists import Same

CODE = (lambda: None).__code__
WHERE = Argument(0)

WHAT: dict[str, Any] = {
    "convert": ({CODE}, {"name"}),
    "convert_libraries": None,
    "follow_methods": None,
    "list": (WHERE, Same(None)),
    "keep": WHERE,
    "watch": None,
    "memory": None,
    "distributions": None,
    "tries": None,
    "transforms": None,
    "managers": None,
    "recursive": CODE,
    "cached": "a function",
    "quiet": "a function",
    "not_tail": CODE,
    "constant": {WHERE},
    "acts": None,
    "aliases": None,
    "arrays": None,
    "hashed": None,
    "elsewhere": {1},
    "written_elsewhere": {1: []},
    "promote": WHERE,
    "object": WHERE,
    "size": (WHERE, 0),
    "first_by_loop": WHERE,
    "positions": None,
    "iterators": CODE,
}


@pytest.mark.parametrize("kind", WHAT)
def test_each_restart_teaches_something(kind: str) -> None:
    """Or the same attempt would be made again."""
    known = Knowledge()
    if kind == "constant":
        known.promote.add(WHERE)
    elif kind == "size":
        known.open_sizes[WHERE] = frozenset({0})
    elif kind == "keep":
        known.lists[WHERE] = Same(None)
    before = copy.deepcopy(vars(known))
    known.learn(Restart(kind, WHAT[kind]))
    assert vars(known) != before


def test_a_list_that_is_kept_is_no_input() -> None:
    known, element = Knowledge(), Same(None)
    known.learn(Restart("list", (WHERE, element)))
    assert known.lists == {WHERE: element}
    known.learn(Restart("keep", WHERE))
    assert known.lists == {}
    assert known.keep == {WHERE}


def test_a_number_that_is_written_does_not_only_change_between_calls() -> None:
    known = Knowledge(promote={WHERE}, changing={WHERE})
    known.learn(Restart("promote", WHERE))
    assert known.promote == {WHERE}
    assert known.changing == set()


def test_nothing_is_learned_of_an_unknown_kind() -> None:
    with pytest.raises(AssertionError, match="nobody says 'nonsense'"):
        Knowledge().learn(Restart("nonsense", None))


def test_these_are_all_the_kinds() -> None:
    calls = (
        node
        for path in Path(stillgraph.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Restart"
    )
    assert {ast.literal_eval(call.args[0]) for call in calls} == set(WHAT)
