"""Reads: `a[i, 1:n]` becomes `item(a, (i, slice_(1, n)))`, `a[-1]` becomes `item(a, -1)`; `a[:, -1]` stays.

What stays has a constant key that neither a list nor a dict takes.
"""
from __future__ import annotations

import ast

from stillgraph.source import build
from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.tree import with_fields


def subscript(node: ast.Subscript, to: Rewriter) -> ast.expr:
    if not isinstance(node.ctx, ast.Load):
        return to.children(node)
    if stays(node.slice):
        return with_fields(node, value=to.expr(node.value))
    return read_item(to.expr(node.value), key_of(node.slice, to), node, to)


def read_item(owner: ast.expr, key: ast.expr, at: ast.expr, to: Rewriter) -> ast.expr:
    return to.op("item", [owner, key], at)


def stays(key: ast.expr) -> bool:
    """Whether reading by a constant key cannot change anything, nor mean a list."""
    match key:
        case ast.Constant(value=value):
            return value is None or value is ...
        case ast.Tuple():
            return is_fixed(key)
    return False


def is_fixed(key: ast.expr) -> bool:
    """Whether a key consists of constants."""
    match key:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
            return isinstance(operand, ast.Constant)
        case ast.Slice(lower=lower, upper=upper, step=step):
            return all(part is None or is_fixed(part) for part in (lower, upper, step))
        case ast.Tuple(elts=elements):
            return all(is_fixed(element) for element in elements)
    return False


def key_of(key: ast.expr, to: Rewriter) -> ast.expr:
    """The key as an expression of its own: slices become calls."""
    match key:
        case ast.Slice(lower=lower, upper=upper, step=step):
            bounds = [lower, upper] if step is None else [lower, upper, step]
            args = [build.constant(None, key) if bound is None else to.expr(bound) for bound in bounds]
            return to.op("slice_", args, key)
        case ast.Tuple(elts=elements):
            return with_fields(key, elts=[key_of(element, to) for element in elements])
    return to.expr(key)


STEP = Step("subscripts", {ast.Subscript: subscript})
