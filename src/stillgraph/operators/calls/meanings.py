"""What callables of Python's and torch's mean that are more than called: one place to ask the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stillgraph.operators.calls.functions import OTHERS
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.outside import acts, randomness
from stillgraph.operators.python import draws
from stillgraph.operators.python.builtin_functions import MEANINGS
from stillgraph.operators.torch.wrappers import WRAPPERS


def meaning_of(function: Any) -> Callable[..., Any] | None:
    """What is done in the place of a callable, with the same arguments; None for one that is called as it is."""
    original = randomness.unwrapped_seed(function)
    if method_of(original, "__hash__") is not None:
        return None
    try:
        known = MEANINGS.get(original) or OTHERS.get(original) or WRAPPERS.get(original)
    except TypeError:  # not hashable
        return None
    return known or draws.meaning_of(original)


def has_meaning(function: Any) -> bool:
    """Whether a callable of Python's or torch's is more than called."""
    return meaning_of(function) is not None or acts.act_of(function) is not None
