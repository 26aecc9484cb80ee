"""What rewriting is about at a moment: the step, the place of a statement, the function and the frame being built."""
from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from stillgraph.source.callees import Callee
from stillgraph.source.facts import Facts
from stillgraph.source.generators import Place as Definition
from stillgraph.source.generators import Twin
from stillgraph.source.names import Names
from stillgraph.source.scopes import FunctionNode, Scope, Scopes

if TYPE_CHECKING:
    from stillgraph.source.rewriter import Rewriter


class Rewritten(NamedTuple):
    """The statements that stand for one of the user's, and whether they also cover those after it."""

    statements: list[ast.stmt]
    took_rest: bool = False


ExpressionHandler = Callable[[Any, "Rewriter"], ast.expr]
StatementHandler = Callable[[Any, Sequence[ast.stmt], "Place", "Rewriter"], Rewritten]


@dataclass(frozen=True)
class Step:
    """One rewrite step: the node types it takes and what it makes of them."""

    name: str
    expressions: Mapping[type[ast.AST], ExpressionHandler] = field(default_factory=dict)
    statements: Mapping[type[ast.AST], StatementHandler] = field(default_factory=dict)


class ExitVariable:
    """The variable in which a statement that stays Python leaves its exit; named when first needed."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._name: str | None = None

    @property
    def used(self) -> bool:
        return self._name is not None

    @property
    def name(self) -> str:
        self._name = self._name or self._names.fresh("exit")
        return self._name


@dataclass(frozen=True)
class Place:
    """Where a list of statements stands in the rewritten function.

    Attributes:
        in_block: in a generated function, so that leaving means returning an exit.
        in_python_loop: `break` and `continue` mean a loop that stayed a Python loop.
        exits_stay: a statement with exits has to stay a Python statement here.
        exit: where the list is to leave its exit, if its end is not the end of the generated function.
    """

    in_block: bool = False
    in_python_loop: bool = False
    exits_stay: bool = False
    exit: ExitVariable | None = None

    def inside_python(self) -> Place:
        """The place of the statements in an `if` that stays a Python statement."""
        return replace(self, exits_stay=True)

    def inside_python_loop(self) -> Place:
        return replace(self, exits_stay=True, in_python_loop=True)


BLOCK = Place(in_block=True)


@dataclass
class Frame:
    """A function being built: the user's, or a generated one.

    Attributes:
        bound: the user's variables it assigns directly.
        globals: the names declared `global` that it binds by a statement that only Python can run.
        prelude: definitions to put before the statement at hand; None where there is no room for any.
        in_block: whether it is a generated function.
        in_iterable: what is at hand is evaluated for a comprehension to iterate over, where `:=` is not allowed.
    """

    bound: dict[str, None] = field(default_factory=dict)
    globals: dict[str, None] = field(default_factory=dict)
    prelude: list[ast.stmt] | None = None
    in_block: bool = False
    in_iterable: bool = False


@dataclass(frozen=True)
class Function:
    """A function of the user's that is being rewritten."""

    node: FunctionNode
    scope: Scope
    facts: Facts
    class_name: str | None


@dataclass(frozen=True)
class Request:
    """What is the same for all of one conversion.

    Attributes:
        tries: whether `try` statements are to become operators too.
        twins: of generators that are defined in the function, by where they stand.
        unset_reads: the ids of the names that may have no value where they stand.
    """

    scopes: Scopes
    names: Names
    callees: Mapping[tuple[str, ...], Callee]
    watched: frozenset[str]
    file: str
    tries: bool = False
    twins: Mapping[Definition, Twin] = field(default_factory=dict)
    unset_reads: frozenset[int] = frozenset()
