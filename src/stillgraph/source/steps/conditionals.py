"""The conditional expression: `a if test else b` becomes `if_exp(test, lambda: a, lambda: b)`."""
from __future__ import annotations

import ast

from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter


def conditional(node: ast.IfExp, to: Rewriter) -> ast.expr:
    if not to.can_defer(node.body, node.orelse):
        return to.children(node)
    parts = [to.expr(node.test), to.lazy(node.body, "then"), to.lazy(node.orelse, "else")]
    return to.op("if_exp", parts, node, to.keeps_of(node, node.body, node.orelse))


STEP = Step("conditionals", {ast.IfExp: conditional})
