"""`while` and `for`.

Before::

    for a, b in pairs:
        if a > limit:
            return b
        s += a
    return s

After::

    def loop_body_1(value_1):
        nonlocal a, b
        a, b = value_1
        …
    def rest_1():
        return Return(s)
    return result_of(continue_(for_(pairs, loop_body_1, keeps=("s",), drops=("a", "b")), rest_1))

A loop of a generator that contains `yield` stays a Python loop.
"""
from __future__ import annotations

import ast
from collections.abc import Sequence

from stillgraph.source import build
from stillgraph.source.facts import Loop
from stillgraph.source.places import Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.steps.plain import plain_for, plain_while


def while_loop(node: ast.While, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if to.stays(to.facts.summary(node), place):
        return plain_while(node, rest, place, to)
    test = to.evaluation(node.test, "loop_test")
    body = to.block("loop_body", node.body, node)
    return _run("while_", [test, body], [build.load(test.name, node.test)], node, rest, place, to)


def for_loop(node: ast.For, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if to.stays(to.facts.summary(node), place):
        return plain_for(node, rest, place, to)
    iterable = to.expr(node.iter)
    body = to.block("loop_body", node.body, node, [to.names.fresh("value")], node.target)
    return _run("for_", [body], [iterable], node, rest, place, to)


def _run(operator: str, blocks: list[ast.FunctionDef], args: list[ast.expr], node: Loop,
         rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    """Call the operator of a loop, and go on with what its exits mean."""
    made: list[ast.stmt] = [*blocks]
    at = args[0]
    args = [*args, build.load(blocks[-1].name, at)]
    if node.orelse:
        orelse = to.block("else", node.orelse, node.orelse[0])
        made.append(orelse)
        args.append(build.load(orelse.name, at))
    summary = to.facts.summary(node)
    run = to.op(operator, args, at, to.keeps(summary.assigned, to.facts.live_around_loop(node), at))
    if not summary.exits:
        return Rewritten([*made, build.statement(run)])
    more, value = to.continued(run, rest)
    return Rewritten([*made, *more, *to.leave(value, place)], took_rest=True)


STEP = Step("loops", statements={ast.While: while_loop, ast.For: for_loop})
