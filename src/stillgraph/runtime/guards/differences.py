"""What differs between a container and what it held before, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.core.parcel import opened
from stillgraph.runtime.guards.comparing import strict_key

Show = Callable[[Any], str]


def difference(name: str, expected: Any, found: Any, show: Show) -> str:
    """The first difference of a container from what it should hold.

    Args:
        name: the container's, for people.
        expected: what it should hold.
        found: what it holds.
        show: a value in a few words.
    """
    if type(found) is not type(expected):
        return f"{name} should be a {type(expected).__qualname__}, but is a {type(found).__qualname__}"
    if isinstance(expected, (set, frozenset)):
        return _of_sets(name, expected, found, show)
    if hasattr(expected, "keys"):
        return _of_mappings(name, expected, found, show)
    return _of_sequences(name, expected, found, show)


def _of_sets(name: str, expected: Any, found: Any, show: Show) -> str:
    for item in expected:
        if item not in found:
            return f"{name} should hold {show(item)}, but does not"
    for item in found:
        if item not in expected:
            return f"{name} should not hold {show(item)}, but does"
    return f"{name} should hold what it held, but some of it is of another type"


def _of_mappings(name: str, expected: Any, found: Any, show: Show) -> str:
    for key in expected:
        if key not in found:
            return f"{name} should have the key {show(key)}, but lacks it"
        if strict_key(expected[key]) != strict_key(found[key]):
            return f"{name}[{show(key)}] should be {_both(expected[key], found[key], show)}"
    for key in found:
        if key not in expected:
            return f"{name} should lack the key {show(key)}, but has it"
    return f"the keys of {name} should be in the order they were, but are not"


def _of_sequences(name: str, expected: Sequence[Any], found: Sequence[Any], show: Show) -> str:
    if len(expected) != len(found):
        return f"len({name}) should be {len(expected)}, but is {len(found)}"
    pairs = enumerate(zip(expected, found))
    index = next((i for i, (old, new) in pairs if strict_key(old) != strict_key(new)), None)
    if index is None:
        return f"{name} should hold what it held, but holds something else"
    return f"{name}[{index}] should be {_both(expected[index], found[index], show)}"


def _both(expected: Any, found: Any, show: Show) -> str:
    expected, found = opened(expected), opened(found)
    if type(expected) is type(found):
        return f"{show(expected)}, but is {show(found)}"
    return f"{show(expected)} ({type(expected).__name__}), but is {show(found)} ({type(found).__name__})"
