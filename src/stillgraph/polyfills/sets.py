"""Operations on sets of numbers that only the run knows, element by element: nobody sees in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def elements(values: Any) -> Any:
    """What a loop runs over for the elements of a set; an operator gives them."""
    return values


def union(left: Any, *others: Any) -> Any:
    """``left.union(*others)``."""
    return update(left.copy(), *others)


def intersection(left: Any, *others: Any) -> Any:
    """``left.intersection(*others)``."""
    made = left
    for other in others:
        kept: Any = set()
        for element in elements(made):
            if element in other:
                kept.add(element)
        made = kept
    return made.copy()


def difference(left: Any, *others: Any) -> Any:
    """``left.difference(*others)``."""
    return difference_update(left.copy(), *others)


def symmetric_difference(left: Any, right: Any) -> Any:
    """``left.symmetric_difference(right)``."""
    made = difference(left, right)
    for element in elements(right):
        if element not in left:
            made.add(element)
    return made


def update(target: Any, *others: Any) -> Any:
    """``target.update(*others)``; gives the set."""
    for other in others:
        for element in elements(other):
            target.add(element)
    return target


def difference_update(target: Any, *others: Any) -> Any:
    """``target.difference_update(*others)``; gives the set."""
    for other in others:
        for element in elements(other):
            target.discard(element)
    return target


def intersection_update(target: Any, *others: Any) -> Any:
    """``target.intersection_update(*others)``; gives the set."""
    return _filled(target, intersection(target, *others))


def symmetric_difference_update(target: Any, right: Any) -> Any:
    """``target.symmetric_difference_update(right)``; gives the set."""
    return _filled(target, symmetric_difference(target, right))


def _filled(target: Any, made: Any) -> Any:
    target.clear()
    return update(target, made)


def issubset(left: Any, right: Any) -> Any:
    """``left.issubset(right)``."""
    return all(element in right for element in elements(left))


def issuperset(left: Any, right: Any) -> Any:
    """``left.issuperset(right)``."""
    return issubset(right, left)


def isdisjoint(left: Any, right: Any) -> Any:
    """``left.isdisjoint(right)``."""
    return not any(element in right for element in elements(left))


def equal(left: Any, right: Any) -> Any:
    """``left == right``."""
    return len(left) == len(right) and issubset(left, right)


OPERATORS: dict[str, Any] = {
    "__or__": union,
    "__and__": intersection,
    "__sub__": difference,
    "__xor__": symmetric_difference,
    "__ior__": update,
    "__iand__": intersection_update,
    "__isub__": difference_update,
    "__ixor__": symmetric_difference_update,
}
"""By Python's methods for operators; those in place give the set."""

METHODS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (union, intersection, difference, symmetric_difference, issubset, issuperset, isdisjoint)
}
"""By Python's names."""

IN_PLACE: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (update, intersection_update, difference_update, symmetric_difference_update)
}
"""By Python's names of methods that change a set and give None."""
