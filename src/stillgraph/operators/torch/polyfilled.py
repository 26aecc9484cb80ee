"""Functions of torch's and Python's that are followed: `stillgraph.polyfills` has what is called for them."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.lookup import is_exactly
from stillgraph.operators.conditions.given import tells_length
from stillgraph.operators.control_flow.generators import Produced
from stillgraph.operators.elements import lists
from stillgraph.operators.objects.changes import CONTAINERS, note_contents
from stillgraph.polyfills.checks import POLYFILLS as CHECKS
from stillgraph.polyfills.counting import POLYFILLS as COUNTING
from stillgraph.polyfills.given import length_hint
from stillgraph.polyfills.lists import POLYFILLS as LISTS
from stillgraph.polyfills.ordered import POLYFILLS as ORDERED
from stillgraph.polyfills.ordered import merge
from stillgraph.polyfills.padding import POLYFILLS as PADDING
from stillgraph.polyfills.sets import elements
from stillgraph.polyfills.shapes import POLYFILLS as SHAPES
from stillgraph.trace.capture.session import capturing, session
from stillgraph.trace.values.entries import table_of


def _followed(polyfill: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        capture = session()
        assert capture is not None and isinstance(polyfill, FunctionType)
        return capture.conversion.convert(polyfill)(*args, **kwargs)

    return called


_PLAIN = (int, float, bool, str, type(None))


def _followed_unless_plain(function: Callable[..., Any], polyfill: Callable[..., Any]) -> Callable[..., Any]:
    """A function that Python itself calls where all that it could compare is known and its own."""
    followed = _followed(polyfill)

    def called(*args: Any, **kwargs: Any) -> Any:
        is_known = not any(lists.is_spread(each) for each in args)
        if not is_known or any(type(leaf) not in _PLAIN for leaf in torch.utils._pytree.tree_leaves((args, kwargs))):
            return followed(*args, **kwargs)
        capture = capturing()
        for each in args:
            note_contents(each, certain=False)
            if isinstance(each, CONTAINERS):
                capture.reads.whole[id(each)] = each
        return function(*args, **kwargs)

    return called


def _followed_if_of_any_length(function: Callable[..., Any], polyfill: Callable[..., Any]) -> Callable[..., Any]:
    """A function that torch itself calls, but for lists of which only the run knows the length."""
    followed = _followed(polyfill)

    def called(*args: Any, **kwargs: Any) -> Any:
        is_known = not any(lists.is_spread(each) for each in (*args, *kwargs.values()))
        return (function if is_known else followed)(*args, **kwargs)

    return called


def _merge(*parts: Any, key: Any = None, reverse: Any = False) -> Any:
    """``heapq.merge`` of lists and tuples; from anything else Python draws, as it does."""
    capture = session()
    assert capture is not None and isinstance(merge, FunctionType)
    is_plain = not any(map(lists.is_spread, parts)) and all(
        type(leaf) in _PLAIN for leaf in torch.utils._pytree.tree_leaves((parts, key))
    )
    known = all(is_exactly(each, (list, tuple)) for each in parts)
    turned = capture.conversion.turn_inside_out(merge) if known else None
    if is_plain or turned is None:
        return heapq.merge(*parts, key=key, reverse=reverse)
    (inside_out, emit), options = turned, {"key": key, "reverse": reverse}
    return Produced(
        lambda takes: inside_out(*parts, **options, **{emit: takes}),
        lambda: _followed(merge)(*parts, **options),
    )


def _length_hint(value: Any, *default: Any) -> Any:
    """``operator.length_hint``: what Python's own objects say, Python asks them."""
    is_asked = tells_length(value) or lists.is_spread(value)
    return _followed(length_hint)(value, *default) if is_asked else operator.length_hint(value, *default)


def _elements(values: Any) -> Any:
    table = table_of(values) if isinstance(values, (set, frozenset)) else None
    return values if table is None else [*table.keys]


MEANINGS: dict[Any, Callable[..., Any]] = {
    **{function: _followed(polyfill) for function, polyfill in CHECKS.items()},
    **{
        function: _followed_unless_plain(function, polyfill)
        for table in (COUNTING, LISTS, ORDERED, SHAPES)
        for function, polyfill in table.items()
    },
    **{function: _followed_if_of_any_length(function, polyfill) for function, polyfill in PADDING.items()},
    heapq.merge: _merge,
    elements: _elements,
    operator.length_hint: _length_hint,
}
