"""Texts, numbers and the like that code asks to be one object: the guards on them only say what they are."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Container, Iterable, Iterator
from types import CodeType
from typing import Any

import torch

from stillgraph.program.guards import AliasGuard, ApartGuard, ConstantGuard, Guard, IdentityGuard
from stillgraph.program.sources import Held, Source
from stillgraph.trace.guards.argument_structure import is_constant

_ONE_OF_A_KIND = (bool, type(None), enum.Enum, torch.dtype)


def is_told_by_value(value: Any) -> bool:
    """Whether a guard takes another object for this one that is equal to it."""
    return is_constant(value) and not isinstance(value, _ONE_OF_A_KIND)


def is_told_by_identity(value: Any) -> bool:
    """Whether Python looks for this very object before it asks for equality, and nothing else on it is guarded."""
    return isinstance(value, (torch.Tensor, torch.nn.Module))


def same_values(
    guards: Iterable[Guard], codes: Iterable[CodeType], compared: bool, identified: Container[int], writes: bool
) -> Iterator[Guard]:
    """Guards on which equal values are one object, and which are not.

    Args:
        guards: those of the program.
        codes: the code that ran: its literals are at hand too.
        compared: whether the code asked two values to be one object; if not, it is asked of NaN alone, by ``in``.
        identified: the ids of the values whose own were asked for.
        writes: whether the call writes to objects: the program holds the very values that it may write.
    """
    alike: dict[tuple[type, str], dict[int, tuple[Any, list[Source]]]] = {}
    for guard in guards:
        if isinstance(guard, ConstantGuard) and is_told_by_value(guard.value):
            value = guard.value
            if id(value) in identified:
                yield IdentityGuard(guard.source, value)
            if compared or value != value:
                equal = alike.setdefault((type(value), repr(value)), {})
                equal.setdefault(id(value), (value, []))[1].append(guard.source)
    for text in dict.fromkeys(itertools.chain.from_iterable(map(_texts, codes))) if compared else ():
        if (str, repr(text)) in alike:
            alike[str, repr(text)].setdefault(id(text), (text, []))[1].append(Held("a literal", text))
    for places in alike.values():
        paths = [(source, value) for value, sources in places.values() for source in sources]
        if writes and len(paths) > 1:
            yield from (IdentityGuard(source, value) for source, value in paths)
            continue
        for _, (first, *others) in places.values():
            yield from (AliasGuard(first, source, same=True) for source in others)
        if len(places) > 1:
            yield ApartGuard(tuple(first for _, (first, *_) in places.values()))


def _texts(code: CodeType) -> Iterator[str]:
    """The literals that are texts: Python has one object for those that look like names, wherever they are written."""
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, CodeType):
            yield from _texts(constant)
