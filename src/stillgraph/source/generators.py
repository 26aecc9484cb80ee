"""A generator turned inside out, so that a loop over it can be staged.

Before::

    def loud(chunks, threshold):
        for chunk in chunks:
            if chunk.max() > threshold:
                yield chunk

After::

    def loud(chunks, threshold, *, emit_1):
        for chunk in chunks:
            if chunk.max() > threshold:
                if emit_1(chunk):           # the body of the loop over the generator; whether it left that loop
                    return emit_1.nothing

What another generator gives is taken from what says so::

    count = yield from others(chunks)       given_1 = emit_1.delegated(others(chunks))
                                            for item_1 in given_1.items:
                                                if emit_1(item_1):
                                                    return emit_1.nothing
                                            count = given_1.value

The function of a context manager (`contextlib.contextmanager`) sees what its block raises, and is never left early::

    with lock:                              with lock:
        yield 1                                 emit_1(1)           # the block

The result is rewritten like any other function. This is possible where nothing can tell the difference: for a
loop, each ``yield`` is a statement, and none stands inside ``with`` or ``try``, which would see what its body raises.

A generator that is defined inside the function gets a twin, a function beside it that is the same turned inside out
(`with_twins`); the rewritten code says by a decorator, ``generator``, which two belong together.
"""
from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from stillgraph.source import build
from stillgraph.source.names import Names
from stillgraph.source.scopes import FunctionNode, analyse
from stillgraph.source.tree import AnyNode, child_nodes, with_fields


class InsideOut(NamedTuple):
    """A generator turned inside out, and the name of the parameter that takes what it yields."""

    node: ast.FunctionDef
    emit: str


class _NotPossible(Exception):
    """A ``yield`` stands where it cannot become a call."""


Turn = Callable[[FunctionNode], InsideOut | None]


def inside_out(node: FunctionNode) -> InsideOut | None:
    """A generator with its ``yield``s as calls of a loop's body, or None where that would not mean the same."""
    return _turned(node, _block)


def around_block(node: FunctionNode) -> InsideOut | None:
    """The same for the function of a context manager: its ``yield`` is a call of the block."""
    return _turned(node, _around)


def _turned(node: FunctionNode, block: Callable[[list[ast.stmt], str, Names], list[ast.stmt]]) -> InsideOut | None:
    if not isinstance(node, ast.FunctionDef):
        return None
    names = Names(analyse(node).names)
    emit = names.fresh("emit")
    try:
        body = block(node.body, emit, names)
    except _NotPossible:
        return None
    parameter = ast.arg(emit, None, **build.span(node))
    args = with_fields(node.args, kwonlyargs=[*node.args.kwonlyargs, parameter],
                       kw_defaults=[*node.args.kw_defaults, None])
    return InsideOut(with_fields(node, args=args, body=body), emit)


class _Handing(ast.NodeTransformer):
    """Makes a call of each ``yield`` of a function; those of functions in it stay."""

    def __init__(self, emit: str) -> None:
        self._emit = emit

    def visit_Yield(self, node: ast.Yield) -> ast.expr:
        value = build.constant(None, node) if node.value is None else self.visit(node.value)
        return build.call(build.load(self._emit, node), [value], node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.expr:
        raise _NotPossible

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node


def _around(nodes: list[ast.stmt], emit: str, names: Names) -> list[ast.stmt]:
    handing = _Handing(emit)
    return [handing.visit(copy.deepcopy(node)) for node in nodes]


class Place(NamedTuple):
    """Where a definition stands, and its name."""

    line: int
    column: int
    name: str


class Twin(NamedTuple):
    """The twin of a generator that is defined inside the function: its name, and that of its further parameter."""

    name: str
    emit: str


def place_of(node: ast.FunctionDef) -> Place:
    """The place of a definition, which its copies have as well."""
    return Place(node.lineno, node.col_offset, node.name)


def with_twins(node: AnyNode, names: Names, twins: dict[Place, Twin]) -> AnyNode:
    """A function, or any node in it, with a twin in front of each generator in it that can be turned inside out.

    Args:
        node: the function; not looked into are classes in it.
        names: where to get names for twins.
        twins: gets the twins that are made.
    """
    changes: dict[str, Any] = {}
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt | ast.ExceptHandler | ast.match_case):
            made: list[Any] = []
            for one in value:
                each: Any = one if isinstance(one, ast.ClassDef) else with_twins(one, names, twins)
                twin = _twin(each, names) if isinstance(each, ast.FunctionDef) and _is_generator(each) else None
                if twin is not None:
                    twins[place_of(each)] = Twin(twin.node.name, twin.emit)
                    made.append(twin.node)
                made.append(each)
            changes[field] = made
    return with_fields(node, **changes) if changes else node


def _is_generator(node: ast.FunctionDef) -> bool:
    return any(map(_yields, node.body))


def _twin(node: ast.FunctionDef, names: Names) -> InsideOut | None:
    turned = inside_out(copy.deepcopy(node))
    if turned is None:
        return None
    args = turned.node.args
    nothing = build.constant(None, node)  # the twin is given the defaults of the generator
    args = with_fields(args, defaults=[nothing for _ in args.defaults],
                       kw_defaults=[value and nothing for value in args.kw_defaults])
    twin = with_fields(turned.node, name=names.fresh(node.name), args=args, decorator_list=[], returns=None)
    return InsideOut(twin, turned.emit)


def _block(nodes: list[ast.stmt], emit: str, names: Names) -> list[ast.stmt]:
    return [each for node in nodes for each in (_delegating(node, emit, names) or [_statement(node, emit, names)])]


def _delegating(node: ast.stmt, emit: str, names: Names) -> list[ast.stmt]:
    """The statements for one that does something with all of the value of a ``yield from``; empty for any other."""
    match node:
        case (ast.Assign() | ast.AnnAssign() | ast.Return()) as taking if isinstance(taking.value, ast.YieldFrom):
            iterable = taking.value.value
            if _yields(iterable) or any(_yields(child) for child in child_nodes(node) if child is not taking.value):
                raise _NotPossible
            given = names.fresh("given")
            made = build.call(_attribute(emit, "delegated", iterable), [iterable], iterable)
            loop = _loop(_attribute(given, "items", iterable), emit, names, node)
            taken = with_fields(node, value=_attribute(given, "value", node))
            return [build.assign(given, made, iterable), loop, taken]
    return []


def _loop(iterable: ast.expr, emit: str, names: Names, at: ast.stmt) -> ast.For:
    """A loop that hands out all of an iterable."""
    item = names.fresh("item")
    body = [_leave_if(emit, build.load(item, iterable), at)]
    return ast.For(build.store(item, iterable), iterable, body, [], None, **build.span(at))


def _attribute(name: str, attribute: str, at: build.Located) -> ast.Attribute:
    return ast.Attribute(build.load(name, at), attribute, ast.Load(), **build.span(at))


def _statement(node: ast.stmt, emit: str, names: Names) -> ast.stmt:
    match node:
        case ast.Expr(value=ast.Yield(value=value)):
            return _leave_if(emit, value or build.constant(None, node), node)
        case ast.Expr(value=ast.YieldFrom(value=iterable)) if not _yields(iterable):
            return _loop(iterable, emit, names, node)
        case ast.If() | ast.For() | ast.While():
            if any(_yields(child) for child in child_nodes(node) if not isinstance(child, ast.stmt)):
                raise _NotPossible
            return with_fields(node, body=_block(node.body, emit, names), orelse=_block(node.orelse, emit, names))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node
    if _yields(node):
        raise _NotPossible
    return node


def _leave_if(emit: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    if _yields(value):
        raise _NotPossible
    test = build.call(build.load(emit, value), [value], value)
    return ast.If(test, [ast.Return(_attribute(emit, "nothing", at), **build.span(at))], [], **build.span(at))


def _yields(node: ast.AST) -> bool:
    """Whether a node contains a ``yield`` of the function it stands in."""
    if isinstance(node, ast.Yield | ast.YieldFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return False
    return any(map(_yields, child_nodes(node)))
