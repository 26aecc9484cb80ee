"""Programs with containers, attributes, aliases, maybe-values, generators, recursion and handlers.

They have the control flow of `tests.property.programs` and, besides its variables, some of their own: the lists ``l``,
``m`` and ``k`` of 0-d tensors (two names may be one list), the dict ``d``, the dict ``h`` and the set ``q`` whose keys
come and go, the object ``o``, and ``x``, which is a 0-d tensor or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.property import programs as plain
from tests.property.programs import INT, SCALAR, VECTOR, Draw, Grammar


class Box:
    """The class of ``o``, which all programs share: what one gives is compared with what another gives."""


HELPERS = '''\
import torch

from tests.property.containers import Box


def shrink(s, depth):
    if s.abs() < 0.3 or depth > 3:
        return s
    return shrink(s * 0.5, depth + 1) + 0.125


def climb(s, depth):
    if s > 2 or depth > 4:
        return s
    return climb(s + 0.75, depth + 1)


def positive(v):
    for e in v:
        if e > 0:
            yield e


def risky(s):
    if s > 1.5:
        raise KeyError("big")
    if s < -1.5:
        raise IndexError("small")
    return s * 0.5
'''

_SCALARS = (
    "(l[-1] if l else {s})", "sum(m, {s} * 0)", "(torch.stack(l).sum() if len(l) > 0 else {s})", 'd["s"]',
    "o.s",
    "({s} if x is None else x)", "shrink({s}, 0)", "climb({s}, 0)", "(m[{n} % len(m)] if m else {s})",
    'h.get("a", {s})', '(h["b"] if "b" in h else {s})', "sum(h.values(), {s})", "(max(l) if l else {s})",
    "sum((e for e in positive({v})), {s} * 0)", "(k[0] if k else {s})",
)  # fmt: skip
_INTS = (
    "len(l)", "len(m)", 'd["n"]', "o.n", "sum(1 for e in m if e > 0)", "int(x is None)", "len(k)", "len(h)", "len(q)",
    "sum(q)",
)  # fmt: skip
_CONDITIONS = (
    "len(l) > 2", "l", "not m", "x is None", "x is not None", 'd["n"] > 1', "any(e > 0 for e in l)", "k is l",
    "l == m", '"a" in h', "2 in q", "not q", '"b" not in h', "h",
)  # fmt: skip
_LINES = (
    "l.append({s})", "l.append({s})", "m.append({s})", "m += [{s}]", "m.insert(0, {s})", "l = m + [{s}]",
    "l.extend(m)",
    "m = [e * 0.5 for e in m if e > {c}]", "m = list(positive({v}))", "k = l", "k = m", "m.clear()",
    "m = l[:2]",
    "m = sorted(m, key=lambda e: -e)", 'd["s"] = {s}', 'd["n"] = {n}', "o.s = {s}", "o.n += 1", "x = {s}",
    "x = None",
    "d = dict(s={s}, n={n})", 'h["a"] = {s}', 'h["b"] = {s}', 'h["a"] = {s}', 'h.pop("a", None)',
    'h.setdefault("b", {s})',
    "h = dict()", "h.clear()", "h.update(c={s})", "q.add(2)", "q.add(3)", "q.discard(2)", "q = set()",
    "q.update([1, 2])",
)  # fmt: skip
_GUARDED = (
    ("l", "s = l.pop()"),
    ("m", "del m[0]"),
    ('"a" in h', 'del h["a"]'),
    ("3 in q", "q.remove(3)"),
    ("m", "m[{n} % len(m)] = {s}"),
    ("l", "t = l.pop(0)"),
)


@dataclass
class _Writer(plain._Writer):
    """The same writer with more to choose from."""

    def statement(self, scope: plain._Scope) -> None:
        choices = ["more", "more", "guarded", "less", "less"] + ["loop",
    "try"] * (scope.depth < self.grammar.depth)
        match self.pick(*choices):
            case "more":
                self.emit(scope, self.filled(self.pick(*_LINES), scope, 1))
            case "guarded":
                name, line = self.pick_pair(_GUARDED)
                self.emit(scope, f"if {name}:")
                self.emit(scope.inside(), self.filled(line, scope, 1))
            case "loop":
                self.over_a_list(scope)
            case "try":
                self.with_a_handler(scope)
            case _:
                super().statement(scope)

    def pick_pair(self, pairs: tuple[tuple[str, str], ...]) -> tuple[str, str]:
        chosen: tuple[str, str] = self.draw(st.sampled_from(pairs))
        return chosen

    def over_a_list(self, scope: plain._Scope) -> None:
        self.counters += 1
        element = f"s{self.counters}"
        source = self.pick("list(l)", "m[:3]", "positive(v)", "reversed(l[:2])", "list(h.values())")
        self.emit(scope, f"for {element} in {source}:")
        self.block(scope.inside(loop=True, s=element))

    def with_a_handler(self, scope: plain._Scope) -> None:
        self.emit(scope, "try:")
        self.emit(scope.inside(), f"s = risky({self.expression(SCALAR, scope, 1)})")
        self.block(scope.inside())
        self.emit(scope, f"except {self.pick('KeyError', 'IndexError', 'LookupError', '(KeyError, IndexError)')}:")
        self.block(scope.inside())


@st.composite
def container_programs(draw: Draw) -> str:
    """The source text of a module with one function, ``program(s, t, v, w, n, c)``."""
    grammar = Grammar(statements=(4, 8, 12), depth=2, inplace_tensors=False)
    writer = _Writer(draw, grammar, left=draw(st.sampled_from(grammar.statements)))
    scope = plain._Scope(names=plain._PARAMETERS, assignable=plain._PARAMETERS)
    with _more_expressions():
        while writer.left > 0:
            writer.left -= 1
            writer.statement(scope)
    start = [
        "    l, m, d, o, x = [s], [], {'s': s, 'n': n}, Box(), None",
        "    k, o.s, o.n, h, q = m, t, n, {}, {1}",
    ]
    end = "    return s, t, v, w, n, c, l, m, k, d, o.s, o.n, x, h, q"
    return "\n".join([HELPERS, "", "def program(s, t, v, w, n, c):", *start, *writer.lines, end, ""])


class _more_expressions:
    """Adds the expressions and conditions on containers while a program is written."""

    def __enter__(self) -> None:
        self._before = dict(plain._EXPRESSIONS), plain._CONDITIONS
        plain._EXPRESSIONS[SCALAR] += _SCALARS
        plain._EXPRESSIONS[INT] += _INTS
        plain._EXPRESSIONS[VECTOR] += ("(torch.stack((l * 3)[:3]) if l else {v})",)
        plain._CONDITIONS += _CONDITIONS

    def __exit__(self, *error: Any) -> None:
        expressions, plain._CONDITIONS = self._before
        plain._EXPRESSIONS.update(expressions)
