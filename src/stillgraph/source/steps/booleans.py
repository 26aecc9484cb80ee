"""`and`, `or` and `not`.

`a and b or not c` becomes `or_(and_(a, lambda: b), lambda: not_(c))`. An operand that assigns by `:=` becomes a
definition with a `nonlocal` instead of a lambda, and the operator is told of the variable: `keeps=("n",)`.
"""
from __future__ import annotations

import ast

from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter


def and_or(node: ast.BoolOp, to: Rewriter) -> ast.expr:
    first, *others = node.values
    if not to.can_defer(*others):
        return to.children(node)
    name = "and_" if isinstance(node.op, ast.And) else "or_"
    operands = [to.expr(first), *(to.lazy(other, "operand") for other in others)]
    return to.op(name, operands, node, to.keeps_of(node, *others))


def negation(node: ast.UnaryOp, to: Rewriter) -> ast.expr:
    if not isinstance(node.op, ast.Not):
        return to.children(node)
    return to.op("not_", [to.expr(node.operand)], node)


STEP = Step("booleans", {ast.BoolOp: and_or, ast.UnaryOp: negation})
