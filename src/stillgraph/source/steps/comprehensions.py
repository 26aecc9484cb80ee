"""Comprehensions with one `for`.

Before::

    [f(x) for x in xs if x > 0]
    {k: v for k, v in pairs}

After::

    list_of(xs, lambda x: call(f, x), lambda x: x > 0)

    def entry_1(value_1):
        k, v = value_1
        return (k, v)
    dict_of(pairs, entry_1)

A generator expression becomes `generator_of(xs, …)`, which runs as late as it does.

Others stay Python: several `for`s, an assignment by `:=` (it belongs to the
function around), and variables that a lambda captures (all of them would see the last value).
"""
from __future__ import annotations

import ast
from dataclasses import replace

from stillgraph.source import build
from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.scopes import Comprehension
from stillgraph.source.tree import with_fields

_OPERATORS: dict[type[ast.expr], str] = {ast.ListComp: "list_of", ast.SetComp: "set_of", ast.DictComp: "dict_of",
                                         ast.GeneratorExp: "generator_of"}


def comprehension(node: Comprehension, to: Rewriter) -> ast.expr:
    if not _converts(node, to):
        return _plain(node, to)
    loop = node.generators[0]
    args = [to.expr(loop.iter), _element(node, to)]
    if loop.ifs:
        args.append(_function(loop.target, _test(loop.ifs), "condition", node, to))
    return to.op(_OPERATORS[type(node)], args, node)


def _converts(node: Comprehension, to: Rewriter) -> bool:
    loop = node.generators[0]
    if len(node.generators) > 1 or loop.is_async or to.scope_of(node).captured:
        return False
    if not isinstance(loop.target, ast.Name) and (to.frame.prelude is None or not _unpacks_names(loop.target)):
        return False
    return not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)) and to.can_defer(node)


def _unpacks_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Starred):
        return _unpacks_names(target.value)
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_unpacks_names, target.elts))
    return isinstance(target, ast.Name)


def _element(node: Comprehension, to: Rewriter) -> ast.expr:
    target = node.generators[0].target
    if isinstance(node, ast.DictComp):
        entry = ast.Tuple([node.key, node.value], ast.Load(), **build.span(node.key))
        return _function(target, entry, "entry", node, to)
    return _function(target, node.elt, "element", node, to)


def _test(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests, **build.span(tests[0]))


def _function(target: ast.expr, body: ast.expr, stem: str, node: Comprehension, to: Rewriter) -> ast.expr:
    """A function of one item."""
    outer, to.name_scope = to.name_scope, to.scope_of(node)
    try:
        if isinstance(target, ast.Name):
            return to.defer(lambda: to.expr(body), body, stem, [target.id])
        value = to.names.fresh("value")
        return to.defer(lambda: to.expr(body), body, stem, [value], unpack=(target, value))
    finally:
        to.name_scope = outer


def _plain(node: Comprehension, to: Rewriter) -> ast.expr:
    """The same comprehension, what it evaluates rewritten."""
    loops = []
    for position, loop in enumerate(node.generators):
        if position == 0:
            with to.inner_frame(replace(to.frame, in_iterable=True)):
                iterable = to.expr(loop.iter)
        else:
            with to.inside_comprehension(to.scope_of(node)):
                to.frame.in_iterable = True
                iterable = to.expr(loop.iter)
        with to.inside_comprehension(to.scope_of(node)):
            loops.append(with_fields(loop, iter=iterable, ifs=to.exprs(loop.ifs)))
    with to.inside_comprehension(to.scope_of(node)):
        if isinstance(node, ast.DictComp):
            return with_fields(node, generators=loops, key=to.expr(node.key), value=to.expr(node.value))
        return with_fields(node, generators=loops, elt=to.expr(node.elt))


STEP = Step("comprehensions", {ast.ListComp: comprehension, ast.SetComp: comprehension,
                               ast.DictComp: comprehension, ast.GeneratorExp: comprehension})
