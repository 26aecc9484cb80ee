"""The rewrite steps, in order.

Their order is only that of reading: each takes its own kinds of node, and one walk of the function applies all.
"""
from __future__ import annotations

import ast

from stillgraph.source.places import Step
from stillgraph.source.steps import (
    assertions,
    attributes,
    booleans,
    branches,
    calls,
    comparisons,
    comprehensions,
    conditionals,
    contexts,
    exits,
    functions,
    loops,
    matching,
    plain,
    protected,
    raising,
    stores,
    strings,
    subscripts,
)

STRUCTURE: tuple[Step, ...] = (functions.STEP, exits.STEP, plain.STEP, protected.STEP, matching.STEP)
"""What every rewriting needs: without these, the others' results would have no function to stand in."""

STEPS: tuple[Step, ...] = (
    calls.STEP,
    attributes.STEP,
    subscripts.STEP,
    stores.STEP,
    comparisons.STEP,
    booleans.STEP,
    conditionals.STEP,
    comprehensions.STEP,
    strings.STEP,
    assertions.STEP,
    raising.STEP,
    contexts.STEP,
    loops.STEP,
    branches.STEP,
)

LEFT_TO_PYTHON: frozenset[type[ast.AST]] = frozenset({
    ast.Expr, ast.Pass, ast.Match, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith,
    ast.Name, ast.Constant, ast.Dict, ast.Set, ast.List, ast.Tuple, ast.Slice,
    ast.FormattedValue,
})
"""Statements and expressions that mean the same in rewritten code. The asynchronous ones can only stand in a coroutine
that is nested in the function, and those are not rewritten; a `match` has become `if`s before the steps run."""


def is_known(kind: type[ast.AST]) -> bool:
    """Whether a type of node is rewritten, left to Python on purpose, or neither a statement nor an expression."""
    return (kind in LEFT_TO_PYTHON or not issubclass(kind, ast.stmt | ast.expr)
            or any(kind in step.statements or kind in step.expressions for step in (*STRUCTURE, *STEPS)))
