"""Whose variable a name is: the scopes of a function and of everything nested in it."""
from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from enum import Enum, auto
from types import CodeType

FunctionNode = ast.FunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

INLINES_COMPREHENSIONS = not any(
    isinstance(each, CodeType) for each in compile("[x for x in y]", "<comprehension>", "eval").co_consts)


class Kind(Enum):
    """What opens a scope."""

    FUNCTION = auto()
    CLASS = auto()
    COMPREHENSION = auto()      # runs at once, so its reads are reads of the function around it
    GENERATOR = auto()          # a generator expression runs later, like a nested function


@dataclass(eq=False)
class Scope:
    """The names of one function, class body or comprehension, as the user wrote it.

    Attributes:
        params: the parameters, in order.
        bound: every variable of this scope, parameters included, in the order of first binding.
        rebound: the variables that are assigned other than as parameters.
        deleted: the variables that are the target of a `del`.
        captured: own variables that a nested function, class or generator expression reads or writes.
        nested_writes: own variables that a nested function assigns.
        free: names that belong to a scope further out, or to the module.
        free_writes: those of them that are assigned here or further in.
    """

    kind: Kind
    parent: Scope | None
    params: tuple[str, ...] = ()
    bound: dict[str, None] = field(default_factory=dict)
    rebound: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    globals: set[str] = field(default_factory=set)
    nonlocals: dict[str, None] = field(default_factory=dict)
    captured: set[str] = field(default_factory=set)
    nested_writes: set[str] = field(default_factory=set)
    free: set[str] = field(default_factory=set)
    free_writes: set[str] = field(default_factory=set)
    is_generator: bool = False
    children: list[Scope] = field(default_factory=list)

    def bind(self, name: str) -> None:
        """Record that a statement of this scope assigns the name."""
        if name in self.globals:
            return
        if name in self.nonlocals:
            self.free_writes.add(name)
            return
        self.bound.setdefault(name)
        self.rebound.add(name)

    def outlives(self, name: str) -> bool:
        """Whether something other than the statements of this function can see the variable."""
        return name in self.captured or name in self.nonlocals

    def owns(self, name: str) -> bool:
        """Whether the name is a variable of this scope or of a function around it that is rewritten with it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.globals:
                return False
            if name in scope.bound and (scope.kind is not Kind.CLASS or scope is self):
                return True
            scope = scope.parent
        return False


@dataclass
class Scopes:
    """The scopes of a function and what its text contains.

    Attributes:
        of: id of a function, lambda, class or comprehension node -> its scope.
        names: every identifier in the text.
        node_types: the types of node in the text.
        callees: dotted names that are called and do not start at a variable of the function.
    """

    of: dict[int, Scope] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    node_types: set[type[ast.AST]] = field(default_factory=set)
    callees: dict[tuple[str, ...], None] = field(default_factory=dict)


def steady_names(scopes: Scopes) -> set[str]:
    """The variables that are assigned by the statements of one function only."""
    functions = [scope for scope in scopes.of.values() if scope.kind is Kind.FUNCTION]
    shared = set().union(*(scope.nested_writes | scope.nonlocals.keys() | scope.globals for scope in functions))
    return set().union(*(scope.bound for scope in functions)) - shared


def analyse(node: FunctionNode, temporaries: Set[str] = frozenset()) -> Scopes:
    """Find the scopes of a function; its own decorators, defaults and annotations do not count.

    Args:
        node: the function.
        temporaries: names that are not variables of the user's.
    """
    found = Scopes()
    collector = _Collector(found, temporaries)
    collector.function(node, None)
    _resolve(found.of[id(node)])
    for scope, path in collector.calls:
        if not scope.owns(path[0]):
            found.callees.setdefault(path)
    return found


def dotted(node: ast.expr) -> tuple[str, ...] | None:
    """`a.b.c` as a tuple of names, or None for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return (node.id, *reversed(parts))


def parameters_of(args: ast.arguments) -> Iterator[ast.arg]:
    """All parameters, in the order of the frame's local variables."""
    yield from args.posonlyargs
    yield from args.args
    yield from args.kwonlyargs
    if args.vararg:
        yield args.vararg
    if args.kwarg:
        yield args.kwarg


class _Collector:
    """Walks a function once. Methods are chosen by the type of node; other nodes are walked through."""

    def __init__(self, found: Scopes, temporaries: Set[str]) -> None:
        self.found = found
        self.temporaries = temporaries
        self.calls: list[tuple[Scope, tuple[str, ...]]] = []
        self.handlers = {
            ast.Name: self._name, ast.NamedExpr: self._walrus, ast.Call: self._call,
            ast.FunctionDef: self._def, ast.AsyncFunctionDef: self._def, ast.Lambda: self._lambda,
            ast.ClassDef: self._class, ast.ListComp: self._comprehension, ast.SetComp: self._comprehension,
            ast.DictComp: self._comprehension, ast.GeneratorExp: self._comprehension,
            ast.Global: self._global, ast.Nonlocal: self._nonlocal, ast.ExceptHandler: self._handler,
            ast.Import: self._import, ast.ImportFrom: self._import, ast.MatchAs: self._capture,
            ast.MatchStar: self._capture, ast.MatchMapping: self._capture,
            ast.Yield: self._yield, ast.YieldFrom: self._yield,
        }

    def visit(self, node: ast.AST, scope: Scope) -> None:
        kind = type(node)
        self.found.node_types.add(kind)
        handler = self.handlers.get(kind)
        if handler is not None:
            handler(node, scope)  # type: ignore[operator]  # by the node's class
        else:
            self.children(node, scope)

    def children(self, node: ast.AST, scope: Scope) -> None:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                self.each(value, scope)
            elif isinstance(value, ast.AST):
                self.visit(value, scope)

    def each(self, nodes: Iterable[object], scope: Scope) -> None:
        for node in nodes:
            if isinstance(node, ast.AST):
                self.visit(node, scope)

    def open(self, kind: Kind, node: ast.AST, parent: Scope | None) -> Scope:
        scope = Scope(kind, parent)
        if parent is not None:
            parent.children.append(scope)
        self.found.of[id(node)] = scope
        return scope

    def function(self, node: FunctionNode | ast.AsyncFunctionDef, parent: Scope | None) -> None:
        self.found.node_types.add(type(node))
        scope = self.open(Kind.FUNCTION, node, parent)
        scope.params = tuple(arg.arg for arg in parameters_of(node.args))
        scope.bound = dict.fromkeys(scope.params)
        self.found.names.update(scope.params)
        if isinstance(node, ast.Lambda):
            self.visit(node.body, scope)
        else:
            self.each(node.body, scope)

    def _def(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        self.found.names.add(node.name)
        if node.name not in self.temporaries:
            scope.bind(node.name)
        self.each(node.decorator_list, scope)
        self._signature(node.args, scope)
        if node.returns is not None:
            self.visit(node.returns, scope)
        self.each(getattr(node, "type_params", ()), scope)
        self.function(node, scope)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> None:
        self._signature(node.args, scope)
        self.function(node, scope)

    def _signature(self, args: ast.arguments, scope: Scope) -> None:
        self.each(args.defaults, scope)
        self.each(args.kw_defaults, scope)
        self.each((arg.annotation for arg in parameters_of(args)), scope)

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        self.found.names.add(node.name)
        scope.bind(node.name)
        self.each(node.decorator_list, scope)
        self.each(node.bases, scope)
        self.each(node.keywords, scope)
        self.each(getattr(node, "type_params", ()), scope)
        self.each(node.body, self.open(Kind.CLASS, node, scope))

    def _comprehension(self, node: Comprehension, scope: Scope) -> None:
        self.visit(node.generators[0].iter, scope)
        kind = Kind.GENERATOR if isinstance(node, ast.GeneratorExp) else Kind.COMPREHENSION
        inner = self.open(kind, node, scope)
        for position, generator in enumerate(node.generators):
            self.visit(generator.target, inner)
            if position:
                self.visit(generator.iter, inner)
            self.each(generator.ifs, inner)
        if isinstance(node, ast.DictComp):
            self.visit(node.key, inner)
            self.visit(node.value, inner)
        else:
            self.visit(node.elt, inner)

    def _name(self, node: ast.Name, scope: Scope) -> None:
        if node.id in self.temporaries:
            return
        self.found.names.add(node.id)
        if isinstance(node.ctx, ast.Load):
            scope.reads.add(node.id)
        else:
            scope.bind(node.id)
            if isinstance(node.ctx, ast.Del):
                scope.deleted.add(node.id)

    def _walrus(self, node: ast.NamedExpr, scope: Scope) -> None:
        self.found.names.add(node.target.id)
        holder = scope
        while holder.kind in (Kind.COMPREHENSION, Kind.GENERATOR) and holder.parent is not None:
            holder = holder.parent
        holder.bind(node.target.id)
        if holder is not scope:
            scope.reads.add(node.target.id)
        self.visit(node.value, scope)

    def _call(self, node: ast.Call, scope: Scope) -> None:
        path = dotted(node.func)
        if path is not None:
            self.calls.append((scope, path))
        self.children(node, scope)

    def _global(self, node: ast.Global, scope: Scope) -> None:
        self.found.names.update(node.names)
        scope.globals.update(node.names)

    def _nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        self.found.names.update(node.names)
        scope.nonlocals.update(dict.fromkeys(node.names))

    def _handler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name:
            self.found.names.add(node.name)
            scope.bind(node.name)
        self.children(node, scope)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            name = imported_name(alias)
            self.found.names.add(name)
            scope.bind(name)

    def _capture(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping, scope: Scope) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.found.names.add(name)
            scope.bind(name)
        self.children(node, scope)

    def _yield(self, node: ast.Yield | ast.YieldFrom, scope: Scope) -> None:
        scope.is_generator = True
        self.children(node, scope)


def imported_name(alias: ast.alias) -> str:
    """The variable that an import binds: `a` for `import a.b`."""
    return alias.asname or alias.name.partition(".")[0]


def _resolve(scope: Scope) -> set[str]:
    """Fill in `captured`, `nested_writes` and `free`, innermost scope first.

    Returns:
        Those free names that are reached from a nested function, class or generator expression.
    """
    captured: set[str] = set()
    used = scope.reads | set(scope.nonlocals)
    writes = set(scope.free_writes)
    for child in scope.children:
        captured |= _resolve(child)
        used |= child.free
        writes |= child.free_writes
    if scope.kind is Kind.CLASS:            # names of a class body are not seen from its methods
        scope.free = used
        scope.free_writes = writes
        return used
    own = scope.bound.keys()
    scope.captured = captured & own
    scope.nested_writes = writes & own
    hidden = own | scope.globals
    scope.free = used - hidden
    scope.free_writes = writes - own
    return captured - hidden if scope.kind is Kind.COMPREHENSION else set(scope.free)
