"""Calls: `f(a, *b, k=c)` becomes `call(f, a, *b, k=c)`.

Where Python names the function in what it says of the arguments, `f(*b)` becomes `calling(f)(*b)`, and `f(a, **d)`
becomes `calling(f)(a, **keywords(d))`.

What the caller of `convert` knows to be plain is called as it is, unless it is given `*b`: how many arguments those are
may be for `call` to say. So are functions that look at the frame they are called from; what starts a debugger there is
asked for first: `breakpoint()` becomes `stopping(breakpoint)()`.
`super()` gets the arguments that Python would have found in that frame: `super(__class__, self)`.
"""
from __future__ import annotations

import ast

from stillgraph.source import build
from stillgraph.source.callees import Callee
from stillgraph.source.places import Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.scopes import INLINES_COMPREHENSIONS
from stillgraph.source.tree import with_fields


def call(node: ast.Call, to: Rewriter) -> ast.expr:
    callee = to.callee(node.func)
    bare = not node.args and not node.keywords
    if callee is Callee.SUPER and bare:
        return _super(node, to)
    if to.looks_at_variables(node):
        return _looks_at_variables(node, to)
    if callee is Callee.DEBUGGER:
        return _with_arguments(node, to.op("stopping", [node.func], node), to)
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    starred = starred or any(keyword.arg is None for keyword in node.keywords)
    asks = callee is Callee.LOCALS                              # `vars(obj)`, `dir(obj)`: an object, not the frame
    if callee is not Callee.ORDINARY and not asks and not (callee is Callee.PLAIN and starred):
        return _with_arguments(node, node.func, to)
    plain = _with_arguments(node, to.expr(node.func), to)
    if _is_named(node):
        return with_fields(plain, func=to.op("calling", [plain.func], node))
    return to.op("call", [plain.func, *plain.args], build.at_method(node), plain.keywords)


def _is_named(node: ast.Call) -> bool:
    """Whether Python names the function where it cannot take the arguments apart: `f(*b)` alone, or any `**d`."""
    if any(each.arg is None for each in node.keywords):
        return True
    return len(node.args) == 1 and isinstance(node.args[0], ast.Starred)


def _with_arguments(node: ast.Call, function: ast.expr, to: Rewriter) -> ast.Call:
    keywords = [_keyword(to.children(each), to) for each in node.keywords]
    return with_fields(node, func=function, args=to.exprs(node.args), keywords=keywords)


def _keyword(node: ast.keyword, to: Rewriter) -> ast.keyword:
    if node.arg is not None:
        return node
    return with_fields(node, value=to.op("keywords", [node.value], node.value))


def _super(node: ast.Call, to: Rewriter) -> ast.expr:
    args = to.function.node.args
    positional = [*args.posonlyargs, *args.args]
    if not positional or isinstance(to.function.node, ast.Lambda):
        return node
    receiver: ast.expr = build.load(positional[0].arg, node)
    if to.name_scope is not to.scope and not INLINES_COMPREHENSIONS:
        receiver = ast.Tuple([], ast.Load(), **build.span(node))  # a comprehension's frame has an iterator there
    return with_fields(node, args=[build.load("__class__", node), receiver])


def _looks_at_variables(node: ast.Call, to: Rewriter) -> ast.expr:
    """`locals()`, `eval(text)` …, which see the variables of the function that calls them."""
    assert isinstance(node.func, ast.Name | ast.Attribute)
    name = ast.unparse(node.func)
    if to.frame.in_block:
        return with_fields(node, func=to.op("hidden", [build.constant(name, node)], node), args=to.exprs(node.args),
                           keywords=[_keyword(to.children(each), to) for each in node.keywords])
    if name.endswith(("locals", "vars", "dir")):
        return _own_variables(node, to, is_sorted=name.endswith("dir"))
    evaluates = _with_arguments(node, node.func, to)
    if not evaluates.args or isinstance(evaluates.args[0], ast.Constant | ast.Starred):
        return evaluates
    code = to.op("evaluated", [evaluates.args[0]], node)
    return with_fields(evaluates, args=[code, *evaluates.args[1:]])


def _own_variables(node: ast.Call, to: Rewriter, is_sorted: bool) -> ast.expr:
    """`variables(locals(), (...))`, `own_names(dir(), (...))`: without what rewriting added."""
    visible = to.scope.bound.keys() | to.scope.free
    if to.name_scope is not to.scope:
        visible |= to.name_scope.bound.keys() | {".0"}          # a comprehension's own, and what it iterates over
    known = build.names_tuple(map(to.mangled, sorted(visible)), node)
    return to.op("own_names" if is_sorted else "variables", [node, known], node)


STEP = Step("calls", {ast.Call: call})
