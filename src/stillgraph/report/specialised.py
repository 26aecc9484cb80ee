"""Which values of Python's a program was specialised on, and the lines that read them.

Guards are made from what the code that ran mentions: a guard on an attribute's value is there because some line has
``.name``. The lines are found in the same way: by name, in the functions that ran, and where the owner's class is
known in the methods of that class alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from stillgraph.program.guards import ConstantGuard, ContentsGuard, LengthGuard, TensorGuard, TypeGuard
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Attribute, Cell, Global, Item, Slot, Source
from stillgraph.report.boxes import Place
from stillgraph.report.metadata import Asked, asked_metadata, asked_sizes, asked_types, is_type_guarded
from stillgraph.report.sources import FunctionText


@dataclass(frozen=True)
class Specialised:
    """A value that is fixed in the program, and guarded.

    Attributes:
        what: how the lines spell it: ``n``, ``self.scale``, ``x.shape``.
        values: what it was, each value once, at most four; none for types and torch's modes.
        sources: where a call finds it, at most four; empty for the size of a tensor.
        count: how many places of the call's world the lines read it from.
        places: the lines.
        why: what that means, in a sentence.
    """

    what: str
    values: tuple[str, ...]
    sources: tuple[str, ...]
    count: int
    places: tuple[Place, ...]
    why: str

    @property
    def spelled(self) -> str:
        """What it is, and its values where there are any: ``n = 3``."""
        return f"{self.what} = {', '.join(self.values)}" if self.values else self.what


@dataclass
class _Reads:
    """The guards that one spelling on some lines stands for."""

    guards: dict[int, Any] = field(default_factory=dict)
    places: dict[Place, None] = field(default_factory=dict)


def specialised(program: Program, texts: Sequence[FunctionText], ran: dict[str, frozenset[int]]) -> list[Specialised]:
    """What the program was specialised on, in the order of the lines.

    Args:
        program: the program.
        texts: the functions that ran.
        ran: by file the lines that ran; empty where that is not known.
    """
    facts = _Facts(program)
    found: dict[tuple[str, str, int], _Reads] = {}
    for text in texts:
        for node, guards in facts.in_function(text):
            line = node.lineno
            if text.ran.file in ran and not _runs(node, ran[text.ran.file]):
                continue
            column, end = node.col_offset + text.shift, (node.end_col_offset or 0) + text.shift
            place = Place(text.ran.file, line, column, end if node.end_lineno == line else None, text.ran.name)
            reads = found.setdefault((ast.unparse(node), text.ran.file, text.ran.line), _Reads())
            reads.guards.update((id(guard), guard) for guard in guards)  # some hold what has no hash
            reads.places[place] = None
    made = [_told(spelling, reads) for (spelling, _, _), reads in found.items()]
    return made + _answers(program, texts, ran) + _modes(program, texts)


def _runs(node: ast.expr, lines: frozenset[int]) -> bool:
    return any(line in lines for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _told(spelling: str, reads: _Reads) -> Specialised:
    guards = list(reads.guards.values())
    values = tuple(dict.fromkeys(_value(guard) for guard in guards))[:4]
    sources = tuple(dict.fromkeys(str(guard.source) for guard in guards))
    shown = ", ".join(values)
    plural = len(values) > 1
    why = f"{spelling} {'are' if plural else 'is'} {shown} in this program; another value makes another program (SG601)"
    return Specialised(spelling, values, sources[:4], len(sources), tuple(reads.places), why)


def _value(guard: Any) -> str:
    if isinstance(guard, LengthGuard):
        return f"of length {guard.length}"
    text = repr(guard.value)
    return text if len(text) <= 60 else text[:57] + "…"


def _modes(program: Program, texts: Sequence[FunctionText]) -> list[Specialised]:
    """Conditions that Python decided by torch's modes."""
    decided = {(decision.file, decision.line) for decision in program.record.decisions}
    made = []
    for text in texts:
        every = ast.walk(text.tree or ast.Module([], []))
        tests = [node.test for node in every if isinstance(node, (ast.If, ast.IfExp))]
        for node in (inner for test in tests for inner in ast.walk(test)):
            if not isinstance(node, ast.Attribute) or (text.ran.file, node.lineno) not in decided:
                continue
            if node.attr in _MODES and ast.unparse(node.value) == "torch":
                why = "torch's modes are fixed in this program; another mode makes another program (SG601)"
                column, end = node.col_offset + text.shift, (node.end_col_offset or 0) + text.shift
                place = Place(text.ran.file, node.lineno, column, end, text.ran.name)
                made.append(Specialised(ast.unparse(node), (), (), 1, (place,), why))
    return made


_MODES = frozenset({"is_grad_enabled", "is_inference_mode_enabled", "is_autocast_enabled"})


def _answers(program: Program, texts: Sequence[FunctionText], ran: dict[str, frozenset[int]]) -> list[Specialised]:
    """What Python answered of tensors, where guards fix it."""
    record, guards = program.record, program.guards
    found: list[tuple[Asked, str]] = []
    if any(isinstance(guard, TensorGuard) for guard in guards):
        for asked in asked_metadata(record):
            found.append((asked, f"{asked.text} is fixed in this program; where it differs, another is made (SG601)"))
    top = program.location
    for text in texts:
        captured = top is not None and text.ran.file == top.file and text.ran.line <= top.line <= text.last
        parameters = _parameters_of(text) if captured else ()
        for asked in asked_types((text,), ran):
            if is_type_guarded(asked.of, parameters, guards):
                found.append((asked, f"{asked.text} is fixed in this program; another type makes another (SG601)"))
    for asked in asked_sizes(record):
        shape = asked.values[0]
        why = f"the shape {shape} is fixed in this program; an InputSpec can leave dimensions open (SG601)"
        found.append((asked, why))
    return [Specialised(asked.text, asked.values, (), 1, (asked.place,), why) for asked, why in found]


def _parameters_of(text: FunctionText) -> tuple[str, ...]:
    function = next((n for n in ast.walk(text.tree or ast.Module([], [])) if isinstance(n, _FUNCTIONS)), None)
    if function is None:
        return ()
    of = function.args
    return tuple(argument.arg for argument in (*of.posonlyargs, *of.args, *of.kwonlyargs))


# ---- which guards a spelling stands for
class _Facts:
    """The guards on values, by how code would spell what they are about."""

    def __init__(self, program: Program) -> None:
        self._top = program.location
        self._types = {guard.source: guard.type for guard in program.guards if isinstance(guard, TypeGuard)}
        self._arguments: dict[int | str, list[Any]] = {}
        self._globals: dict[tuple[str, str], list[Any]] = {}
        self._cells: dict[str, list[Any]] = {}
        self._attributes: dict[str, list[Any]] = {}
        self._items: dict[Any, list[tuple[Source, Any]]] = {}
        self._defaults: tuple[Any, ...] = ()
        self._given = {_root(each.source) for each in program.inputs} | {
            _root(guard.source) for guard in program.guards if hasattr(guard, "source")
        }
        self._name = program.name
        self._methods_at: dict[tuple[str, int], set[type]] = {}
        for kind in set(self._types.values()):
            for place in _methods_of(kind):
                self._methods_at.setdefault(place, set()).add(kind)
        for guard in program.guards:
            if isinstance(guard, (ConstantGuard, LengthGuard, ContentsGuard)):
                self._add(guard)

    def _add(self, guard: ConstantGuard | LengthGuard | ContentsGuard) -> None:
        source = guard.source
        match source:
            case Argument(key=key):
                self._arguments.setdefault(key, []).append(guard)
            case Global(module=module, name=name):
                self._globals.setdefault((module, name), []).append(guard)
            case Cell(name=name):
                self._cells.setdefault(name, []).append(guard)
            case Attribute(base=base, name="__defaults__"):
                if str(base).rsplit(".", 1)[-1] == self._name and isinstance(guard, ContentsGuard):
                    self._defaults = tuple(guard.value)
            case Attribute(name=name) | Slot(name=name):
                if not isinstance(guard, LengthGuard) or not name.startswith("_"):
                    self._attributes.setdefault(name, []).append(guard)
            case Item(base=Attribute(name="__dict__"), key=str(name)):
                self._attributes.setdefault(name, []).append(guard)
            case Item(base=Global() | Cell() as base, key=str() | int() as key):
                self._items.setdefault(key, []).append((base, guard))

    def in_function(self, text: FunctionText) -> Iterator[tuple[ast.expr, list[Any]]]:
        """The expressions of a function that read a guarded value."""
        if text.tree is None:
            return
        names = self._names(text)
        methods = self._methods(text)
        for node in ast.walk(text.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                guards = names.get(node.id) or []
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                guards = self._of_attribute(node, methods)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                guards = self._of_item(node, text)
            else:
                continue
            if guards:
                yield node, guards

    def _of_item(self, node: ast.Subscript, text: FunctionText) -> list[Any]:
        """The guards on an entry of a global or an outer variable: ``CONFIG["deep"]``."""
        if not isinstance(node.value, ast.Name) or not isinstance(node.slice, ast.Constant):
            return []
        owner, key = node.value.id, node.slice.value
        return [
            guard
            for base, guard in self._items.get(key, ())
            if (isinstance(base, Global) and (base.module, base.name) == (text.ran.module, owner))
            or (isinstance(base, Cell) and base.name == owner and owner in text.ran.free)
        ]

    def _names(self, text: FunctionText) -> dict[str, list[Any]]:
        """What the plain names of a function stand for."""
        names: dict[str, list[Any]] = {
            name: guards for (module, name), guards in self._globals.items() if module == text.ran.module
        }
        names.update({name: guards for name, guards in self._cells.items() if name in text.ran.free})
        function = next((n for n in ast.walk(text.tree or ast.Module([], [])) if isinstance(n, _FUNCTIONS)), None)
        if function is None:
            return names
        every = [*function.args.posonlyargs, *function.args.args]
        for argument in (*every, *function.args.kwonlyargs):
            names.pop(argument.arg, None)
        top = self._top  # behind its decorators
        if top is not None and text.ran.file == top.file and text.ran.line <= top.line <= text.last:
            names.update(self._parameters(every, function.args.kwonlyargs))
        return names

    def _parameters(self, positional: list[ast.arg], keywords: list[ast.arg]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for position, argument in enumerate(positional):
            guards = self._arguments.get(position) or self._arguments.get(argument.arg)
            default = position - (len(positional) - len(self._defaults))
            passed = Argument(position) in self._given or Argument(argument.arg) in self._given
            if guards:
                found[argument.arg] = guards
            elif default >= 0 and not passed:
                source = Attribute(Argument(argument.arg), "default")
                found[argument.arg] = [ConstantGuard(source, self._defaults[default])]
        for argument in keywords:
            if argument.arg in self._arguments:
                found[argument.arg] = self._arguments[argument.arg]
        return found

    def _methods(self, text: FunctionText) -> set[type]:
        """The classes of guarded objects that have this function as a method."""
        return self._methods_at.get((text.ran.file, text.ran.line), set())

    def _of_attribute(self, node: ast.Attribute, methods: set[type]) -> list[Any]:
        guards = self._attributes.get(node.attr, [])
        if not guards:
            return []
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return [guard for guard in guards if self._types.get(guard.source.base) in methods]
        owner = getattr(node.value, "attr", None) or getattr(node.value, "id", None)
        return [guard for guard in guards if owner is not None and _name(guard.source.base) == owner]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _name(source: Source) -> str | None:
    """The last name on the way to a value."""
    return getattr(source, "name", None)


def _methods_of(kind: type) -> set[tuple[str, int]]:
    places = set()
    for base in kind.__mro__:
        for member in vars(base).values():
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            code = getattr(function, "__code__", None)
            if code is not None:
                places.add((code.co_filename, code.co_firstlineno))
    return places


def _root(source: Any) -> Any:
    while hasattr(source, "base"):
        source = source.base
    return source
