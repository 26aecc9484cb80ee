"""Which reads may find a variable without a value: a forward analysis over the structure of a function.

It errs on the side of "may". Python itself raises where a variable has no value whatever the run decides; this is about
those that one arm of an `if` assigns and the other does not.
"""
from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from stillgraph.source.liveness import certain_walruses
from stillgraph.source.scopes import Comprehension, FunctionNode, Kind, Scope, Scopes, imported_name, parameters_of

Names = frozenset[str]
_ALL: None = None
"""Of a place that control never comes to: every variable has a value there."""


def unset_reads(node: FunctionNode, scopes: Scopes) -> frozenset[int]:
    """The ids of the nodes that read a variable, or delete it, which may have no value there."""
    if not scopes.node_types & _DECIDING:
        return frozenset()
    found: set[int] = set()
    _Function(scopes, found).run(node, frozenset())
    return frozenset(found)


_DECIDING = {
    ast.If, ast.While, ast.For, ast.Try, ast.TryStar, ast.With, ast.Match, ast.IfExp, ast.BoolOp, ast.Compare,
    ast.Assert,
}


class _Function:
    """One function, and those in it.

    Args:
        scopes: of everything in the text.
        found: where to note the reads.
    """

    def __init__(self, scopes: Scopes, found: set[int]) -> None:
        self._scopes = scopes
        self._found = found
        everything = scopes.of.values()
        self._deleted = frozenset(name for scope in everything for name in scope.deleted)
        self._unsteady = self._deleted & {name for scope in everything for name in scope.nested_writes}
        self._breaks: list[list[Names | None]] = []
        self._statements = {
            ast.If: self._if, ast.While: self._while, ast.For: self._for, ast.With: self._with, ast.Try: self._try,
            ast.TryStar: self._try,
            ast.Return: self._leaving, ast.Raise: self._leaving, ast.Continue: self._leaving, ast.Break: self._break,
            ast.Assign: self._assign, ast.AnnAssign: self._annotated, ast.AugAssign: self._augmented,
            ast.Delete: self._delete, ast.FunctionDef: self._definition, ast.AsyncFunctionDef: self._definition,
            ast.ClassDef: self._class, ast.Import: self._import, ast.ImportFrom: self._import,
        }

    def run(self, node: FunctionNode, outside: Names) -> None:
        """Look at a function; `outside` are the variables of those around it that have a value whenever it runs."""
        self._scope: Scope = self._scopes.of[id(node)]
        known = (outside - self._scope.bound.keys()) | {arg.arg for arg in parameters_of(node.args)}
        if isinstance(node, ast.Lambda):
            self._reads(node.body, self._scope, known)
        else:
            self._block(node.body, known)

    # ---- statements
    def _block(self, statements: Iterable[ast.stmt], known: Names | None) -> Names | None:
        for statement in statements:
            if known is _ALL:
                return _ALL
            handler = self._statements.get(type(statement), self._other)
            known = handler(statement, known)  # type: ignore[operator]  # by the node's class
        return known

    def _other(self, node: ast.stmt, known: Names) -> Names:
        return self._expression(node, known)

    def _leaving(self, node: ast.stmt, known: Names) -> None:
        self._expression(node, known)

    def _break(self, node: ast.Break, known: Names) -> None:
        self._breaks[-1].append(known)

    def _assign(self, node: ast.Assign, known: Names) -> Names:
        known = self._expression(node.value, known)
        for target in node.targets:
            known = self._target(target, known)
        return known

    def _annotated(self, node: ast.AnnAssign, known: Names) -> Names:
        if node.value is None:
            return known if isinstance(node.target, ast.Name) else self._expression(node.target, known)
        return self._target(node.target, self._expression(node.value, known))

    def _augmented(self, node: ast.AugAssign, known: Names) -> Names:
        if isinstance(node.target, ast.Name):
            self._read(node.target, self._scope, known)
        return self._target(node.target, self._expression(node.value, known))

    def _delete(self, node: ast.Delete, known: Names) -> Names:
        for target in node.targets:
            known = self._expression(target, known)
            known -= {each.id for each in ast.walk(target) if isinstance(each, ast.Name) and _is_deleted(each)}
        return known

    def _import(self, node: ast.Import | ast.ImportFrom, known: Names) -> Names:
        return known | {imported_name(alias) for alias in node.names}

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef, known: Names) -> Names:
        for each in (*node.decorator_list, node.args):
            self._expression(each, known)
        if isinstance(node, ast.FunctionDef):
            self._nested(node, self._scope, known | {node.name})
        return known | {node.name}

    def _class(self, node: ast.ClassDef, known: Names) -> Names:
        for each in (*node.decorator_list, *node.bases, *node.keywords, *node.body):
            self._reads(each, self._scopes.of[id(node)], known)
        return known | {node.name}

    # ---- statements with blocks
    def _if(self, node: ast.If, known: Names) -> Names | None:
        known = self._expression(node.test, known)
        return _both(self._block(node.body, known), self._block(node.orelse, known))

    def _while(self, node: ast.While, known: Names) -> Names | None:
        head = self._expression(node.test, known - self._lost_in(node.body))
        goes_on = not (isinstance(node.test, ast.Constant) and node.test.value)
        return self._loop(node, head, head if goes_on else _ALL)

    def _for(self, node: ast.For, known: Names) -> Names | None:
        head = self._expression(node.iter, known) - self._lost_in(node.body)
        return self._loop(node, self._target(node.target, head), head)

    def _loop(self, node: ast.While | ast.For, inside: Names, behind: Names | None) -> Names | None:
        self._breaks.append([])
        self._block(node.body, inside)
        left = self._breaks.pop()
        behind = self._block(node.orelse, behind)
        for each in left:
            behind = _both(behind, each)
        return behind

    def _with(self, node: ast.With, known: Names) -> Names:
        for item in node.items:
            known = self._expression(item.context_expr, known)
            if item.optional_vars is not None:
                known = self._target(item.optional_vars, known)
        inside = self._block(node.body, known)
        left = known - self._lost_in(node.body)         # a context manager may swallow an exception
        return left if inside is _ALL else left & inside

    def _try(self, node: ast.Try | ast.TryStar, known: Names) -> Names | None:
        somewhere = known - self._lost_in(node.body)
        behind = self._block(node.orelse, self._block(node.body, known))
        for handler in node.handlers:
            inside = somewhere if handler.type is None else self._expression(handler.type, somewhere)
            named = frozenset({handler.name} if handler.name else ())
            left = self._block(handler.body, inside | named)
            behind = _both(behind, left if left is _ALL else left - named)
        if not node.finalbody:
            return behind
        handled = [each for handler in node.handlers for each in handler.body]
        self._block(node.finalbody, somewhere - self._lost_in([*handled, *node.orelse, *node.handlers]))
        return self._block(node.finalbody, behind)

    def _lost_in(self, statements: Sequence[ast.AST]) -> Names:
        """The variables that may have no value any more once some of these statements have run."""
        lost: set[str] = set()
        for each in (inner for statement in statements for inner in ast.walk(statement)):
            if isinstance(each, ast.Name) and _is_deleted(each):
                lost.add(each.id)
            elif isinstance(each, ast.ExceptHandler) and each.name:
                lost.add(each.name)
        return frozenset(lost)

    # ---- expressions
    def _target(self, node: ast.expr, known: Names) -> Names:
        """What has a value behind an assignment to the target."""
        if isinstance(node, ast.Name):
            return known | {node.id}
        if isinstance(node, ast.Starred):
            return self._target(node.value, known)
        if isinstance(node, ast.Tuple | ast.List):
            for element in node.elts:
                known = self._target(element, known)
            return known
        return self._expression(node, known)

    def _expression(self, node: ast.AST, known: Names) -> Names:
        self._reads(node, self._scope, known)
        return known | {walrus.target.id for walrus in certain_walruses(node)}

    def _reads(self, node: ast.AST, scope: Scope, known: Names) -> None:
        """Note what is read in an expression, or in the statements of a class."""
        match node:
            case ast.Name():
                if not isinstance(node.ctx, ast.Store):
                    self._read(node, scope, known)
                return
            case ast.Lambda():
                self._reads(node.args, scope, known)
                self._nested(node, scope, known)
                return
            case ast.FunctionDef():
                self._nested(node, scope, known)
                return
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, scope, known)
                return
        for child in ast.iter_child_nodes(node):
            self._reads(child, scope, known)

    def _comprehension(self, node: Comprehension, scope: Scope, known: Names) -> None:
        inner = self._scopes.of[id(node)]
        first, *others = node.generators
        self._reads(first.iter, scope, known)
        inside = known | inner.bound.keys()
        parts: list[ast.AST] = [*others, *first.ifs]
        parts += [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in parts:
            self._reads(part, inner, inside)

    def _nested(self, node: FunctionNode, scope: Scope, known: Names) -> None:
        """A function inside: what has a value where it is defined has one when it runs, unless that is deleted."""
        _Function(self._scopes, self._found).run(node, known - self._deleted)

    def _read(self, node: ast.Name, scope: Scope, known: Names) -> None:
        if scope.kind is Kind.CLASS and node.id in scope.bound:  # Python looks for it in the namespace of the class
            return
        if (node.id not in known or node.id in self._unsteady) and scope.owns(node.id):
            self._found.add(id(node))


def _both(left: Names | None, right: Names | None) -> Names | None:
    if left is _ALL or right is _ALL:
        return right if left is _ALL else left
    return left & right


def _is_deleted(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Del)
