"""The rewrite steps, in order.

Their order is only that of reading: each takes its own kinds of node, and one walk of the function applies all.
"""
from __future__ import annotations

from stillgraph.source.rewriter import Step
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
    protected,
    stores,
    strings,
    subscripts,
)

STRUCTURE: tuple[Step, ...] = (functions.STEP, exits.STEP, protected.STEP, matching.STEP)
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
    contexts.STEP,
    loops.STEP,
    branches.STEP,
)
