"""What the statements of one function assign, how control leaves them, and which variables are needed after them."""
from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from stillgraph.source.liveness import Liveness
from stillgraph.source.scopes import FunctionNode, Scope, imported_name
from stillgraph.source.tree import child_nodes, walrus_names

Loop = ast.While | ast.For
Try = ast.Try | ast.TryStar


class Exit(Enum):
    """A way for control to leave a statement other than at its end."""

    BREAK = auto()
    CONTINUE = auto()
    RETURN = auto()


@dataclass(frozen=True)
class Summary:
    """What a statement can do to the function around it.

    Attributes:
        assigned: the variables it binds or deletes.
        exits: the ways in which control can leave it.
        yields: whether it contains a `yield` of this function.
    """

    assigned: frozenset[str]
    exits: frozenset[Exit]
    yields: bool


NOTHING = Summary(frozenset(), frozenset(), False)


class Facts:
    """Facts about one function (not about those nested in it).

    Args:
        node: the function.
        scope: its scope.
        has_walrus: whether there may be named expressions in it.
    """

    def __init__(self, node: FunctionNode, scope: Scope, *, has_walrus: bool = True) -> None:
        self._node = node
        self._scope = scope
        self._has_walrus = has_walrus
        self._summaries: dict[int, Summary] = {}

    def summary(self, statement: ast.stmt) -> Summary:
        """What one statement can do."""
        known = self._summaries.get(id(statement))
        if known is None:
            known = self._summaries[id(statement)] = self._summarise(statement)
        return known

    def summary_of(self, statements: Iterable[ast.stmt]) -> Summary:
        """What a list of statements can do."""
        return _union([self.summary(statement) for statement in statements])

    def kept_and_dropped(self, assigned: Iterable[str], live: Iterable[str]) -> tuple[list[str], list[str]]:
        """Split assigned names into those needed afterwards and the others, in the order of first assignment."""
        assigned, live = set(assigned), set(live)
        order = [name for name in (*self._scope.bound, *self._scope.nonlocals) if name in assigned]
        keeps = [name for name in order if name in live or self._scope.outlives(name)]
        return keeps, [name for name in order if name not in keeps]

    def live_after(self, statements: Sequence[ast.stmt]) -> set[str]:
        """Variables needed after the last of some consecutive statements, or where their exits lead."""
        live = set(self.liveness.after[id(statements[-1])])
        for statement in statements:
            live |= self.live_at_exits(self.summary(statement).exits, statement)
        return live

    def live_around_loop(self, loop: Loop) -> set[str]:
        """Variables needed at the head of a loop or after it."""
        live = set(self.liveness.head[id(loop)]) | self.liveness.after[id(loop)]
        return live | self.live_at_exits(self.summary(loop).exits, loop)

    def live_at_exits(self, exits: Iterable[Exit], statement: ast.stmt) -> set[str]:
        """Variables needed where the exits of a statement lead."""
        targets = self.liveness.targets[id(statement)]
        return set().union(*(targets[leaving.name] for leaving in exits))

    @cached_property
    def liveness(self) -> Liveness:
        """Computed when first asked for: straight-line functions do not need it."""
        body = [] if isinstance(self._node, ast.Lambda) else self._node.body
        return Liveness(body, frozenset(self._scope.bound), has_walrus=self._has_walrus)

    def _summarise(self, node: ast.stmt) -> Summary:
        match node:
            case ast.Return():
                return _union([self._shallow(node), Summary(frozenset(), frozenset({Exit.RETURN}), False)])
            case ast.Break():
                return Summary(frozenset(), frozenset({Exit.BREAK}), False)
            case ast.Continue():
                return Summary(frozenset(), frozenset({Exit.CONTINUE}), False)
            case ast.While() | ast.For():
                inside = self.summary_of(node.body)
                inside = Summary(inside.assigned, inside.exits - {Exit.BREAK, Exit.CONTINUE}, inside.yields)
                return _union([self._shallow(node), inside, self.summary_of(node.orelse)])
            case ast.If() | ast.With() | ast.Try() | ast.TryStar():
                parts = [self.summary_of(block) for block in blocks(node)]
                return _union([self._shallow(node), *parts])
            case _:
                return self._shallow(node)

    def _shallow(self, node: ast.stmt) -> Summary:
        """What a statement does itself, apart from the statements in it."""
        names: set[str] = set()
        yields = _bindings(node, names)
        own = self._scope.bound.keys() | self._scope.nonlocals.keys()
        return Summary(frozenset(names & own), frozenset(), yields)


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists directly inside a compound statement."""
    found = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
    return found + [handler.body for handler in getattr(node, "handlers", [])]


def _union(parts: Sequence[Summary]) -> Summary:
    if not parts:
        return NOTHING
    return Summary(frozenset().union(*(part.assigned for part in parts)),
                   frozenset().union(*(part.exits for part in parts)),
                   any(part.yields for part in parts))


def _bindings(node: ast.AST, names: set[str]) -> bool:
    """Add the names that a statement binds outside its blocks; say whether it yields there."""
    yields = False
    pending: list[ast.AST] = [node]
    while pending:
        at = pending.pop()
        match at:
            case ast.AnnAssign(target=ast.Name(), value=None):
                continue                        # declares a variable, and leaves it alone
            case ast.Name(ctx=ast.Store() | ast.Del()):
                names.add(at.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(at.name)
                pending += at.decorator_list
                if not isinstance(at, ast.ClassDef):
                    pending += [*at.args.defaults, *(value for value in at.args.kw_defaults if value)]
                continue
            case ast.Lambda():
                pending += [*at.args.defaults, *(value for value in at.args.kw_defaults if value)]
                continue
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                names |= walrus_names(at)
                continue
            case ast.Import() | ast.ImportFrom():
                names.update(imported_name(alias) for alias in at.names)
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name) \
                    | ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
                names.add(name)
            case ast.Yield() | ast.YieldFrom():
                yields = True
        pending += [child for child in child_nodes(at) if not isinstance(child, ast.stmt)]
    return yields
