"""Comprehensions.

Before::

    [f(x) for x in xs if x > 0]
    {k: v for k, v in pairs}
    [x * y for x in xs for y in f(x)]

After::

    list_of(xs, lambda x: call(f, x), lambda x: x > 0)

    def entry_1(value_1):
        k, v = unpack(value_1, 2)
        return (k, v)
    dict_of(pairs, entry_1)
    list_of(xs, lambda x: list_of(call(f, x), lambda y: x * y), flat=True)

A generator expression becomes `generator_of(xs, …)`, which runs as late as it does.

Others stay Python: a generator with several `for`s, a `for` that uses what a later one binds, an assignment by `:=` (it
belongs to the function around), and variables that a lambda captures (all of them would see the last value). A
generator of the last two kinds becomes `binding((…))`: what draws from it may stop where only the run decides.
"""
from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from stillgraph.source import build
from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.scopes import Comprehension
from stillgraph.source.steps.stores import unpacked
from stillgraph.source.tree import with_fields

_OPERATORS: dict[type[ast.expr], str] = {ast.ListComp: "list_of", ast.SetComp: "set_of", ast.DictComp: "dict_of",
                                         ast.GeneratorExp: "generator_of"}


def comprehension(node: Comprehension, to: Rewriter) -> ast.expr:
    if not _converts(node, to):
        return _plain(node, to)
    return _from(0, node, to)


def _from(position: int, node: Comprehension, to: Rewriter) -> ast.expr:
    """What the `for`s of a comprehension give from one on: all but the last give several elements each time."""
    loop = node.generators[position]
    last = position == len(node.generators) - 1
    iterable = to.expr(loop.iter)
    if last:
        part = _element(node)
        stem = "entry" if isinstance(node, ast.DictComp) else "element"
        args = [iterable, _function(loop.target, lambda: to.expr(part), part, stem, node, to)]
    else:
        args = [iterable, _function(loop.target, lambda: _from(position + 1, node, to), loop.iter, "inner", node, to)]
    if loop.ifs:
        test = _test(loop.ifs)
        args.append(_function(loop.target, lambda: to.expr(test), test, "condition", node, to))
    name = _OPERATORS[type(node)] if position == 0 else "list_of"
    return to.op(name, args, node, [] if last else [build.keyword("flat", build.constant(True, node))])


def _converts(node: Comprehension, to: Rewriter) -> bool:
    if len(node.generators) > 1 and isinstance(node, ast.GeneratorExp):
        return False
    if any(loop.is_async for loop in node.generators) or to.scope_of(node).captured:
        return False
    for loop in node.generators:
        if not isinstance(loop.target, ast.Name) and (to.frame.prelude is None or not _unpacks_names(loop.target)):
            return False
    if _reads_ahead(node.generators):
        return False
    return not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node)) and to.can_defer(node)


def _reads_ahead(loops: list[ast.comprehension]) -> bool:
    """Whether a `for` uses what it or a later one binds: Python finds the value of the round before there."""
    bound: set[str] = set()
    for position, loop in reversed(list(enumerate(loops))):
        if any(_names(test) & bound for test in loop.ifs):
            return True
        bound |= _names(loop.target)
        if position > 0 and _names(loop.iter) & bound:
            return True
    return False


def _names(node: ast.expr) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _unpacks_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Starred):
        return _unpacks_names(target.value)
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_unpacks_names, target.elts))
    return isinstance(target, ast.Name)


def _element(node: Comprehension) -> ast.expr:
    if isinstance(node, ast.DictComp):
        return ast.Tuple([node.key, node.value], ast.Load(), **build.span(node.key))
    return node.elt


def _test(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests, **build.span(tests[0]))


def _function(target: ast.expr, make: Callable[[], ast.expr], at: ast.expr, stem: str,
              node: Comprehension, to: Rewriter) -> ast.expr:
    """A function of one item."""
    outer, to.name_scope = to.name_scope, to.scope_of(node)
    try:
        if isinstance(target, ast.Name):
            return to.defer(make, at, stem, [target.id])
        assert isinstance(target, ast.Tuple | ast.List)
        value = to.names.fresh("value")
        parts = _taken_apart(target, value, to)
        first = [ast.Assign([part], taken, None, **build.span(part)) for part, taken in parts]
        return to.defer(make, at, stem, [value], first)
    finally:
        to.name_scope = outer


def _taken_apart(target: ast.Tuple | ast.List, name: str, to: Rewriter) -> list[tuple[ast.expr, ast.expr]]:
    """Targets of variables of the comprehension, each with what it takes apart: a variable, then parts of that."""
    elements: list[ast.expr] = []
    later: list[tuple[ast.expr, ast.expr]] = []
    for element in target.elts:
        inner = element.value if isinstance(element, ast.Starred) else element
        if isinstance(inner, ast.Tuple | ast.List):
            part = to.names.fresh("target")
            later += _taken_apart(inner, part, to)
            inner = build.store(part, inner)
        elements.append(inner)
    return [(with_fields(target, elts=elements), unpacked(target, build.load(name, target), to)), *later]


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
                iterable = to.op("items", [to.expr(loop.iter)], loop.iter)
        with to.inside_comprehension(to.scope_of(node)):
            loops += _counted(with_fields(loop, iter=iterable, ifs=to.exprs(loop.ifs)), to)
    with to.inside_comprehension(to.scope_of(node)):
        if isinstance(node, ast.DictComp):
            return with_fields(node, generators=loops, key=to.expr(node.key), value=to.expr(node.value))
        plain = with_fields(node, generators=loops, elt=to.expr(node.elt))
    if not isinstance(node, ast.GeneratorExp):
        return plain
    return to.op("binding", [plain, *([] if _binds_unseen(node, to) else [build.constant(False, node)])], node)


def _counted(loop: ast.comprehension, to: Rewriter) -> list[ast.comprehension]:
    """`for a, b in pairs` as `for value in pairs for a, b in (unpack(value, 2),)`."""
    if not isinstance(loop.target, ast.Tuple | ast.List):
        return [loop]
    name = to.names.fresh("value")
    parts = [ast.comprehension(target, ast.Tuple([value], ast.Load(), **build.span(target)), [], 0)
             for target, value in _taken_apart(loop.target, name, to)]
    parts[-1].ifs = loop.ifs
    return [with_fields(loop, target=build.store(name, loop.target), ifs=[]), *parts]


def _binds_unseen(node: Comprehension, to: Rewriter) -> bool:
    """Whether a generator binds variables that others read, while something draws from it."""
    return bool(to.scope_of(node).captured) or any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))


STEP = Step("comprehensions", {ast.ListComp: comprehension, ast.SetComp: comprehension,
                               ast.DictComp: comprehension, ast.GeneratorExp: comprehension})
