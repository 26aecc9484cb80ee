"""Which variables are needed after a statement: a backward analysis over the structure of a function.

It errs on the side of "needed". Variables that nested functions see are not its business: they are always needed.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from stillgraph.source.scopes import imported_name
from stillgraph.source.tree import child_nodes

Names = Set[str]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Targets:
    """What is needed where control can go other than to the next statement."""

    on_break: Names = NONE
    on_continue: Names = NONE
    on_return: Names = NONE
    on_error: Names = NONE

    @property
    def by_exit(self) -> dict[str, Names]:
        return {"BREAK": self.on_break, "CONTINUE": self.on_continue, "RETURN": self.on_return}


class Liveness:
    """The variables needed around each statement of a function.

    Args:
        body: the function's statements.
        variables: its local variables.
        has_walrus: whether there may be named expressions in it.

    Attributes:
        after: id of a statement -> what is needed after it.
        head: id of a loop -> what is needed before each test of its condition.
        targets: id of a statement -> exit name -> what is needed where that exit leads.
    """

    def __init__(self, body: Sequence[ast.stmt], variables: Names, *, has_walrus: bool = True) -> None:
        self._variables = variables
        self._has_walrus = has_walrus
        self.after: dict[int, Names] = {}
        self.head: dict[int, Names] = {}
        self.targets: dict[int, dict[str, Names]] = {}
        self._statements: dict[type[ast.stmt], Callable[[Any, Names, Targets], Names]] = {
            ast.If: self._if, ast.While: self._while, ast.For: self._for, ast.With: self._with,
            ast.Try: self._try, ast.TryStar: self._try,
            ast.Return: self._return, ast.Raise: self._raise,
            ast.Break: lambda node, out, to: to.on_break, ast.Continue: lambda node, out, to: to.on_continue,
            ast.AugAssign: self._augmented, ast.Assign: self._assign, ast.AnnAssign: self._annotated,
            ast.FunctionDef: self._definition, ast.AsyncFunctionDef: self._definition, ast.ClassDef: self._definition,
            ast.Import: self._import, ast.ImportFrom: self._import,
        }
        self._block(body, NONE, Targets())

    def _block(self, statements: Sequence[ast.stmt], out: Names, to: Targets) -> Names:
        by_exit = to.by_exit
        for statement in reversed(statements):
            out = out | to.on_error
            self.after[id(statement)] = out
            self.targets[id(statement)] = by_exit
            handler = self._statements.get(type(statement), self._other)
            out = handler(statement, out, to)
        return out | to.on_error

    # ---- statements without blocks
    def _other(self, node: ast.stmt, out: Names, to: Targets) -> Names:
        return self._expression(node, out)

    def _return(self, node: ast.Return, out: Names, to: Targets) -> Names:
        return self._expression(node, to.on_return)

    def _raise(self, node: ast.Raise, out: Names, to: Targets) -> Names:
        return self._expression(node, to.on_error)

    def _assign(self, node: ast.Assign, out: Names, to: Targets) -> Names:
        for target in reversed(node.targets):
            out = self._target(target, out)
        return self._expression(node.value, out)

    def _annotated(self, node: ast.AnnAssign, out: Names, to: Targets) -> Names:
        if node.value is None:
            return out if isinstance(node.target, ast.Name) else out | self._reads(node.target)
        return self._expression(node.value, self._target(node.target, out))

    def _augmented(self, node: ast.AugAssign, out: Names, to: Targets) -> Names:
        if isinstance(node.target, ast.Name):
            out = out | ({node.target.id} & self._variables)
        else:
            out = out | self._reads(node.target)
        return self._expression(node.value, out)

    def _definition(self, node: Definition, out: Names, to: Targets) -> Names:
        out = out - {node.name}
        for decorator in node.decorator_list:
            out = out | self._reads(decorator)
        if isinstance(node, ast.ClassDef):
            return out | self._reads(*node.bases, *node.keywords)
        return out | self._reads(node.args, *([node.returns] if node.returns else []))

    def _import(self, node: ast.Import | ast.ImportFrom, out: Names, to: Targets) -> Names:
        return out - {imported_name(alias) for alias in node.names}

    # ---- statements with blocks
    def _if(self, node: ast.If, out: Names, to: Targets) -> Names:
        then = self._block(node.body, out, to)
        orelse = self._block(node.orelse, out, to)
        return self._expression(node.test, then | orelse)

    def _while(self, node: ast.While, out: Names, to: Targets) -> Names:
        after = self._block(node.orelse, out, to)
        head: Names = NONE
        while True:
            body = self._block(node.body, head, replace(to, on_break=out, on_continue=head))
            again = self._expression(node.test, body | after)
            if again <= head:
                break
            head = head | again
        self.head[id(node)] = head
        return head

    def _for(self, node: ast.For, out: Names, to: Targets) -> Names:
        after = self._block(node.orelse, out, to)
        head: Names = after
        while True:
            body = self._block(node.body, head, replace(to, on_break=out, on_continue=head))
            again = self._target(node.target, body)
            if again <= head:
                break
            head = head | again
        self.head[id(node)] = head
        return self._expression(node.iter, head)

    def _with(self, node: ast.With, out: Names, to: Targets) -> Names:
        inside = replace(to, on_error=to.on_error | out)        # a context manager may swallow an exception
        needed = self._block(node.body, out, inside)
        for item in reversed(node.items):
            if item.optional_vars is not None:
                needed = self._target(item.optional_vars, needed) | inside.on_error
            needed = self._expression(item.context_expr, needed)
        return needed

    def _try(self, node: ast.Try | ast.TryStar, out: Names, to: Targets) -> Names:
        if node.finalbody:
            leaving = out | to.on_break | to.on_continue | to.on_return | to.on_error
            cleanup = self._block(node.finalbody, leaving, to)
            to = Targets(cleanup, cleanup, cleanup, cleanup)
            out = cleanup
        handled: Names = to.on_error
        for handler in node.handlers:
            needed = self._block(handler.body, out, to)
            if handler.name:
                needed = needed - {handler.name}
            handled = handled | needed | (self._reads(handler.type) if handler.type else NONE)
        after = self._block(node.orelse, out, to)
        return self._block(node.body, after, replace(to, on_error=handled))

    # ---- expressions
    def _target(self, node: ast.expr, out: Names) -> Names:
        """What is needed before an assignment to the target, its value apart."""
        if isinstance(node, ast.Name):
            return out - {node.id}
        if isinstance(node, ast.Starred):
            return self._target(node.value, out)
        if isinstance(node, ast.Tuple | ast.List):
            for element in reversed(node.elts):
                out = self._target(element, out)
            return out
        return out | self._reads(node)

    def _expression(self, node: ast.AST, out: Names) -> Names:
        if self._has_walrus:
            out = out - {walrus.target.id for walrus in certain_walruses(node)}
        return out | self._reads(node)

    def _reads(self, *nodes: ast.AST) -> Names:
        found = set()
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Name):
                if not isinstance(node.ctx, ast.Store):
                    found.add(node.id)
            elif not isinstance(node, ast.Lambda):
                pending += child_nodes(node)
            else:
                pending += [value for value in (*node.args.defaults, *node.args.kw_defaults) if value]
        return found & self._variables


def certain_walruses(node: ast.AST) -> list[ast.NamedExpr]:
    """The named expressions that are evaluated whenever the expression is."""
    found: list[ast.NamedExpr] = []
    pending: list[ast.AST] = [node]
    while pending:
        at = pending.pop()
        match at:
            case ast.NamedExpr():
                found.append(at)
            case ast.BoolOp():
                pending.append(at.values[0])
                continue
            case ast.IfExp():
                pending.append(at.test)
                continue
            case ast.Compare():
                pending += [at.left, at.comparators[0]]
                continue
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() | ast.Assert():
                continue
        pending += child_nodes(at)
    return found
