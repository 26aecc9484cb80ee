"""Containers compared part by part: those in which paths leave one of several values, or a key on some paths only."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.core.lookup import is_exactly
from stillgraph.operators.conditions.branches import if_exp
from stillgraph.operators.conditions.truth import truth_number
from stillgraph.operators.dispatch import and_, call, eq, not_, or_
from stillgraph.operators.elements import lists
from stillgraph.polyfills import sets
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.control_flow.both_sides import several_in
from stillgraph.trace.control_flow.narrowing import leaves
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.entries import MaybeKey, are_of_numbers, find, table_of

Test = Callable[[], Any]


def holds_several(*containers: Any) -> bool:
    """Whether containers, of known length all, have in them what is one value or another by the path."""
    if any(map(lists.is_spread, containers)):
        return False
    parts, capture = [*map(_parts, containers)], session()
    if capture is not None and any(map(capture.identities.is_another, leaves(parts))):
        return True
    return several_in(parts) is not None


def _parts(container: Any) -> Any:
    if isinstance(container, dict):
        return list(container.values())
    return list(container) if isinstance(container, collections.deque) else container


def same(capture: Session, left: Any, right: Any) -> Any:
    """Whether two elements are one, or equal: what containers ask of them."""
    return True if left is right else truth_number(capture, eq(left, right))


def all_of(capture: Session, tests: Sequence[Test]) -> Any:
    """Whether all tests hold; none is made behind one that does not."""
    return truth_number(capture, and_(tests[0](), *tests[1:])) if tests else True


# ---- lists, tuples, dicts of known keys
def equal(capture: Session, left: Any, right: Any) -> Any:
    """``left == right``, for two containers of one class."""
    if len(left) != len(right):
        return False
    if isinstance(left, dict):
        keys = list if isinstance(left, collections.OrderedDict) else set
        if keys(left) != keys(right):
            return False
        pairs: Any = [(left[key], right[key]) for key in left]
    else:
        pairs = zip(left, right)
    return all_of(capture, [functools.partial(same, capture, *pair) for pair in pairs])


def in_order(capture: Session, compare: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """``compare(left, right)``, which is ``<`` or one of its kin, for two lists or tuples."""
    if not left or not right:
        return compare(len(left), len(right))
    return if_exp(
        same(capture, left[0], right[0]),
        lambda: in_order(capture, compare, left[1:], right[1:]),
        lambda: compare(left[0], right[0]),
    )


# ---- dicts and sets with keys on some paths
def is_compared(left: Any, right: Any) -> bool:
    """Whether two dicts or sets have keys that may be missing, or sets some that only the run knows; key by key."""
    if are_of_numbers(left, right):
        return True
    for kinds in ((dict, collections.defaultdict), (set, frozenset)):
        if is_exactly(left, kinds) and is_exactly(right, kinds):
            return table_of(left) is None and table_of(right) is None
    return False


def equal_by_keys(capture: Session, left: Any, right: Any) -> Any:
    """``left == right``, for two dicts or sets some of whose keys are there on some paths only."""
    if are_of_numbers(left, right):
        return call(sets.equal, left, right)
    tests = [functools.partial(_alike, capture, left, right, key) for key in _keys(left, right)]
    return all_of(capture, tests)


def is_within(capture: Session, left: Any, right: Any) -> Any:
    """``left <= right``, for two sets."""
    if are_of_numbers(left, right):
        return call(sets.issubset, left, right)
    tests = [functools.partial(_follows, left, right, key) for key in _keys(left, right)]
    return all_of(capture, tests)


def are_apart(capture: Session, left: Any, right: Any) -> Any:
    """``left.isdisjoint(right)``, for two sets."""
    if are_of_numbers(left, right):
        return call(sets.isdisjoint, left, right)
    tests = [functools.partial(_not_both, left, right, key) for key in _keys(left, right)]
    return all_of(capture, tests)


def _keys(left: Any, right: Any) -> list[Any]:
    found = [key.key if type(key) is MaybeKey else key for side in (left, right) for key in side]
    return list(dict.fromkeys(found))


def _held(container: Any, key: Any) -> tuple[Any, Any]:
    """Whether a container has a key, and what a dict has for it."""
    known = find(container, key)
    if known is None and key not in container:
        return False, MISSING
    value = container[key if known is None else known] if isinstance(container, dict) else None
    return True if known is None else known.present, value


def _alike(capture: Session, left: Any, right: Any, key: Any) -> Any:
    (first, value), (second, other) = _held(left, key), _held(right, key)
    if first is False or second is False:
        return not_(first if second is False else second)
    there = first if second is True else second if first is True else eq(first, second)
    if value is None and other is None:
        return there
    return and_(there, lambda: or_(not_(first), lambda: same(capture, value, other)))


def _follows(left: Any, right: Any, key: Any) -> Any:
    (first, _), (second, _) = _held(left, key), _held(right, key)
    return or_(not_(first), lambda: second)


def _not_both(left: Any, right: Any, key: Any) -> Any:
    (first, _), (second, _) = _held(left, key), _held(right, key)
    return not_(and_(first, lambda: second))


METHODS: dict[str, Callable[..., Any]] = {
    "issubset": is_within,
    "issuperset": lambda capture, left, right: is_within(capture, right, left),
    "isdisjoint": are_apart,
}
"""Of sets."""
