"""What the patterns of a ``match`` ask of a value, as Python's instructions for them do (PEP 634)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from stillgraph.operators.conditions.branches import if_exp
from stillgraph.operators.consumers.unpacking import unpack
from stillgraph.operators.dispatch import call
from stillgraph.operators.each import of_each
from stillgraph.operators.objects.comparisons import in_
from stillgraph.operators.objects.stores import del_item
from stillgraph.operators.objects.subscripts import item
from stillgraph.trace.capture.session import session
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, alternatives, is_lost
from stillgraph.trace.values.numbers import Staged

_SEQUENCE, _MAPPING, _MATCHES_ITSELF = 1 << 5, 1 << 6, 1 << 22  # flags of types, by which Python decides


@of_each(0)
def is_sequence(subject: Any) -> Any:
    """Whether a pattern like ``[a, b]`` looks into a value."""
    return _has_flag(subject, _SEQUENCE)


@of_each(0)
def is_mapping(subject: Any) -> Any:
    """Whether a pattern like ``{"key": a}`` looks into a value."""
    return _has_flag(subject, _MAPPING)


def _has_flag(subject: Any, flag: int) -> bool:
    if isinstance(subject, (Staged, torch.Tensor)):
        return False
    return bool(call(type, subject).__flags__ & flag)


def length(subject: Any) -> Any:
    """How many elements a sequence has; of several the length of each, so that a test of it tells which it is."""
    if not isinstance(subject, Unjoined) or is_lost(subject):
        return call(len, subject)
    capture, known = session(), alternatives(subject)
    taken = known.flag if isinstance(known.flag, bool) or capture is None else capture.decided(known.flag)
    if taken is not None:
        return length(known.left if taken else known.right)
    left, right = (length(side) if _may_be_sequence(side) else -1 for side in (known.left, known.right))
    return Unjoined(known.flag, left, right, known.place, known.failure)


def _may_be_sequence(side: Any) -> bool:
    """Whether a run can come here with a value: `is_sequence` has been asked."""
    return isinstance(side, Unjoined) or is_sequence(side) is not False


@of_each(0)
def elements_of(subject: Any, before: int, after: int | None) -> Any:
    """The elements of a sequence as a tuple; what a star stands for is one of them, a list.

    Args:
        subject: a sequence of so many.
        before: how many there are before the star, or at all.
        after: how many there are behind it; None without one.
    """
    return tuple(unpack(subject, before, after))


@of_each(0)
def values_of(subject: Any, keys: tuple[Any, ...]) -> Any:
    """The values of a mapping for some keys; None where one of them is missing.

    Raises:
        ValueError: a key is there twice.
    """
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
        seen.add(key)
    return _values(subject, keys, ())


def _values(subject: Any, keys: tuple[Any, ...], found: tuple[Any, ...]) -> Any:
    if not keys:
        return found
    first, *others = keys
    if isinstance(subject, dict) and type(subject).get is dict.get:
        there = in_(first, subject)
        return if_exp(there, lambda: _values(subject, (*others,), (*found, item(subject, first))), lambda: None)
    value = call(subject.get, first, _MISSING)
    return None if value is _MISSING else _values(subject, (*others,), (*found, value))


_MISSING = object()


@of_each(0)
def others_of(subject: Any, keys: tuple[Any, ...]) -> Any:
    """What ``**others`` is bound to: a dict of a mapping without some keys."""
    others = call(dict, subject)
    for key in keys:
        del_item(others, key)
    return others


def parts_of(subject: Any, kind: Any, names: tuple[str, ...], positional: int) -> Any:
    """The attributes of an object that a class pattern looks at; None where it is of another class, or lacks one.

    Args:
        subject: the object.
        kind: the class.
        names: of the attributes that the pattern names.
        positional: how many it has before those, which the class names.

    Raises:
        TypeError: it is no class, or gives the pattern fewer names than that.
    """
    if not isinstance(kind, type):
        raise TypeError("called match pattern must be a type")
    return if_exp(call(isinstance, subject, kind), lambda: _attributes(subject, kind, names, positional), lambda: None)


def _attributes(subject: Any, kind: type, names: tuple[str, ...], positional: int) -> Any:
    found: list[Any] = []
    for name in _looked_at(kind, names, positional):
        if name is None:
            found.append(subject)
            continue
        value = call(getattr, subject, name, _MISSING)
        if isinstance(value, Unjoined):
            there = value.either(lambda each: each is not _MISSING)
            if there is not True:
                value.refuse()
        if value is _MISSING:
            return None
        found.append(value)
    return tuple(found)


def _looked_at(kind: type, names: tuple[str, ...], positional: int) -> Iterator[str | None]:
    """The attributes that a pattern looks at; None for the object itself."""
    given = getattr(kind, "__match_args__", None) if positional else ()
    is_itself = given is None and bool(kind.__flags__ & _MATCHES_ITSELF)
    given = () if given is None else given
    if type(given) is not tuple:
        raise TypeError(f"{kind.__name__}.__match_args__ must be a tuple (got {type(given).__name__})")
    most = 1 if is_itself else len(given)
    if positional > most:
        plural = "" if most == 1 else "s"
        raise TypeError(f"{kind.__name__}() accepts {most} positional sub-pattern{plural} ({positional} given)")
    if is_itself and positional:
        yield None
    seen: set[str] = set()
    for name in (*given[:positional], *names):
        if not isinstance(name, str):
            raise TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})")
        if name in seen:
            raise TypeError(f"{kind.__name__}() got multiple sub-patterns for attribute {name!r}")
        seen.add(name)
        yield name
