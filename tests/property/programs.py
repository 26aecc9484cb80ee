"""A hypothesis strategy for the source text of programs: nested control flow over tensors and numbers.

Every program takes ``(s, t, v, w, n, c)`` and returns as many values of the same kinds. It always ends: loops are over
things of known length or count their rounds. A variable keeps its kind all its life, which the first letter of its name
tells; its value, and above all whether Python knows it, changes freely.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

SCALAR, VECTOR, INT, FLOAT, CONSTANT = "s", "v", "n", "c", "k"
_PARAMETERS = {SCALAR: ("s", "t"), VECTOR: ("v", "w"), INT: ("n",), FLOAT: ("c",)}


@dataclass(frozen=True)
class Grammar:
    """What programs may contain, and how large they grow."""

    statements: tuple[int, ...] = (4, 8, 12, 16)  # in all
    depth: int = 3
    inplace_tensors: bool = True
    raises: bool = True
    prints: bool = True
    managers: bool = False  # functions of context managers, around blocks
    constants: bool = False  # a variable that holds a text or a member of an enumeration, and is returned too


@dataclass(frozen=True)
class _Scope:
    """What can be read and written where a statement stands."""

    names: dict[str, tuple[str, ...]]
    assignable: dict[str, tuple[str, ...]]
    depth: int = 0
    in_loop: bool = False

    def inside(self, *, loop: bool = False, **bound: str) -> _Scope:
        """The scope of a block; `bound` are names by kind that only reading may use (loop variables)."""
        names = {kind: (*known, bound[kind]) if kind in bound else known for kind, known in self.names.items()}
        return replace(self, names=names, depth=self.depth + 1, in_loop=self.in_loop or loop)


Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass
class _Writer:
    """Writes one program, drawing every choice."""

    draw: Draw
    grammar: Grammar
    left: int
    lines: list[str] = field(default_factory=list)
    counters: int = 0

    # ---- expressions, by kind
    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def expression(self, kind: str, scope: _Scope, size: int = 2) -> str:
        if size == 0 or self.pick("leaf", "node", "node") == "leaf":
            return self.pick(*scope.names[kind] * 3, *_LITERALS[kind])
        form = self.pick(*["arithmetic"] * 6, "ternary", "ternary", "walrus")
        if form == "walrus":
            return f"({self.pick(*scope.assignable[kind])} := {self.expression(kind, scope, size - 1)})"
        if form == "ternary":
            left, right = self.expression(kind, scope, size - 1), self.expression(kind, scope, size - 1)
            return f"({left} if {self.condition(scope, 1)} else {right})"
        pattern = self.pick(*_EXPRESSIONS[kind])
        return self.filled(pattern, scope, size - 1)

    def condition(self, scope: _Scope, size: int = 2) -> str:
        shape = self.pick("plain", "plain", "and", "or", "not") if size else "plain"
        if shape == "plain":
            asked = (*_CONDITIONS, *_OF_CONSTANTS) if self.grammar.constants else _CONDITIONS
            return self.filled(self.pick(*asked), scope, min(size, 1))
        if shape == "not":
            return f"not ({self.condition(scope, size - 1)})"
        return f"({self.condition(scope, size - 1)}) {shape} ({self.condition(scope, size - 1)})"

    def filled(self, pattern: str, scope: _Scope, size: int) -> str:
        """A pattern with an expression of its kind for every ``{kind}``."""
        parts = []
        for piece in pattern.split("{"):
            kind, closing, rest = piece.partition("}")
            parts.append(self.expression(kind, scope, size) + rest if closing else piece)
        return "".join(parts)

    # ---- statements
    def emit(self, scope: _Scope, text: str) -> None:
        self.lines.append("    " * (scope.depth + 1) + text)

    def block(self, scope: _Scope) -> None:
        before = len(self.lines)
        for _ in range(int(self.pick("1", "2", "3"))):
            if self.left > 0:
                self.left -= 1
                self.statement(scope)
        if len(self.lines) == before:
            self.emit(scope, "pass")

    def statement(self, scope: _Scope) -> None:
        simple = ["assign", "assign", "augment"] + ["print"] * self.grammar.prints
        nested = ["if", "if", "while", "for", *["with"] * 3 * self.grammar.managers]
        nested = nested if scope.depth < self.grammar.depth else []
        exits = ["exit"] if scope.depth else []
        getattr(self, "_" + self.pick(*simple, *nested, *exits))(scope)

    def _assign(self, scope: _Scope) -> None:
        kind = self.pick(SCALAR, VECTOR, INT, FLOAT, *[CONSTANT] * 3 * self.grammar.constants)
        self.emit(scope, f"{self.pick(*scope.assignable[kind])} = {self.expression(kind, scope)}")

    def _augment(self, scope: _Scope) -> None:
        kind = self.pick(INT, FLOAT, *(SCALAR, VECTOR) * self.grammar.inplace_tensors)
        operator = self.pick("+=", "-=")
        operand = self.filled("{n} % 5", scope, 1) if kind == INT else self.expression(kind, scope, 1)
        self.emit(scope, f"{self.pick(*scope.assignable[kind])} {operator} {operand}")

    def _print(self, scope: _Scope) -> None:
        kind = self.pick(SCALAR, VECTOR, INT, FLOAT, *[CONSTANT] * self.grammar.constants)
        self.emit(scope, f'print("{kind}", {self.pick(*scope.names[kind])})')

    def _if(self, scope: _Scope) -> None:
        self.emit(scope, f"if {self.condition(scope)}:")
        self.block(scope.inside())
        for word in {"one": (), "else": ("else",), "elif": ("elif", "else")}[self.pick("one", "else", "elif")]:
            self.emit(scope, f"elif {self.condition(scope)}:" if word == "elif" else "else:")
            self.block(scope.inside())

    def _while(self, scope: _Scope) -> None:
        self.counters += 1
        counter, rounds = f"n{self.counters}", self.pick("1", "2", "4")
        inner = scope.inside(loop=True, n=counter)
        self.emit(scope, f"{counter} = 0")
        if self.pick("test", "break") == "test":
            self.emit(scope, f"while {counter} < {rounds} and ({self.condition(scope)}):")
            self.emit(inner, f"{counter} += 1")
        else:
            self.emit(scope, f"while {self.condition(scope)}:")
            self.emit(inner, f"{counter} += 1")
            self.emit(inner, f"if {counter} > {rounds}:")
            self.emit(inner.inside(), "break")
        self.block(inner)
        self._maybe_else(scope)

    def _for(self, scope: _Scope) -> None:
        self.counters += 1
        i, e = f"n{self.counters}", f"s{self.counters}"
        header, bound = {
            "range": (f"for {i} in range({self.pick('2', '3')}):", {INT: i}),
            "range number": (f"for {i} in range({self.expression(INT, scope, 1)} % 4):", {INT: i}),
            "tensor": (f"for {e} in {self.pick(*scope.names[VECTOR])}:", {SCALAR: e}),
            "enumerate": (f"for {i}, {e} in enumerate({self.pick(*scope.names[VECTOR])}):", {INT: i, SCALAR: e}),
            "zip": (f"for {e}, {e}_ in zip({', '.join(scope.names[VECTOR][:2])}):", {SCALAR: e}),
        }[self.pick("range", "range number", "tensor", "enumerate", "zip")]
        self.emit(scope, header)
        self.block(scope.inside(loop=True, **bound))
        self._maybe_else(scope)

    def _with(self, scope: _Scope) -> None:
        self.counters += 1
        entered = f"n{self.counters}"
        made = self.pick("noting({n})", "ending()", "replacing()", "behind()", "choosing({s})")
        manager = self.filled(made, scope, 1)
        self.emit(scope, f"with {manager} as {entered}:")
        self.block(scope.inside(n=entered))

    def _maybe_else(self, scope: _Scope) -> None:
        if self.pick("no", "no", "else") == "else":
            self.emit(scope, "else:")
            self.block(scope.inside())

    def _exit(self, scope: _Scope) -> None:
        """Leave under a condition, or at once."""
        if self.pick("if", "if", "now") == "if":
            self.emit(scope, f"if {self.condition(scope)}:")
            scope = scope.inside()
        kinds = ["return"] + ["break", "continue"] * scope.in_loop + ["raise"] * self.grammar.raises
        word = self.pick(*kinds)
        if word == "return":
            self._return(scope)
        else:
            self.emit(scope, f'raise ValueError("after {len(self.lines)} lines")' if word == "raise" else word)

    def _return(self, scope: _Scope) -> None:
        kinds = (kind for kind, names in _PARAMETERS.items() for _ in names)
        kinds = (*kinds, *[CONSTANT] * self.grammar.constants)
        self.emit(scope, f"return {', '.join(self.expression(kind, scope, 1) for kind in kinds)}")


_LITERALS = {SCALAR: (), VECTOR: (), INT: ("0", "1", "-3"), FLOAT: ("0.5", "-1.5"), CONSTANT: ('"a"', '"b"', "Kind.C")}

_EXPRESSIONS = {
    SCALAR: (
        "(({s} + {s}) * 0.5)", "torch.tanh({s} * {s})", "torch.sin({s} - {s})", "({s} * {c}).clamp(-8, 8)",
        "({s} + {n})", "{v}.sum().clamp(-8, 8)", "{v}[0]", "{v}[{n} % 3]", "{v}.mean()", "(-{s}.abs())",
        "({s} and {s})", "({s} or {s})", "torch.maximum({s}, {s})", "abs({s})",
    ),
    VECTOR: (
        "(({v} + {v}) * 0.5)", "torch.tanh({v} * {s})", "({v} * {c}).clamp(-8, 8)", "({v} - {n})", "torch.relu({v})",
        "torch.where({v} > {s}, {v}, {v})", "torch.stack([{s}, {s}, {s}])", "{v}.flip(0)", "(-{v})",
    ),
    INT: (
        "({n} + 1)", "({n} - 2)", "(({n} * {n}) % 7)", "(({n} + {n}) % 11)", "({n} // 2)", "(abs({n}) % 5)",
        "min({n}, {n})", "max({n}, 1)", "int({s} > {c})", "int({v}.argmax())", "len({v})", "{v}.shape[0]",
    ),
    FLOAT: (
        "({c} * 0.5 + 1.0)", "(({c} - {c}) * 0.5)", "float({s})", "({n} / 4)", "float({n} % 3)", "min({c}, 1.0)",
        "(-{c})",
    ),
    CONSTANT: ("NEXT[{k}]", "NEXT.get({k})", "({k} or {k})"),
}

_CONDITIONS = (
    "{s} > 0", "{s} < {s}", "{v}.sum() > {c}", "{n} < 2", "{n} % 2 == 0", "{c} > 0.25", "-1 < {s} < 1", "0 <= {n} < 3",
    "{n} in (0, 2)", "{v}[{n} % 3] >= {s}", "bool({s} <= {n})", "{s}", "{n}", "({v} > 0).any()", "{n} == {n}",
    "{n} < {s}",
)

_OF_CONSTANTS = (
    '{k} == "a"', "{k} != {k}", '{k} in ("b", Kind.C)', "{k} is Kind.C", "isinstance({k}, str)", 'NEXT[{k}] == "b"',
)

_NAMES = """
import enum

class Kind(enum.Enum):
    C = 1

NEXT = {"a": "b", "b": Kind.C, Kind.C: "a"}
"""


_MANAGERS = """
import contextlib

@contextlib.contextmanager
def noting(n):
    print("in")
    try:
        yield n + 1
    finally:
        print("out")

@contextlib.contextmanager
def ending():
    try:
        yield 1
    except ValueError as error:
        print("ended", error)
    else:
        print("nothing")

@contextlib.contextmanager
def replacing():
    try:
        yield 2
    except ValueError as error:
        raise ValueError("another") from error

@contextlib.contextmanager
def behind():
    yield 3
    print("behind")

@contextlib.contextmanager
def choosing(s):
    if s > 0:
        yield 4
    else:
        with ending():
            yield 5
"""


@st.composite
def programs(draw: Draw, grammar: Grammar | None = None) -> str:
    """The source text of a module with one function, ``program(s, t, v, w, n, c)``."""
    grammar = grammar or Grammar()
    writer = _Writer(draw, grammar, left=draw(st.sampled_from(grammar.statements)))
    names = {**_PARAMETERS, **({CONSTANT: ("k",)} if grammar.constants else {})}
    scope = _Scope(names=names, assignable=names)
    while writer.left > 0:
        writer.left -= 1
        writer.statement(scope)
    body = [*writer.lines, f"    return s, t, v, w, n, c{', k' * grammar.constants}"]
    if grammar.constants:
        body.insert(0, '    k = "a"')
    if any(re.search(r"\b[stvw] [+-]= ", line) for line in body):
        body.insert(0, "    s, t, v, w = s + 0, t + 0, v + 0, w + 0  # in-place operations stay inside")
    head = ["import torch", *[_NAMES] * grammar.constants, *[_MANAGERS] * grammar.managers, "", ""]
    return "\n".join([*head, "def program(s, t, v, w, n, c):", *body, ""])
