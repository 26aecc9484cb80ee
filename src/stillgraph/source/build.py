"""Making syntax nodes that carry the place of the user's node they stand for."""
from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypedDict


class Span(TypedDict):
    """Where a node is, in the form that the constructors of `ast` take."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


_TYPE_PARAMS: dict[str, Any] = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}   # Python 3.12

Located = ast.expr | ast.stmt | ast.excepthandler | ast.arg | ast.pattern


def span(node: Located) -> Span:
    """The place of a node, to be given to a node that replaces it."""
    return Span(lineno=node.lineno, col_offset=node.col_offset,
                end_lineno=node.end_lineno, end_col_offset=node.end_col_offset)


def load(name: str, at: Located) -> ast.Name:
    return ast.Name(name, ast.Load(), **span(at))


def store(name: str, at: Located) -> ast.Name:
    return ast.Name(name, ast.Store(), **span(at))


def at_method(node: ast.Call) -> Located:
    """What has the place of a method's call as Python tells it: from the method's name on, if that begins a line."""
    starred = any(isinstance(each, ast.Starred) for each in node.args)
    if starred or any(each.arg is None for each in node.keywords) or not isinstance(node.func, ast.Attribute):
        return node
    return ast.Pass(**{**span(node), **_beginning(node.func)})


def at_name(node: ast.Attribute) -> Located:
    """What has the place of the read of an attribute as Python tells it: see `at_method`."""
    return ast.Pass(**{**span(node), **_beginning(node)})


def _beginning(node: ast.Attribute) -> dict[str, Any]:
    """Where the name of an attribute begins, unless the expression began on the same line."""
    if node.end_lineno in (None, node.lineno):
        return {}
    return {"lineno": node.end_lineno, "col_offset": max((node.end_col_offset or 0) - len(node.attr), 0)}


def constant(value: object, at: Located) -> ast.Constant:
    return ast.Constant(value, **span(at))  # type: ignore[arg-type]  # the stubs know fewer


def names_tuple(names: Iterable[str], at: Located) -> ast.Tuple:
    return ast.Tuple([constant(name, at) for name in names], ast.Load(), **span(at))


def call(function: ast.expr, args: Sequence[ast.expr], at: Located, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
    return ast.Call(function, list(args), list(keywords), **span(at))


def keyword(name: str, value: ast.expr) -> ast.keyword:
    return ast.keyword(name, value, **span(value))


def assign(name: str, value: ast.expr, at: Located) -> ast.Assign:
    return ast.Assign([store(name, at)], value, None, **span(at))


def statement(value: ast.expr) -> ast.Expr:
    return ast.Expr(value, **span(value))


def give_back(value: ast.expr | None, at: Located) -> ast.Return:
    return ast.Return(value, **span(at))


def parameters(names: Iterable[str], at: Located) -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[ast.arg(name, None, None, **span(at)) for name in names], vararg=None,
                         kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])


def function(name: str, params: ast.arguments, body: list[ast.stmt], at: Located) -> ast.FunctionDef:
    """A `def` that starts on the line of `at`."""
    return ast.FunctionDef(name, params, body or [ast.Pass(**span(at))], [], None, None, **_TYPE_PARAMS, **span(at))


def class_around(name: str, body: list[ast.stmt], at: Located) -> ast.ClassDef:
    """A `class` with these statements."""
    return ast.ClassDef(name, [], [], body, [], **_TYPE_PARAMS, **span(at))


def deferred(body: ast.expr, params: Iterable[str] = ()) -> ast.Lambda:
    return ast.Lambda(parameters(params, body), body, **span(body))
