"""Functions and classes inside the function: their bodies are rewritten where they stand.

Decorators, base classes and annotations stay as they are, and so do the statements of a class body; functions and
lambdas in them are rewritten, and what is read there of a function around that may have no value.
"""
from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from stillgraph.source import build
from stillgraph.source.facts import Facts
from stillgraph.source.generators import place_of
from stillgraph.source.places import Frame, Function, Place, Rewritten, Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.scopes import FunctionNode
from stillgraph.source.steps.stores import announced
from stillgraph.source.tree import with_fields


def definition(node: ast.FunctionDef, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    to.bind(node.name)
    made = with_fields(node, args=_defaults(node.args, to), body=function_body(node, to.function.class_name, to))
    twin = to.twins.get(place_of(node))
    if twin is not None:
        both = to.op("generator", [build.load(twin.name, node), build.constant(twin.emit, node)], node)
        made = with_fields(made, decorator_list=[*made.decorator_list, both])
    return Rewritten(announced([made], node.name, node, to))


def coroutine(node: ast.AsyncFunctionDef, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    to.bind(node.name)
    return Rewritten(announced([node], node.name, node, to))


def class_definition(node: ast.ClassDef, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    to.bind(node.name)
    return Rewritten(announced([_class(node, to)], node.name, node, to))


def anonymous(node: ast.Lambda, to: Rewriter) -> ast.expr:
    return lambda_with(node, _defaults(node.args, to), to.function.class_name, to)


def lambda_with(node: ast.Lambda, args: ast.arguments, class_name: str | None, to: Rewriter) -> ast.Lambda:
    """A lambda with its body rewritten."""
    with to.inside(_function(node, class_name, to)):
        return with_fields(node, args=args, body=to.expr(node.body))


def function_body(node: ast.FunctionDef, class_name: str | None, to: Rewriter) -> list[ast.stmt]:
    """The rewritten body of a function, its variables declared."""
    first = 1 if ast.get_docstring(node, clean=False) is not None else 0
    with to.inside(_function(node, class_name, to)):
        body = [*_received(node, to), *to.statements(node.body[first:], Place())]
        declared = _declarations(node, to.frame, to)
    return [*node.body[:first], *declared, *body] or [ast.Pass(**build.span(node))]


def _received(node: ast.FunctionDef, to: Rewriter) -> list[ast.stmt]:
    """``kwargs = received(kwargs)`` for a function with ``**kwargs``."""
    if node.args.kwarg is None:
        return []
    name, at = node.args.kwarg.arg, node.body[0]
    return [ast.Assign([build.store(name, at)], to.op("received", [build.load(name, at)], at), **build.span(at))]


def _declarations(node: ast.FunctionDef, frame: Frame, to: Rewriter) -> list[ast.stmt]:
    """What makes the variables of a function its own although some are only assigned in blocks."""
    made: list[ast.stmt] = []
    scope, at = to.scope, node.body[0]
    if scope.globals:
        made.append(ast.Global(sorted(scope.globals), **build.span(at)))
    if scope.nonlocals:
        made.append(ast.Nonlocal(list(scope.nonlocals), **build.span(at)))
    for name in scope.bound:
        if name not in frame.bound and name not in scope.params:
            variable = build.store(name, at)
            made.append(ast.AnnAssign(variable, build.load("object", at), None, 1, **build.span(at)))
    return made


def _function(node: FunctionNode, class_name: str | None, to: Rewriter) -> Function:
    scope = to.scope_of(node)
    return Function(node, scope, Facts(node, scope, has_walrus=to.has_walrus), class_name)


def _defaults(args: ast.arguments, to: Rewriter) -> ast.arguments:
    if not args.defaults and not args.kw_defaults:
        return args
    keyword_defaults = [value and to.expr(value) for value in args.kw_defaults]
    return with_fields(args, defaults=to.exprs(args.defaults), kw_defaults=keyword_defaults)


def _class(node: ast.ClassDef, to: Rewriter) -> ast.ClassDef:
    return with_fields(node, body=[_member(each, node.name, to) for each in node.body])


def _member(node: Any, class_name: str, to: Rewriter) -> Any:
    """A part of a class body with the functions in it rewritten, and the reads of what may have no value."""
    match node:
        case ast.Name(ctx=ast.Load()) if to.may_be_unset(node):
            return to.op("loaded", [node, build.constant(node.id, node), build.constant(True, node)], node)
        case ast.arg():
            return node
        case ast.AnnAssign():
            return with_fields(node, value=_member(node.value, class_name, to))
        case ast.FunctionDef():
            return with_fields(node, args=_member(node.args, class_name, to), body=function_body(node, class_name, to))
        case ast.Lambda():
            return lambda_with(node, _member(node.args, class_name, to), class_name, to)
        case ast.ClassDef():
            return _class(node, to)
        case ast.AST() if not isinstance(node, ast.AsyncFunctionDef):
            changes = {name: _member(getattr(node, name, None), class_name, to) for name in node._fields}
            return with_fields(node, **changes)
        case list():
            return [_member(each, class_name, to) for each in node]
    return node


def declared_first(node: ast.stmt, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    """`global` and `nonlocal` are repeated at the start of the function."""
    return Rewritten([])


def type_alias(node: ast.stmt, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    """`type X = int`: its value is evaluated later, if at all."""
    to.expr(node.name)  # type: ignore[attr-defined]  # a TypeAlias
    return Rewritten([node])


_TYPE_ALIASES = {ast.TypeAlias: type_alias} if hasattr(ast, "TypeAlias") else {}        # Python 3.12 and later

STEP = Step("functions", expressions={ast.Lambda: anonymous},
            statements={ast.FunctionDef: definition, ast.AsyncFunctionDef: coroutine, ast.ClassDef: class_definition,
                        ast.Global: declared_first, ast.Nonlocal: declared_first, **_TYPE_ALIASES})
