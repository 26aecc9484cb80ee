"""Comprehensions that assign by `:=`, which become loops in functions of their own before anything else is looked at.

Before::

    kept = [y for x in xs if (y := f(x)) > 0]

After (and then the loop is rewritten like any other)::

    def listed_1(values):
        nonlocal y
        found = []
        for x in values:
            if (y := f(x)) > 0:
                found.append(y)
        return found
    kept = listed_1(xs)

A generator expression becomes a generator, which runs as late::

    any((y := f(x)) > 0 for x in xs)

    def generated_1(values):
        nonlocal y
        for x in values:
            yield (y := f(x)) > 0
    any(generated_1(xs))

What lambdas have in them stays as it is. So does, where Python runs a comprehension in the frame of its function, one
that looks at that frame.
"""
from __future__ import annotations

import ast
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stillgraph.source import build
from stillgraph.source.names import Names
from stillgraph.source.scopes import INLINES_COMPREHENSIONS, parameters_of
from stillgraph.source.tree import AnyNode, contains, with_fields

_Function = TypeVar("_Function", ast.FunctionDef, ast.AsyncFunctionDef)
_Listed = ast.ListComp | ast.SetComp | ast.DictComp
_Comprehension = _Listed | ast.GeneratorExp
_KINDS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def may_assign(kinds: Set[type[ast.AST]]) -> bool:
    """Whether a text with these kinds of node may have such comprehensions in it."""
    return ast.NamedExpr in kinds and not kinds.isdisjoint(_KINDS)


def loops_apart(node: ast.FunctionDef, names: Names) -> ast.FunctionDef:
    """A function whose comprehensions that assign are loops.

    Args:
        node: the function.
        names: where to get names for what it gets.
    """
    return _Apart.of(node, names).function(node)


def _declared(body: list[ast.stmt], kind: type[ast.Global | ast.Nonlocal]) -> frozenset[str]:
    """The names that statements declare `global` or `nonlocal`, not counting functions and classes in them."""
    found: set[str] = set()
    pending: list[ast.AST] = [*body]
    while pending:
        each = pending.pop()
        if isinstance(each, kind):
            found.update(each.names)
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            pending += [inner for inner in ast.iter_child_nodes(each) if not isinstance(inner, ast.expr)]
    return frozenset(found)


@dataclass(frozen=True)
class _Apart:
    names: Names
    globals: Set[str]  # of the function at hand
    free: Set[str]  # variables of the functions around that it declares
    bound: set[str] = field(default_factory=set)  # what its comprehensions assign

    @classmethod
    def of(cls, node: ast.FunctionDef | ast.AsyncFunctionDef, names: Names) -> _Apart:
        return cls(names, _declared(node.body, ast.Global), _declared(node.body, ast.Nonlocal))

    def function(self, node: _Function) -> _Function:
        """A function with its statements taken apart; Python has to be told of variables that only these assign."""
        body: list[ast.stmt] = self.statements(node.body)
        unknown = sorted(self.bound - self.globals - self.free - {each.arg for each in parameters_of(node.args)})
        told: list[ast.stmt] = []
        for name in unknown:
            whatever = build.load("object", body[0])
            told.append(ast.AnnAssign(build.store(name, body[0]), whatever, None, 1, **build.span(body[0])))
        return with_fields(node, body=[*told, *body]) if told or not _are_same(body, node.body) else node

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for each in body:
            functions: list[ast.stmt] = []
            new = self._in(each, functions)
            made += [*functions, new]
        return made

    def _in(self, node: AnyNode, functions: list[ast.stmt]) -> Any:
        """A node without such comprehensions; the functions that stand for them go before its statement."""
        if isinstance(node, ast.Lambda):
            return node
        if isinstance(node, _KINDS) and _assigns(node):
            return self._called(node, functions)
        if isinstance(node, ast.FunctionDef):
            return self._around(_Apart.of(node, self.names).function(node), functions, skip="body")
        if isinstance(node, ast.AsyncFunctionDef):
            return self._around(_Apart.of(node, self.names).function(node), functions, skip="body")
        return self._around(node, functions)

    def _around(self, node: AnyNode, functions: list[ast.stmt], skip: str = "") -> AnyNode:
        changes: dict[str, Any] = {}
        for name in (name for name in node._fields if name != skip):
            value = getattr(node, name, None)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                new: Any = self.statements(value)
            elif isinstance(value, list):
                new = [self._in(each, functions) if isinstance(each, ast.AST) else each for each in value]
            elif isinstance(value, ast.AST):
                new = self._in(value, functions)
            else:
                continue
            if new is not value and not _are_same(new, value):
                changes[name] = new
        return with_fields(node, **changes) if changes else node

    def _called(self, node: _Comprehension, functions: list[ast.stmt]) -> ast.expr:
        first = self._in(node.generators[0].iter, functions)
        is_generator = isinstance(node, ast.GeneratorExp)
        function = build.load(self.names.helper("generated" if is_generator else "listed"), node)
        values, found = self.names.fresh("values"), self.names.fresh("found")
        body: list[ast.stmt] = self._element(node, build.load(found, node))
        for place, loop in reversed(list(enumerate(node.generators))):
            for test in reversed(loop.ifs):
                body = [ast.If(test, body, [], **build.span(test))]
            over = loop.iter if place else build.load(values, loop.iter)
            body = [ast.For(loop.target, over, body, [], None, **build.span(loop.target))]
        assigned = _names(node)
        self.bound.update(assigned)
        declared = [
            kind(sorted(names), **build.span(node))
            for kind, names in ((ast.Global, assigned & self.globals), (ast.Nonlocal, assigned - self.globals))
            if names
        ]
        if not isinstance(node, ast.GeneratorExp):
            body = [build.assign(found, _empty(node), node), *body, build.give_back(build.load(found, node), node)]
        body = [*declared, *body]
        made = build.function(function.id, build.parameters([values], node), body, node)
        functions.append(_Apart(self.names, self.globals, assigned).function(made))
        return build.call(function, [first], node)

    def _element(self, node: _Comprehension, found: ast.Name) -> list[ast.stmt]:
        if isinstance(node, ast.GeneratorExp):
            return [build.statement(ast.Yield(node.elt, **build.span(node.elt)))]
        if isinstance(node, ast.DictComp):
            key = self.names.fresh("key")  # Python evaluates it before the value
            place = ast.Subscript(found, build.load(key, node.key), ast.Store(), **build.span(node.key))
            stored = ast.Assign([place], node.value, None, **build.span(node.value))
            return [build.assign(key, node.key, node.key), stored]
        method = "append" if isinstance(node, ast.ListComp) else "add"
        added = ast.Attribute(found, method, ast.Load(), **build.span(node.elt))
        return [build.statement(build.call(added, [node.elt], node.elt))]


def _assigns(node: _Comprehension) -> bool:
    """Whether a comprehension assigns variables of the function around, by what this module can take apart."""
    if any(loop.is_async for loop in node.generators) or contains(node, ast.Await):
        return False
    if INLINES_COMPREHENSIONS and not isinstance(node, ast.GeneratorExp) and any(map(_looks_at_frame, ast.walk(node))):
        return False
    return contains(node, ast.NamedExpr)


_LOOKING = frozenset({"super", "locals", "vars", "dir", "eval", "exec"})


def _looks_at_frame(node: ast.AST) -> bool:
    """Whether a node names a function that looks at the frame it is called from."""
    return (isinstance(node, ast.Name) and node.id in _LOOKING) or (
        isinstance(node, ast.Attribute) and node.attr in _LOOKING
    )


def _names(node: ast.AST) -> set[str]:
    """What `:=` binds in a comprehension, not counting lambdas, whose variables these would be."""
    if isinstance(node, ast.Lambda):
        return set()
    own = {node.target.id} if isinstance(node, ast.NamedExpr) else set()
    return own.union(*map(_names, ast.iter_child_nodes(node)))


def _empty(node: _Listed) -> ast.expr:
    if isinstance(node, ast.SetComp):
        return ast.Set([ast.Starred(ast.Tuple([], ast.Load(), **build.span(node)), ast.Load(), **build.span(node))],
                       **build.span(node))
    if isinstance(node, ast.DictComp):
        return ast.Dict([], [], **build.span(node))
    return ast.List([], ast.Load(), **build.span(node))


def _are_same(left: Any, right: Any) -> bool:
    return isinstance(left, list) and len(left) == len(right) and all(each is other for each, other in zip(left, right))
