"""`return`, `break` and `continue`.

In a generated function, leaving means returning an exit::

    return x        return Return(x)
    break           return BREAK
    continue        return CONTINUE

In the user's own function `return` stays, and so do `break` and `continue` of a loop that stays Python. An exit that
reaches the top of the function becomes its value by `return result_of(...)`.
"""
from __future__ import annotations

import ast
from collections.abc import Sequence

from stillgraph.source import build
from stillgraph.source.places import Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter


def returning(node: ast.Return, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if not place.in_block:
        return Rewritten([to.children(node)])
    value = build.constant(None, node) if node.value is None else to.expr(node.value)
    return Rewritten([build.give_back(to.op("Return", [value], node), node)])


def breaking(node: ast.Break | ast.Continue, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if place.in_python_loop or not place.in_block:
        return Rewritten([node])
    name = "BREAK" if isinstance(node, ast.Break) else "CONTINUE"
    return Rewritten([build.give_back(to.operator(name, node), node)])


STEP = Step("exits", statements={ast.Return: returning, ast.Break: breaking, ast.Continue: breaking})
