"""Variables of comprehensions, apart from variables of the same name of the function around.

Python 3.12 and 3.13 (seen in 3.12.1 and 3.13.0) compile a list, set or dict comprehension into the function around it,
and there take one variable for the other in two cases: where functions inside write to a variable from further out that
the function itself does not use; and where a lambda in the comprehension reads its variable. Plain code has them
seldom. Rewriting makes such functions of blocks, and such lambdas of ``and`` and ``or``.
"""
from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from stillgraph.source.tree import AnyNode, child_nodes

_INLINED = (ast.ListComp, ast.SetComp, ast.DictComp)
_Comprehension = TypeVar("_Comprehension", ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def apart(node: AnyNode, fresh: Callable[[str], str]) -> AnyNode:
    """The definition with names of their own for such variables; itself, where it has none.

    Args:
        node: a definition or an expression.
        fresh: makes a name that is not in it, from another.
    """
    found = [*_inlined_in(node)]
    everywhere = _identifiers(node) if found else Counter()
    if not any(_shared(each, everywhere) for each in found):
        return node
    made: AnyNode = _Apart(everywhere, fresh).visit(copy.deepcopy(node))
    return made


def _inlined_in(node: ast.AST) -> Iterator[ast.ListComp | ast.SetComp | ast.DictComp]:
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, _INLINED):
            yield at
        pending += child_nodes(at)


def _targets(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> set[str]:
    """The variables of a comprehension."""
    found = [name for each in node.generators for name in ast.walk(each.target)]
    return {name.id for name in found if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}


def _identifiers(node: ast.AST) -> Counter[str]:
    """How often each name of a variable is written in some code."""
    found: Counter[str] = Counter()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found[each.id] += 1
        elif isinstance(each, ast.arg):
            found[each.arg] += 1
        elif isinstance(each, ast.Nonlocal | ast.Global):
            found.update(each.names)
    return found


def _shared(node: ast.ListComp | ast.SetComp | ast.DictComp, everywhere: Counter[str]) -> set[str]:
    """Its variables that stand outside of it as well, or that a function in it may read."""
    inner = [each for each in ast.walk(node) if isinstance(each, ast.Lambda | ast.GeneratorExp)]
    read = {name.id for each in inner for name in ast.walk(each) if isinstance(name, ast.Name)}
    here = _identifiers(node)
    return {name for name in _targets(node) if name in read or everywhere[name] > here[name]}


class _Apart(ast.NodeTransformer):
    """Gives the variables other names, in a tree that may be changed."""

    def __init__(self, everywhere: Counter[str], fresh: Callable[[str], str]) -> None:
        self._everywhere = everywhere
        self._fresh = fresh
        self._names: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        self.visit(node.args)  # its defaults
        own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        outer, self._names = self._names, {name: to for name, to in self._names.items() if name not in own}
        node.body = self.visit(node.body)
        self._names = outer
        return node

    def _visit_comprehension(self, node: _Comprehension) -> _Comprehension:
        first = node.generators[0]
        iterable = self.visit(first.iter)  # is evaluated outside
        own = _targets(node)
        shared: list[str] = [] if isinstance(node, ast.GeneratorExp) else sorted(_shared(node, self._everywhere))
        outer, new = self._names, {name: self._fresh(name) for name in shared}
        self._names = {**{name: to for name, to in outer.items() if name not in own}, **new}
        first.iter = ast.Constant(None)
        self.generic_visit(node)
        first.iter = iterable
        self._names = outer
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension
