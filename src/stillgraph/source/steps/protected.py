"""`with` and `try`, which stay Python statements around rewritten blocks; on demand they become operators.

Before::

    with cm as self.x:
        if test:
            return a
    b()

After::

    exit_1 = None
    with context(cm) as value_1:
        set_attr(self, "x", value_1)
        def then_1(): …
        exit_1 = if_(test, then_1)
    def rest_1():
        call(b)
    return result_of(continue_(exit_1, rest_1))

Every such statement has an exit variable of its own, set last in its blocks: an exception on the way out of an inner
statement therefore gives up the exit, as in Python. In a `finally` statements with exits stay Python, because leaving
it ends an exception that is under way.

A handler for everything, for Ctrl-C, `AttributeError` or `TypeError` begins with `handling()`, which lets pass what is
not for the user, and so does a `finally` with exits.

Of what the handlers of an `except*` raise, Python makes a group, so they stand in managers of ours, which let
pass what ends a capture::

    try:                            with starred() as star_1:
        y = f(x)                        try:
    except* ValueError:                     y = call(f, x)
        y = x                           except* ValueError:
                                            with star_1:
                                                y = x

A `try` whose exceptions only the run raises is asked for as an operator (`Rewriter.tries`)::

    try:                            def try_1():
        y = f(x)                        nonlocal y
    except ValueError as e:             y = call(f, x)
        y = g(e)                    def handler_1(error_1):
                                        nonlocal e, y
                                        e = error_1
                                        y = call(g, e)
                                    try_(try_1, ((lambda: ValueError, handler_1, "e"),), keeps=("y",), drops=("e",))

and so are the `with` statements around::

    with cm as v:                   def with_1():
        y = f(v)                        nonlocal y
                                        y = call(f, v)
                                    def as_1(value_1):
                                        nonlocal v
                                        v = value_1
                                    with_(((lambda: cm, as_1),), with_1, keeps=("y",), drops=("v",))
"""
from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from stillgraph.source import build
from stillgraph.source.facts import Try
from stillgraph.source.places import ExitVariable, Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.steps.stores import before
from stillgraph.source.tree import with_fields


def with_statement(node: ast.With, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    can_be_called = "contexts" in to.enabled and to.can_defer(*(item.context_expr for item in node.items))
    if to.tries and can_be_called and not to.stays(to.facts.summary(node), place):
        return _with_operator(node, rest, place, to)
    inner = _inner(place, to)
    if len(node.items) > 1 and to.facts.summary(node).exits:
        nested = with_fields(node, items=node.items[1:])        # so that each manager has an exit variable around it
        node = with_fields(node, items=node.items[:1], body=[nested])
    return _after(_with_items(node, node.items, inner, to), inner, node, rest, place, to)


def _with_items(node: ast.With, items: list[ast.withitem], inner: Place, to: Rewriter) -> ast.With:
    """A `with` for the items up to the first whose target is not a local variable; the others in its body."""
    made: list[ast.withitem] = []
    for position, item in enumerate(items):
        manager = to.op("context", [to.expr(item.context_expr)], item.context_expr) if "contexts" in to.enabled \
            else to.expr(item.context_expr)
        target = item.optional_vars
        if target is None or to.stores_by_python(target):
            made.append(ast.withitem(manager, target and to.expr(target)))
            continue
        name = to.names.fresh("value")
        made.append(ast.withitem(manager, build.store(name, target)))
        body = to.store(target, name)
        remaining = items[position + 1:]
        body += [_with_items(node, remaining, inner, to)] if remaining else to.statements(node.body, inner)
        return with_fields(node, items=made, body=body)
    return with_fields(node, items=made, body=to.statements(node.body, inner))


def try_statement(node: Try, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    if to.tries and _can_be_called(node, place, to):
        return _try_operator(node, rest, place, to)
    inner = _inner(place, to)
    body = to.statements(node.body, inner)
    orelse = _else(node, inner, to)
    star = to.names.fresh("star") if isinstance(node, ast.TryStar) else None
    handlers = [_handler(handler, inner, to, star) for handler in node.handlers]
    cleanup = to.statements(node.finalbody, place.inside_python())
    if to.facts.summary_of(node.finalbody).exits:
        cleanup = [build.statement(to.op("handling", [], node)), *cleanup]
    bound = {handler.name for handler in node.handlers if handler.name in to.scope.globals}
    body = [*(before(name, node, to) for name in sorted(filter(None, bound))), *body]
    made: ast.stmt = with_fields(node, body=body, handlers=handlers, orelse=orelse, finalbody=cleanup)
    if star is not None:
        made = _around([made], to.op("starred", [], node), node, build.store(star, node))
    return _after(made, inner, node, rest, place, to)


def _around(body: list[ast.stmt], manager: ast.expr, at: ast.stmt | ast.ExceptHandler,
            target: ast.expr | None = None) -> ast.With:
    """A `with` of our own around statements."""
    return ast.With([ast.withitem(manager, target)], body, None, **build.span(at))


def _can_be_called(node: Try, place: Place, to: Rewriter) -> bool:
    """Whether the blocks of a `try` may be moved into functions."""
    if isinstance(node, ast.TryStar) or to.stays(to.facts.summary(node), place):
        return False
    if any(handler.name in to.scope.globals for handler in node.handlers):  # which no operator could unset
        return False
    kinds = [handler.type for handler in node.handlers if handler.type is not None]
    return to.can_defer(*kinds)


def _with_operator(node: ast.With, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    blocks = [to.block("with", node.body, node)]
    managers: list[ast.expr] = []
    for item in node.items:
        parts = [to.lazy(item.context_expr, "manager")]
        if item.optional_vars is not None:
            blocks.append(to.block("as", [], node, [to.names.fresh("value")], item.optional_vars))
            parts.append(build.load(blocks[-1].name, node))
        managers.append(ast.Tuple(parts, ast.Load(), **build.span(item.context_expr)))
    args = [ast.Tuple(managers, ast.Load(), **build.span(node)), build.load(blocks[0].name, node)]
    return _run("with_", args, [], blocks, node, rest, place, to)


def _run(operator: str, args: list[ast.expr], keywords: list[ast.keyword], blocks: list[ast.FunctionDef],
         node: Try | ast.With, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    """Call the operator of a statement, and go on with what its exits mean."""
    summary = to.facts.summary(node)
    live = {*to.facts.live_after([node]), *_read_behind(node)}
    run = to.op(operator, args, node, [*keywords, *to.keeps(summary.assigned, live, node)])
    if not summary.exits:
        return Rewritten([*blocks, build.statement(run)])
    more, value = to.continued(run, rest)
    return Rewritten([*blocks, *more, *to.leave(value, place)], took_rest=True)


def _read_behind(node: Try | ast.With) -> set[str]:
    """What the blocks of a statement read that the operator runs behind the others."""
    behind = [] if isinstance(node, ast.With) else [*node.orelse, *node.finalbody]
    return {name.id for each in behind for name in ast.walk(each) if isinstance(name, ast.Name)}


def _try_operator(node: Try, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    blocks = [to.block("try", node.body, node)]
    handlers: list[ast.expr] = []
    for handler in node.handlers:
        error = to.names.fresh("error")
        target = ast.Name(handler.name, ast.Store(), **build.span(handler)) if handler.name else None
        blocks.append(to.block("handler", handler.body, handler, [error], target))
        kinds = build.constant(None, handler) if handler.type is None else _lazy_kinds(handler.type, to)
        parts = [kinds, build.load(blocks[-1].name, handler)]
        if handler.name:
            parts.append(build.constant(to.mangled(handler.name), handler))
        handlers.append(ast.Tuple(parts, ast.Load(), **build.span(handler)))
    keywords = []
    for stem, body in (("orelse", node.orelse), ("cleanup", node.finalbody)):
        if body:
            blocks.append(to.block(stem, body, body[0]))
            keywords.append(build.keyword(stem, build.load(blocks[-1].name, node)))
    if to.facts.summary_of(node.finalbody).exits:
        keywords.append(build.keyword("leaves", build.constant(True, node)))
    args = [build.load(blocks[0].name, node), ast.Tuple(handlers, ast.Load(), **build.span(node))]
    return _run("try_", args, keywords, blocks, node, rest, place, to)


def _else(node: Try, inner: Place, to: Rewriter) -> list[ast.stmt]:
    """The `else` runs when the body comes to its end, which it now also does with an exit."""
    if not node.orelse or inner.exit is None or not inner.exit.used:
        return to.statements(node.orelse, inner)
    more, value = to.continued(build.load(inner.exit.name, node.orelse[0]), node.orelse)
    return [*more, *to.leave(value, inner)]


def _handler(node: ast.ExceptHandler, inner: Place, to: Rewriter, star: str | None) -> ast.ExceptHandler:
    if node.name:
        to.bind(node.name)
    body = to.statements(node.body, inner)
    if star is not None:
        body = [_around(body, build.load(star, node), node)]
    elif node.type is None or any(_name(each) in _OF_CAPTURES for each in ast.walk(node.type)):
        body = [build.statement(to.op("handling", [], node)), *body]
    return with_fields(node, type=node.type and _kinds(node.type, to), body=body)


_OF_CAPTURES = frozenset(
    {"AttributeError", "BaseException", "Exception", "KeyboardInterrupt", "SystemExit", "TypeError"}
)
"""What handlers are for that could get what ends a capture, or what Python says to what stands for a value."""


def _name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _lazy_kinds(node: ast.expr, to: Rewriter) -> ast.expr:
    return to.defer(lambda: _kinds(node, to), node, "kinds")


def _kinds(node: ast.expr, to: Rewriter) -> ast.expr:
    """What a handler is for; only what is computed here may have been chosen by a condition of the run."""
    made = to.expr(node)
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    chosen = any(isinstance(each, (ast.IfExp, ast.Call)) or (isinstance(each, ast.Name) and to.name_scope.owns(each.id))
                 for each in parts)
    return to.op("handled", [made], node) if chosen else made


def _inner(place: Place, to: Rewriter) -> Place:
    return place if place.exits_stay else replace(place, exit=ExitVariable(to.names))


def _after(made: ast.stmt, inner: Place, node: ast.stmt,
           rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    """Go on after the statement unless it left an exit."""
    if inner.exit is None or inner.exit is place.exit or not inner.exit.used:
        return Rewritten([made])
    name = inner.exit.name
    more, value = to.continued(build.load(name, node), rest)
    start = build.assign(name, build.constant(None, node), node)
    return Rewritten([start, made, *more, *to.leave(value, place)], took_rest=True)


STEP = Step("protected", statements={ast.With: with_statement, ast.Try: try_statement, ast.TryStar: try_statement})
