"""The machine that the rewrite steps plug into: it walks a function and builds the rewritten one beside it.

The user's syntax tree is never changed (it is cached and shared); nodes that need no rewriting are used as they are.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from stillgraph.core.location import Location
from stillgraph.source import build
from stillgraph.source.build import Located
from stillgraph.source.callees import Callee
from stillgraph.source.facts import Facts, Summary
from stillgraph.source.places import (
    BLOCK,
    ExitVariable,
    ExpressionHandler,
    Frame,
    Function,
    Place,
    Request,
    Rewritten,
    StatementHandler,
    Step,
)
from stillgraph.source.scopes import INLINES_COMPREHENSIONS, Kind, Scope, dotted
from stillgraph.source.tree import AnyNode, contains, walrus_names, with_fields

MOST_EXITS = 40
"""Each statement with an exit nests the rest of its block one deeper, and Python and its stack allow for 100 levels."""


class Rewriter:
    """Rewrites one function and those nested in it.

    Args:
        request: what to rewrite.
        steps: the steps to apply.
    """

    def __init__(self, request: Request, steps: Iterable[Step]) -> None:
        self.names = request.names
        self.watched = request.watched
        self.tries = request.tries
        self.twins = request.twins
        self.enabled: set[str] = set()
        self._request = request
        self._expressions: dict[type[ast.AST], ExpressionHandler] = {}
        self._statements: dict[type[ast.AST], StatementHandler] = {}
        for step in steps:
            self.enabled.add(step.name)
            self._expressions.update(step.expressions)
            self._statements.update(step.statements)
        types = request.scopes.node_types
        self.has_walrus = ast.NamedExpr in types
        self._has_yield = ast.Yield in types or ast.YieldFrom in types
        self._has_lookers = bool({Callee.LOCALS, Callee.EVALUATES} & set(request.callees.values()))
        self.frame = Frame()
        self.function: Function             # both set by `inside`
        self.name_scope: Scope

    # ---- names and operators
    def operator(self, name: str, at: Located) -> ast.Name:
        """A reference to an operator."""
        return build.load(self.names.operator(name), at)

    def op(self, name: str, args: Sequence[ast.expr], at: Located, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
        """A call of an operator."""
        return build.call(self.operator(name, at), args, at, keywords)

    def mangled(self, name: str) -> str:
        """An attribute's real name: `__x` in a class `C` is `_C__x`."""
        prefix = (self.function.class_name or "").lstrip("_")
        return f"_{prefix}{name}" if prefix and name.startswith("__") and not name.endswith("__") else name

    def callee(self, node: ast.expr) -> Callee:
        """What is known about the function that a call calls."""
        path = dotted(node)
        if path is None or self.name_scope.owns(path[0]):
            return Callee.ORDINARY
        return self._request.callees.get(path, Callee.ORDINARY)

    @property
    def scope(self) -> Scope:
        return self.function.scope

    @property
    def facts(self) -> Facts:
        return self.function.facts

    def scope_of(self, node: ast.AST) -> Scope:
        return self._request.scopes.of[id(node)]

    def location(self, at: Located) -> Location:
        name = self.function.node.name if isinstance(self.function.node, ast.FunctionDef) else "<lambda>"
        return Location(self._request.file, at.lineno, at.col_offset, at.end_col_offset, name)

    def bind(self, name: str) -> None:
        """Record that the frame at hand assigns one of the user's variables."""
        if name in self.scope.globals:
            self.frame.globals.setdefault(name)
        elif name not in self.names.fresh_names:
            self.frame.bound.setdefault(name)

    # ---- expressions
    def expr(self, node: ast.expr) -> ast.expr:
        """The rewritten expression."""
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is ast.Load:  # type: ignore[attr-defined]  # a Name
                return self.read(node)  # type: ignore[arg-type]  # a Name
            self.bind(node.id)  # type: ignore[attr-defined]  # a Name
            return node
        if kind is ast.Constant:
            return node
        handler = self._expressions.get(kind)
        return self.children(node) if handler is None else handler(node, self)

    def may_be_unset(self, node: ast.AST) -> bool:
        """Whether a name may have no value where it stands, as only the run knows."""
        return id(node) in self._request.unset_reads

    def read(self, node: ast.Name) -> ast.expr:
        """A read of a variable; `t` becomes `loaded(t, "t")` where it may have no value.

        In a generated function, where Python would say that another function has no value for its variable, it becomes
        `own(lambda: t, "t")`.
        """
        read = node if isinstance(node.ctx, ast.Load) else build.load(node.id, node)
        if not self.may_be_unset(node):
            return read
        name = build.constant(self.mangled(node.id), node)
        if not self._is_own(node.id):
            return self.op("loaded", [read, name, build.constant(True, node)], node)
        if self.frame.in_block:
            return self.op("own", [build.deferred(read, ()), name], node)
        return self.op("loaded", [read, name], node)

    def _is_own(self, name: str) -> bool:
        """Whether Python finds a variable in the frame of the code that reads it."""
        inlined = INLINES_COMPREHENSIONS and self.name_scope.kind is Kind.COMPREHENSION
        return name in self.scope.bound and (inlined or self.name_scope is self.scope)

    def exprs(self, nodes: Iterable[ast.expr]) -> list[ast.expr]:
        return [self.expr(node) for node in nodes]

    def children(self, node: AnyNode) -> AnyNode:
        """The node with its child expressions rewritten; the node itself if none of them changes."""
        changes: dict[str, Any] = {}
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                made = [self._child(each) for each in value]
                if any(new is not old for new, old in zip(made, value, strict=True)):
                    changes[name] = made
            elif isinstance(value, ast.AST):
                new = self._child(value)
                if new is not value:
                    changes[name] = new
        return with_fields(node, **changes) if changes else node

    def _child(self, value: Any) -> Any:
        if isinstance(value, ast.expr):
            return self.expr(value)
        if isinstance(value, ast.keyword | ast.withitem | ast.arguments):
            return self.children(value)
        return value

    def can_defer(self, *nodes: ast.expr) -> bool:
        """Whether expressions may be moved into a generated function."""
        if self._has_yield and any(contains(node, ast.Yield, ast.YieldFrom) for node in nodes):
            return False
        if self.has_walrus and self.frame.prelude is None:
            return not any(contains(node, ast.NamedExpr) for node in nodes)
        return not (self._has_lookers and any(map(self._looks_at_variables, nodes)))

    def looks_at_variables(self, node: ast.Call) -> bool:
        """Whether a call is `locals()`, `eval(text)` or the like, which see the variables of the frame they are in."""
        callee, count = self.callee(node.func), len(node.args) + len(node.keywords)
        return (callee is Callee.LOCALS and count == 0) or (callee is Callee.EVALUATES and count == 1)

    def _looks_at_variables(self, node: ast.AST) -> bool:
        return any(isinstance(inner, ast.Call) and self.looks_at_variables(inner) for inner in ast.walk(node))

    def lazy(self, node: ast.expr, stem: str) -> ast.expr:
        """A function without parameters that evaluates an expression, which `can_defer` allows to be moved."""
        return self.defer(lambda: self.expr(node), node, stem)

    def defer(self, make: Callable[[], ast.expr], at: ast.expr, stem: str, params: Sequence[str] = (),
              first: Sequence[ast.stmt] = ()) -> ast.expr:
        """A function that evaluates an expression: a lambda, or the name of a definition where a lambda will not do.

        Args:
            make: builds the expression; called once.
            at: the user's expression.
            stem: what to call a definition.
            params: the function's parameters.
            first: statements before it, of variables of the generated function.
        """
        inner = Frame(prelude=None if self.frame.prelude is None else [], in_block=True)
        with self.inner_frame(inner):
            body = make()
        if not inner.prelude and not inner.bound and not first:
            return build.deferred(body, params)
        assert self.frame.prelude is not None, "can_defer was not asked"
        made = self._definition(stem, params, inner, [*first, build.give_back(body, at)], at)
        self.frame.prelude.append(made)
        return build.load(made.name, at)

    def evaluation(self, node: ast.expr, stem: str) -> ast.FunctionDef:
        """A definition that evaluates an expression."""
        with self.inner_frame(Frame(prelude=[], in_block=True)) as inner:
            body = self.expr(node)
        return self._definition(stem, (), inner, [build.give_back(body, node)], node)

    def _definition(self, stem: str, params: Sequence[str], inner: Frame,
                    body: list[ast.stmt], at: Located) -> ast.FunctionDef:
        statements = [*self.declarations(inner, at), *(inner.prelude or ()), *body]
        return build.function(self.names.helper(stem), build.parameters(params, at), statements, at)

    def holds(self, name: str) -> bool:
        """Whether a name means a variable of the function at hand, and not one of a comprehension in it."""
        scope = self.name_scope
        while scope is not self.scope and scope.parent is not None:
            if name in scope.bound:
                return False
            scope = scope.parent
        return name in self.scope.bound

    @contextmanager
    def inside(self, function: Function) -> Iterator[None]:
        """Rewrite another function of the user's for a while, in a frame of its own."""
        outer = getattr(self, "function", None), getattr(self, "name_scope", None)
        self.function, self.name_scope = function, function.scope
        with self.inner_frame(Frame()):
            yield
        self.function, self.name_scope = outer  # type: ignore[assignment]  # as they were

    @contextmanager
    def inside_comprehension(self, scope: Scope) -> Iterator[None]:
        """Rewrite what a comprehension that stays Python evaluates in its own scope: definitions have no room there."""
        outer, self.name_scope = self.name_scope, scope
        with self.inner_frame(replace(self.frame, prelude=None)):
            yield
        self.name_scope = outer

    @contextmanager
    def inner_frame(self, frame: Frame) -> Iterator[Frame]:
        """Build into another frame for a while."""
        outer, self.frame = self.frame, frame
        try:
            yield frame
        finally:
            self.frame = outer

    def declarations(self, frame: Frame, at: Located) -> list[ast.stmt]:
        """The `nonlocal` and `global` statements of a generated function."""
        made: list[ast.stmt] = []
        if frame.bound:
            made.append(ast.Nonlocal(list(frame.bound), **build.span(at)))
        if frame.globals:
            made.append(ast.Global(list(frame.globals), **build.span(at)))
        return made

    # ---- statements
    def statements(self, nodes: Sequence[ast.stmt], place: Place) -> list[ast.stmt]:
        """The rewritten statements of one block."""
        cut = self._cut(nodes, place) if len(nodes) > MOST_EXITS else 0
        return self._in_two_parts(nodes[:cut], nodes[cut:], place) if cut else self._statements_of(nodes, place)

    def _cut(self, nodes: Sequence[ast.stmt], place: Place) -> int:
        """Where to cut a block in two so that the first part has no more than so many statements with exits."""
        if place.exits_stay or (self.scope.is_generator and not place.in_block):
            return 0
        exits = 0
        for position, node in enumerate(nodes):
            exits += bool(self.facts.summary(node).exits)
            if exits > MOST_EXITS:
                return position
        return 0

    def _in_two_parts(self, first: Sequence[ast.stmt], second: Sequence[ast.stmt], place: Place) -> list[ast.stmt]:
        """A long block, with the exit of its first part in a variable, as for a statement that stays Python."""
        exit_ = ExitVariable(self.names)
        made = self._statements_of(first, replace(place, exit=exit_))
        start = build.assign(exit_.name, build.constant(None, first[0]), first[0])
        more, value = self.continued(build.load(exit_.name, second[0]), second)
        return [start, *made, *more, *self.leave(value, place)]

    def _statements_of(self, nodes: Sequence[ast.stmt], place: Place) -> list[ast.stmt]:
        outer, made = self.frame.prelude, list[ast.stmt]()
        for position, node in enumerate(nodes):
            self.frame.prelude = prelude = list[ast.stmt]()
            handler = self._statements.get(type(node), _as_it_is)
            done = handler(node, nodes[position + 1:], place, self)
            made += prelude
            made += done.statements
            if done.took_rest:
                break
        self.frame.prelude = outer
        return made

    def stays(self, summary: Summary, place: Place) -> bool:
        """Whether a compound statement has to stay a Python statement."""
        if summary.yields:
            return True
        return bool(summary.exits) and (place.exits_stay or (self.scope.is_generator and not place.in_block))

    def block(self, stem: str, nodes: Sequence[ast.stmt], at: Located,
              params: Sequence[str] = (), target: ast.expr | None = None) -> ast.FunctionDef:
        """A generated function that runs statements and returns how they were left.

        Args:
            stem: what to call it.
            nodes: the user's statements.
            at: the statement they belong to.
            params: its parameters.
            target: where to store its one parameter first.
        """
        name = self.names.helper(stem)
        with self.inner_frame(Frame(prelude=[], in_block=True)) as frame:
            body = self.store(target, params[0]) if target is not None else []
            body += self.statements(nodes, BLOCK)
        declared = self.declarations(frame, nodes[0] if nodes else at)
        return build.function(name, build.parameters(params, at), declared + body, at)

    def stores_by_python(self, target: ast.expr) -> bool:
        """Whether a target is a local variable, so that Python's own assignment will do."""
        return isinstance(target, ast.Name) and target.id not in self.scope.globals

    def store(self, target: ast.expr, name: str) -> list[ast.stmt]:
        """Statements that store a temporary variable in any target."""
        value = build.load(name, target)
        return self.statements([ast.Assign([target], value, None, **build.span(target))], BLOCK)

    def leave(self, value: ast.expr, place: Place) -> list[ast.stmt]:
        """Statements that end a block with an exit that has been computed (None where it just goes on)."""
        if place.exit is not None:
            return [build.assign(place.exit.name, value, value)]
        if place.in_block:
            return [build.give_back(value, value)]
        return [build.give_back(self.op("result_of", [value], value), value)]

    def continued(self, leaving: ast.expr, rest: Sequence[ast.stmt]) -> tuple[list[ast.stmt], ast.expr]:
        """Definitions and an expression that run the rest of a block unless there is an exit."""
        if not rest:
            return [], leaving
        block = self.block("rest", rest, rest[0])
        live = self.facts.live_after(rest)
        keywords = self.keeps(self.facts.summary_of(rest).assigned, live, leaving)
        return [block], self.op("continue_", [leaving, build.load(block.name, leaving)], leaving, keywords)

    def keeps(self, assigned: Iterable[str], live: Iterable[str], at: Located) -> list[ast.keyword]:
        """The `keeps=` and `drops=` arguments of an operator that runs blocks."""
        assigned = frozenset(assigned)
        kept, dropped = self.facts.kept_and_dropped(assigned, assigned if self._has_lookers else live)
        return [build.keyword(name, build.names_tuple(map(self.mangled, values), at))
                for name, values in (("keeps", kept), ("drops", dropped)) if values]

    def keeps_of(self, at: ast.expr, *deferred: ast.expr) -> list[ast.keyword]:
        """The `keeps=` argument of an operator that may evaluate some expressions: what these assign by `:=`."""
        found = set().union(*map(walrus_names, deferred)) - self.scope.globals
        names = sorted(map(self.mangled, found))
        return [build.keyword("keeps", build.names_tuple(names, at))] if names else []



def _as_it_is(node: ast.stmt, rest: Sequence[ast.stmt], place: Place, to: Rewriter) -> Rewritten:
    """A statement of which only the expressions are rewritten."""
    return Rewritten([to.children(node)])
