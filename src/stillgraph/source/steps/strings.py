"""f-strings: `f"{a} of {b!r:>{w}}"` becomes `text("{} of {!r:>{}}", a, b, w)`, and `"%d" % a` `percent("%d", a)`.

An f-string formats each value before it evaluates the next, `str.format` evaluates all of them first. Where that could
be noticed, because a later value is computed by a call, an earlier one is formatted by a `text` of its own.
"""
from __future__ import annotations

import ast

from stillgraph.source import build
from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter

_CONVERSIONS = {-1: "", ord("s"): "!s", ord("r"): "!r", ord("a"): "!a"}
_HARMLESS = frozenset({"len", "str", "repr", "int", "float", "bool", "type", "round", "abs", "id", "hex", "chr", "ord"})


def joined(node: ast.JoinedStr, to: Rewriter) -> ast.expr:
    fields = [part for part in node.values if isinstance(part, ast.FormattedValue)]
    if not all(_is_expressible(field.format_spec) for field in fields):
        return to.children(node)
    template, args = "", list[ast.expr]()
    for position, part in enumerate(node.values):
        if not isinstance(part, ast.FormattedValue):
            template += _literal(part).replace("{", "{{").replace("}", "}}")
            continue
        later = node.values[position + 1:]
        field, values = _field(part, to)
        if any(map(_may_change_things, later)) and not _is_unchanging(part.value):
            field, values = "{}", [to.op("text", [build.constant(field, part), *values], part)]
        template += field
        args += values
    if not fields:
        return build.constant(_plain_text(node), node)
    return to.op("text", [build.constant(template, node), *args], node)


def _field(part: ast.FormattedValue, to: Rewriter) -> tuple[str, list[ast.expr]]:
    """The replacement field for a value, and what it takes."""
    args = [to.expr(part.value)]
    spec = ""
    if isinstance(part.format_spec, ast.JoinedStr):
        spec = ":"
        for piece in part.format_spec.values:
            if isinstance(piece, ast.FormattedValue):
                field, values = _field(piece, to)
                spec += field
                args += values
            else:
                spec += _literal(piece)
    return "{" + _CONVERSIONS[part.conversion] + spec + "}", args


def _is_expressible(spec: ast.expr | None, depth: int = 1) -> bool:
    """Whether `str.format` has a way to say this format: it nests once, and knows no literal braces."""
    if not isinstance(spec, ast.JoinedStr):
        return True
    for piece in spec.values:
        if isinstance(piece, ast.FormattedValue):
            inner = piece.format_spec
            if depth == 0 or not _is_expressible(inner, depth - 1):
                return False
        elif "{" in _literal(piece) or "}" in _literal(piece):
            return False
    return True


def _literal(part: ast.expr) -> str:
    assert isinstance(part, ast.Constant)
    return str(part.value)


def _plain_text(node: ast.JoinedStr) -> str:
    return "".join(map(_literal, node.values))


def _may_change_things(node: ast.expr) -> bool:
    """Whether evaluating an expression could change what another value looks like."""
    return any((isinstance(inner, ast.Call) and not _is_harmless(inner))
               or isinstance(inner, ast.NamedExpr | ast.Yield | ast.YieldFrom) for inner in ast.walk(node))


def _is_unchanging(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.JoinedStr) or (isinstance(node, ast.Call) and _is_harmless(node))


def _is_harmless(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in _HARMLESS


def filled(node: ast.BinOp, to: Rewriter) -> ast.expr:
    """`"%d of %d" % (a, b)`: no other `%` has a text on its left, or a display on its right."""
    by_text = isinstance(node.left, ast.JoinedStr) or (
        isinstance(node.left, ast.Constant) and isinstance(node.left.value, str))
    if not isinstance(node.op, ast.Mod) or not (by_text or isinstance(node.right, ast.Tuple | ast.Dict)):
        return to.children(node)
    return to.op("percent", [to.expr(node.left), to.expr(node.right)], node)


STEP = Step("strings", {ast.JoinedStr: joined, ast.BinOp: filled})
