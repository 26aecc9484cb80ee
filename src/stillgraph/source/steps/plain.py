"""`if`, `while` and `for` that stay Python: those of a generator that contain `yield`, and exits in a `finally`.

Their tests, iterables and blocks are rewritten all the same, and what a `yield from` draws from.
"""
from __future__ import annotations

import ast
from collections.abc import Sequence

from stillgraph.source import build
from stillgraph.source.facts import Loop
from stillgraph.source.places import Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.tree import with_fields


def plain_if(node: ast.If, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    inner = place.inside_python()
    body, orelse = to.statements(node.body, inner), to.statements(node.orelse, inner)
    return Rewritten([with_fields(node, test=to.expr(node.test), body=body, orelse=orelse)])


def plain_while(node: ast.While, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    return Rewritten([with_fields(node, test=to.expr(node.test), **_blocks(node, place, to))])


def plain_for(node: ast.For, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    iterable, blocks = to.op("items", [to.expr(node.iter)], node.iter), _blocks(node, place, to)
    if to.stores_by_python(node.target):
        return Rewritten([with_fields(node, iter=iterable, target=to.expr(node.target), **blocks)])
    name = to.names.fresh("value")
    blocks["body"] = to.store(node.target, name) + blocks["body"]
    return Rewritten([with_fields(node, iter=iterable, target=build.store(name, node.target), **blocks)])


def delegated(node: ast.YieldFrom, to: Rewriter) -> ast.expr:
    return with_fields(node, value=to.op("items", [to.expr(node.value)], node.value))


def _blocks(node: Loop, place: Place, to: Rewriter) -> dict[str, list[ast.stmt]]:
    return {"body": to.statements(node.body, place.inside_python_loop()),
            "orelse": to.statements(node.orelse, place.inside_python())}


STEP = Step(
    "plain",
    statements={ast.If: plain_if, ast.While: plain_while, ast.For: plain_for},
    expressions={ast.YieldFrom: delegated},
)
