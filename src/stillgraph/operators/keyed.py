"""``set``, ``frozenset`` and ``dict`` of elements and keys that are numbers which only the run knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stillgraph.operators.comprehensions import dict_of, set_of
from stillgraph.operators.consumers import known_or_list
from stillgraph.trace.entries import Table, refuse_frozen, table_of
from stillgraph.trace.lists import StagedSpread
from stillgraph.trace.numbers import StagedNumber


def set_(iterable: Any = (), /) -> Any:
    """``set``."""
    return _set_or_frozen(set, iterable)


def frozenset_(iterable: Any = (), /) -> Any:
    """``frozenset``."""
    made = _set_or_frozen(frozenset, iterable)
    refuse_frozen(iterable, made)
    return made


def dict_(*given: Any, **named: Any) -> Any:
    """``dict``."""
    if len(given) != 1 or not isinstance(given[0], (list, tuple, Iterator)):
        return dict(*given, **named)
    pairs = list(known_or_list(given[0]))
    if not any(type(pair) in (list, tuple) and pair and isinstance(pair[0], StagedNumber) for pair in pairs):
        return dict(pairs, **named)
    result = dict_of(pairs, lambda pair: (pair[0], *pair[1:]))
    result.update(named)
    return result


def _set_or_frozen(kind: Any, iterable: Any) -> Any:
    if isinstance(iterable, (set, frozenset, dict)):
        table = table_of(iterable)
        return kind(iterable) if table is None else kind([Table(table.keys, None)])
    items = list(known_or_list(iterable))
    if not any(isinstance(item, (StagedNumber, StagedSpread)) for item in items):
        return kind(items)
    return kind(set_of(items, lambda item: item))
