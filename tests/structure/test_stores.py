"""Everything by which code can assign or delete is known, by both front ends and wherever writes are looked for."""

from __future__ import annotations

import ast
import dis
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
import torch

import stillgraph as sg
from stillgraph.bytecode.code import decode, flow
from stillgraph.bytecode.code.depths import effect
from stillgraph.bytecode.machine.table import HANDLERS, REFUSED
from stillgraph.bytecode.segments import dropping
from stillgraph.source import pipeline
from stillgraph.trace.code import uninterpreted
from stillgraph.trace.code.names import assigned_outer_variables
from stillgraph.trace.effects import escapes, shared_state
from stillgraph.trace.guards.allocations import writes_outside
from tests.cases.compare import assert_same
from tests.front_ends import through_bytecode

_OBJECTS = {"STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"}
_SHARED = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"}
_LOCAL = {"STORE_FAST", "DELETE_FAST"}
_OF_BODIES = {"STORE_NAME", "DELETE_NAME"}  # of classes and modules, which Python runs
_TWO_IN_ONE = {"STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"}  # since Python 3.13
_OF_THE_COMPILER = {"STORE_FAST_MAYBE_NULL"}  # never in code that is run
_ALL = _OBJECTS | _SHARED | _LOCAL | _OF_BODIES

_STATEMENTS = {
    "STORE_FAST": "local = y",
    "DELETE_FAST": "del local",
    "STORE_DEREF": "cell = y",
    "DELETE_DEREF": "del cell",
    "STORE_GLOBAL": "shared = y",
    "DELETE_GLOBAL": "del shared",
    "STORE_ATTR": "box.value = y",
    "DELETE_ATTR": "del box.value",
    "STORE_SUBSCR": "table['k'] = y",
    "DELETE_SUBSCR": "del table['k']",
    "STORE_SLICE": "items[0:1] = [y, y]",
}
"""A statement for each instruction, where Python has it."""

_REFUSED = {"DELETE_DEREF": "SG305", "DELETE_GLOBAL": "SG204"}
"""What no program can leave behind."""

_FORMS = {
    "assigned": "{} = y",
    "one of several": "{} = unused = y",
    "unpacked": "({}, unused) = [y, 1]",
    "starred": "[unused, *{}] = 1, y, y",
    "in place": "{} += y",
    "run over": "for {} in [y, y + 1]: pass",
    "managed": "with manager(y) as {}: pass",
}
_TARGETS = ("local", "cell", "shared", "box.value", "table['k']")
_NAMES_ONLY = {
    "an assignment expression": "y = ({} := y) + 1",
    "an annotation": "{}: Any = y",
    "a pattern": "match (1, y):\n            case (1, {}): pass",
    "a function": "def {}(): return 1",
}


_IN_ARMS = (
    "match (1, y):\n                case (1, shared): pass",
    "with manager(y) as shared: pass",
    "for shared in [y]: pass",
)


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Makes modules with a function `make` that has some statements in the function that it makes."""
    folder = tmp_path_factory.mktemp("stores")
    sys.path.insert(0, str(folder))

    def loaded(name: str, statements: list[str], *, declared: str = "global shared; nonlocal cell") -> ModuleType:
        body = "\n        ".join(statements)
        text = f"""
import contextlib
from typing import Any
shared = 1
@contextlib.contextmanager
def manager(value):
    yield value
def make(box, table, items):
    cell = 2
    def function(x):
        {declared}
        local, y = 3, x * 2
        {body}
        return y
    def kept():
        return cell
    return function, kept
"""
        Path(folder, f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield loaded
    sys.path.remove(str(folder))


_X = torch.ones(2)


class Box:
    value: Any = 0

    def __init__(self) -> None:
        self.value = 4


def _code(module: ModuleType) -> CodeType:
    function, _ = module.make(Box(), {}, [])
    return function.__code__  # type: ignore[no-any-return]  # of Any


def _left(module: ModuleType, static: bool, x: torch.Tensor) -> Any:
    """What a call gives and leaves."""
    module.__dict__["shared"] = 1
    box, table, items = Box(), {"k": 5}, [6, 7]
    function, kept = module.make(box, table, items)
    given = (sg.to_static(function, backend="eager", full_graph=True) if static else function)(x)
    try:
        cell = kept()
    except NameError:
        cell = "nothing"
    places = (module.__dict__.pop("shared", "nothing"), cell, vars(box).copy(), table, items)
    return given, [getattr(value, "__name__", value) for value in places]


def _agrees(module: ModuleType, *inputs: torch.Tensor) -> None:
    for x in inputs or (_X,):
        expected = _left(module, False, x)
        assert_same(expected, _left(module, True, x))
        with through_bytecode():
            assert_same(expected, _left(module, True, x))


# ---- instructions
def test_all_that_this_python_has_are_known() -> None:
    found = {name for name, number in dis.opmap.items() if number < 256 and name.startswith(("STORE_", "DELETE_"))}
    assert found - _TWO_IN_ONE - _OF_THE_COMPILER <= _ALL
    assert _ALL - {"STORE_SLICE"} <= found


def test_each_is_run_or_refused() -> None:
    assert HANDLERS.keys() >= _ALL - _OF_BODIES
    assert REFUSED.keys() >= _OF_BODIES
    assert decode._OTHERWISE.keys() >= _TWO_IN_ONE
    for name in _ALL:
        effect(decode.Instruction(name, 0, None))  # which is known


def test_those_that_look_for_writes_know_each() -> None:
    assert uninterpreted._WRITES == _OBJECTS | _SHARED
    assert escapes._ASSIGNS | escapes._MUTATES == _OBJECTS | _SHARED
    assert dropping._DROPS.keys() == _OBJECTS | _SHARED
    in_expressions = {"STORE_FAST", "STORE_DEREF", "STORE_GLOBAL"}
    assert flow._OF_STATEMENTS | in_expressions >= _ALL - _OF_BODIES


@pytest.mark.parametrize("name", _STATEMENTS)
def test_a_statement_with_each(name: str, load: Any) -> None:
    module = load(f"stores_{name.lower()}", [_STATEMENTS[name]])
    code = _code(module)
    used = {each.opname for each in dis.get_instructions(code)}
    assert name in used or (name == "STORE_SLICE" and sys.version_info < (3, 12)) or used & _TWO_IN_ONE
    assert uninterpreted.may_write(code) is (name in _OBJECTS | _SHARED)
    assert shared_state._assigned(code) == (("shared",) if name.endswith("GLOBAL") else ())
    assert assigned_outer_variables(code) == (("cell",) if name.endswith("DEREF") else ())
    assert writes_outside(code) is name.endswith("DEREF")
    if name not in _REFUSED:
        _agrees(module)
        return
    with pytest.raises(sg.CaptureError) as caught:
        _left(module, True, _X)
    assert caught.value.reason.code == _REFUSED[name]


# ---- syntax
def test_every_kind_of_target_is_known_to_the_source_front_end() -> None:
    kinds = {kind for kind in ast.expr.__subclasses__() if "ctx" in kind._fields}
    assert kinds == {ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple}
    fields = {"target", "targets", "optional_vars", "asname", "name", "rest"}
    nodes = (kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST))
    binding = {kind for kind in nodes if fields & set(kind._fields)}
    statements = {kind for kind in binding if issubclass(kind, (ast.stmt, ast.expr))}
    not_in_functions = {getattr(ast, "TypeAlias", None)}  # left to Python, which binds its name
    assert all(map(pipeline.is_known, statements - not_in_functions))
    assert binding - statements == {
        *(ast.comprehension, ast.ExceptHandler, ast.alias, ast.withitem),
        *(ast.MatchMapping, ast.MatchStar, ast.MatchAs),
        *(getattr(ast, kind) for kind in ("TypeVar", "ParamSpec", "TypeVarTuple") if hasattr(ast, kind)),
    }


@pytest.mark.parametrize("form", _FORMS)
def test_each_form_of_assignment_to_each_target(form: str, load: Any) -> None:
    _agrees(load(f"forms_{form.replace(' ', '_')}", [_FORMS[form].format(target) for target in _TARGETS]))


@pytest.mark.parametrize("form", _NAMES_ONLY)
def test_each_form_that_binds_a_name(form: str, load: Any) -> None:
    names = ["local"] if form == "an annotation" else ["local", "cell", "shared"]
    _agrees(load(f"names_{form.replace(' ', '_')}", [_NAMES_ONLY[form].format(name) for name in names]))


@pytest.mark.parametrize("form", ["def shared(): return 1", "import math as shared", *_IN_ARMS])
def test_a_global_bound_on_one_path(form: str, load: Any) -> None:
    name = f"arm_{abs(hash(form))}"
    _agrees(load(name, ["if x.sum() > 0:", f"    {form}"]), _X, -_X)


def test_what_is_deleted_with_others(load: Any) -> None:
    _agrees(load("deleted", ["del local, (box.value, [table['k']]), items[0:1]"]))
