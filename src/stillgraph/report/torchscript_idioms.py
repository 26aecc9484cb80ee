"""What is written for TorchScript alone, found in source: whether it may stay, and what to write instead."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from stillgraph.report.boxes import Place


@dataclass(frozen=True)
class Idiom:
    """Something in the source that is there for TorchScript.

    Attributes:
        name: ``"torch.jit.annotate"``, ``"__constants__"``, ….
        verdict: ``"fine"``: it may stay; ``"delete"``: it may go, and nothing changes; ``"change"``.
        instead: what to write, or what it means now.
        places: the lines, in the order of the source.
        code: of what needs a change, the reason that it is refused with; empty if it is not refused.
    """

    name: str
    verdict: str
    instead: str
    places: tuple[Place, ...]
    code: str = ""


@dataclass(frozen=True)
class _Kind:
    verdict: str
    instead: str
    code: str = ""


_ANNOTATION = _Kind("delete", "nothing reads it; leave it where it helps a reader")
_DECISION = _Kind("delete", "it is False; keep the branch for eager PyTorch")
_PYTHON = _Kind("delete", "it is captured like any other function; one that cannot be is refused where it is reached")
_ATTRIBUTES = _Kind("delete", "attributes need no declaration")
_MODES = _Kind("delete", "it steers TorchScript's own optimiser")
_SAVED = _Kind("change", "sg.save(target, path, args=...)")

_OF_JIT: dict[str, _Kind] = {
    "annotate": _Kind("delete", "write its second argument"),
    "Attribute": _Kind("change", "assign the value itself; eager PyTorch sees a pair of value and type"),
    "Final": _ANNOTATION,
    "Future": _ANNOTATION,
    "is_scripting": _DECISION,
    "is_tracing": _DECISION,
    "export": _Kind("delete", "give the method itself: sg.save(module.method, path, args=...)"),
    "unused": _PYTHON,
    "ignore": _PYTHON,
    "fork": _Kind("delete", "call the function; outside of TorchScript the call was made at once, too"),
    "wait": _Kind("delete", "use the result"),
    "script_if_tracing": _Kind("delete", "the function is captured as it is"),
    "isinstance": _Kind("fine", "it is decided while capturing"),
    "interface": _Kind("delete", "a module is called whatever its class is"),
    "_overload": _Kind("delete", "the implementation is captured, for each call"),
    "_overload_method": _Kind("delete", "the implementation is captured, for each call"),
    "_unwrap_optional": _Kind("delete", "use the value"),
    "strict_fusion": _MODES,
    "optimized_execution": _MODES,
    "fuser": _MODES,
    "ScriptModule": _Kind("change", "derive from torch.nn.Module", "SG105"),
    "script_method": _Kind("change", "leave it out, and derive the class from torch.nn.Module", "SG105"),
    "trace": _Kind("change", "use what is traced; conditions on tensors then become branches", "SG105"),
    "trace_module": _Kind("change", "use the module; conditions on tensors then become branches", "SG105"),
    "load": _Kind("change", "make the Python module and give it load_state_dict(loaded.state_dict())", "SG105"),
    "save": _SAVED,
    "freeze": _Kind("change", "call eval() and leave it out: a saved program holds its weights"),
    "optimize_for_inference": _Kind("change", "call eval() and leave it out: the backend optimises"),
}
_SCRIPT_DECORATOR = _Kind("delete", "the function is captured as it is")
_SCRIPT_CALL = _Kind("change", "use what is compiled here: of a module, torch.jit.script keeps no Python", "SG105")
_OF_TYPING = ("List", "Dict", "Tuple", "Optional", "Union", "NamedTuple")
_NAMED_TUPLE = _Kind("fine", "it comes back as it is")
_OF_CLASSES = ("__constants__", "__exhaustive_ignore__", "__jit_unused_properties__", "__jit_ignored_attributes__")
_REFINEMENT = _Kind("fine", "it is checked where only the run knows, and nothing where the capture does")
_NOT_NONE = "assert ... is not None"


KNOWN = (*(f"torch.jit.{name}" for name in _OF_JIT), "torch.jit.script", *_OF_TYPING, *_OF_CLASSES, _NOT_NONE)
"""The names of all idioms."""


def _meanings() -> dict[int, str]:
    """By identity, so that it does not matter how code has imported them: what the objects are called."""
    names = {id(getattr(torch.jit, name)): f"torch.jit.{name}" for name in _OF_JIT if hasattr(torch.jit, name)}
    names[id(torch.jit.script)] = "torch.jit.script"
    return {**{id(getattr(typing, name)): name for name in _OF_TYPING}, **names}


# ---- the source
@dataclass(frozen=True)
class _Unit:
    """The source of a function or class, its lines counted as in the file, and what its names stand for."""

    tree: ast.AST
    file: str
    namespace: dict[str, Any]


def is_users(value: Any, package: str = "") -> bool:
    """Whether a function or class is neither torch's, nor Python's own, nor an installed library's but ``package``."""
    root = package_of(value)
    if root in ("", "torch", "stillgraph") or root in sys.stdlib_module_names:
        return False
    try:
        return root == package or "site-packages" not in Path(inspect.getfile(value)).parts
    except TypeError:
        return False


def package_of(value: Any) -> str:
    """The outermost package, or the module, that a function or class stands in."""
    return str(getattr(value, "__module__", "") or "").partition(".")[0]


def _unit(value: Any) -> _Unit | None:
    """The source of a function or class; None where it cannot be read."""
    try:
        whole = ast.parse("".join(inspect.findsource(value)[0]))
        lines, first = inspect.getsourcelines(value)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    ast.increment_lineno(tree, first - 1)
    if value.__qualname__ == value.__name__:  # with the overloads that stand above a function
        named = [node for node in whole.body if getattr(node, "name", "") == value.__name__]
        tree = ast.Module(named, []) if named else tree
    namespace = dict(vars(sys.modules.get(value.__module__, torch)))
    if isinstance(value, types.FunctionType):
        namespace.update(value.__globals__)
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        namespace.update({name: cell.cell_contents for name, cell in cells if not _is_empty(cell)})
    return _Unit(tree, inspect.getfile(value), namespace)


def _is_empty(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is None
    except ValueError:
        return True


def _units(roots: Iterable[Any], behind: Callable[[Any], Any]) -> Iterator[_Unit]:
    """The source of functions and classes, and of the user's that they name; the first one's package is the user's."""
    waiting, seen = list(roots), set[int]()
    package = package_of(behind(waiting[0])) if waiting else ""
    while waiting:
        value = inspect.unwrap(behind(waiting.pop(0)))
        if id(value) in seen or not isinstance(value, (type, types.FunctionType)) or not is_users(value, package):
            continue
        seen.add(id(value))
        if isinstance(value, type):
            waiting += value.__mro__[1:]
        unit = _unit(value)
        if unit is not None:
            yield unit
            waiting += [found for node in ast.walk(unit.tree) if (found := _meant(node, unit.namespace)) is not None]


def _meant(node: ast.AST, namespace: dict[str, Any]) -> Any:
    """What a dotted name stands for; None for what is no name, or is not known. No code of the user's is run."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    value = namespace.get(node.id)
    for name in reversed(path):
        if not isinstance(value, types.ModuleType):
            return None
        value = vars(value).get(name)
    return value


# ---- what is found there
def find_idioms(roots: Iterable[Any], behind: Callable[[Any], Any] = lambda value: value) -> tuple[Idiom, ...]:
    """Every idiom of TorchScript in the source of functions and classes, and of the user's functions that they name.

    Args:
        roots: functions and classes.
        behind: gives the Python that a compiled function was made of, and everything else as it is.

    Returns:
        One for each idiom: those that need a change, that may go, that may stay; each in the order of the source.
    """
    found: dict[tuple[str, _Kind], list[Place]] = {}
    for unit in _units(roots, behind):
        for name, kind, node in _idioms_of(unit):
            place = Place(unit.file, node.lineno)
            places = found.setdefault((name, kind), [])
            if place not in places:
                places.append(place)
    idioms = [
        Idiom(name, kind.verdict, kind.instead, tuple(sorted(places, key=_in_order)), kind.code)
        for (name, kind), places in found.items()
    ]
    return tuple(sorted(idioms, key=lambda idiom: (_VERDICTS.index(idiom.verdict), _in_order(idiom.places[0]))))


_VERDICTS = ("change", "delete", "fine")


def _in_order(place: Place) -> tuple[str, int]:
    return place.file, place.line


def _idioms_of(unit: _Unit) -> Iterator[tuple[str, _Kind, Any]]:
    meanings = _meanings()
    decorators = {id(d) for node in ast.walk(unit.tree) for d in getattr(node, "decorator_list", ())}
    for node in ast.walk(unit.tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            name = meanings.get(id(_meant(node, unit.namespace)))
            if name is not None:
                yield name, _kind(name, id(node) in decorators), node
        elif isinstance(node, ast.Assert) and _refines(node.test):
            yield _NOT_NONE, _REFINEMENT, node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id in _OF_CLASSES:
                    yield target.id, _ATTRIBUTES, node


def _kind(name: str, is_decorator: bool) -> _Kind:
    if name == "torch.jit.script":
        return _SCRIPT_DECORATOR if is_decorator else _SCRIPT_CALL
    if name == "NamedTuple":
        return _NAMED_TUPLE
    return _OF_JIT[name.removeprefix("torch.jit.")] if name.startswith("torch.jit.") else _ANNOTATION


def _refines(test: ast.expr) -> bool:
    """Whether a condition is ``... is not None``."""
    is_not = isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot)
    right = test.comparators[0] if isinstance(test, ast.Compare) else None
    return is_not and isinstance(right, ast.Constant) and right.value is None
