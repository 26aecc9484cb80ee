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
from stillgraph.source.rewriter import Place, Rewriter, Rewritten, Step
from stillgraph.source.steps.stores import is_plain
from stillgraph.source.tree import with_fields


def while_loop(node: ast.While, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if to.stays(to.facts.summary(node), place):
        return Rewritten([with_fields(node, test=to.expr(node.test), **_python_blocks(node, place, to))])
    test = to.evaluation(node.test, "loop_test")
    body = to.block("loop_body", node.body, node)
    return _run("while_", [test, body], [build.load(test.name, node.test)], node, rest, place, to)


def for_loop(node: ast.For, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if to.stays(to.facts.summary(node), place):
        return _python_for(node, place, to)
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


def _python_blocks(node: Loop, place: Place, to: Rewriter) -> dict[str, list[ast.stmt]]:
    return {"body": to.statements(node.body, place.inside_python_loop()),
            "orelse": to.statements(node.orelse, place.inside_python())}


def _python_for(node: ast.For, place: Place, to: Rewriter) -> Rewritten:
    iterable, blocks = to.expr(node.iter), _python_blocks(node, place, to)
    if is_plain(node.target, to):
        return Rewritten([with_fields(node, iter=iterable, target=to.expr(node.target), **blocks)])
    name = to.names.fresh("value")
    blocks["body"] = to.store(node.target, name) + blocks["body"]
    return Rewritten([with_fields(node, iter=iterable, target=build.store(name, node.target), **blocks)])


STEP = Step("loops", statements={ast.While: while_loop, ast.For: for_loop})
