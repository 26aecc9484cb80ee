"""The type of a text that is a known one on some paths, or before a loop, and has values of the run in it on others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from stillgraph.program.constants import Known
from stillgraph.program.types import ObjectType, TableType, Type, join_types
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.several import known_in
from stillgraph.trace.values.text import StagedText


def joined_texts(left: Any, right: Any, type_of: Callable[[Any, int], Type]) -> Type | None:
    """The type of a place in which two paths leave texts, one at least with values of the run; None for any other."""
    if not any(isinstance(side, StagedText) for side in (left, right)):
        return None
    first, second = (_type(value, side, type_of) for side, value in enumerate((left, right)))
    return None if first is None or second is None else join_types(first, second)


def _type(value: Any, side: int, type_of: Callable[[Any, int], Type]) -> Type | None:
    return type_of(value, side) if isinstance(value, StagedText) else text_type(known_in(value))


def text_type(entries: Iterable[Known] | None) -> ObjectType | None:
    """The type of a text of the run that may be one of some constants; None if one of them is no text."""
    held = [entry.value for entry in entries or ()]
    if not held or any(value is not None and value is not MISSING and type(value) is not str for value in held):
        return None
    return ObjectType(str, None in held, any(value is MISSING for value in held))


def beside_text(type_: Type) -> Type:
    """The type of a place beside a text of the run: where it is one of some texts, the program makes a text of it."""
    text = text_type(type_.entries) if isinstance(type_, TableType) else None
    return type_ if text is None else text


def covering_texts(*elements: Type | tuple[Known, ...] | None) -> Type | None:
    """The type that covers elements of a list, if one is a text of the run and the others are texts, known or not.

    Args:
        elements: of each its type, or the constants of which it is one.
    """
    if not any(isinstance(each, ObjectType) for each in elements):
        return None
    types = [text_type(each) if isinstance(each, tuple) else each and beside_text(each) for each in elements]
    texts: list[Type] = [each for each in types if isinstance(each, ObjectType)]
    return functools.reduce(join_types, texts) if len(texts) == len(elements) else None
