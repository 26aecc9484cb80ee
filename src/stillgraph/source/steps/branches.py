"""`if` statements.

Before::

    if test:
        y = a
    else:
        return b
    z = y

After::

    def then_1():
        nonlocal y
        y = a

    def else_1():
        return Return(b)

    def rest_1():               # only where an arm can be left by an exit
        nonlocal z
        z = y

    return result_of(if_(test, then_1, else_1, rest_1, keeps=("y",), drops=("z",)))
"""
from __future__ import annotations

import ast
from collections.abc import Sequence

from stillgraph.source import build
from stillgraph.source.places import Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.steps.plain import plain_if


def branch(node: ast.If, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    summary = to.facts.summary(node)
    if to.stays(summary, place):
        return plain_if(node, rest, place, to)
    test = to.expr(node.test)
    blocks = [to.block("then", node.body, node)]
    keywords = []
    if node.orelse:
        blocks.append(to.block("else", node.orelse, node))
    args = [test, *(build.load(block.name, node.test) for block in blocks)]
    assigned = to.facts.summary_of([*node.body, *node.orelse]).assigned
    live = to.facts.live_after([node])
    if summary.exits and rest:
        blocks.append(to.block("rest", rest, node))
        follow = build.load(blocks[-1].name, node.test)
        if node.orelse:
            args.append(follow)
        else:
            keywords.append(build.keyword("rest", follow))
        assigned |= to.facts.summary_of(rest).assigned
        live |= to.facts.live_after(rest)
    made = to.op("if_", args, node.test, [*keywords, *to.keeps(assigned, live, node.test)])
    if summary.exits:
        return Rewritten([*blocks, *to.leave(made, place)], took_rest=True)
    return Rewritten([*blocks, build.statement(made)])


STEP = Step("branches", statements={ast.If: branch})
