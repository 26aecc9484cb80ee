"""One of several values, at an index that only the run knows."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from stillgraph.core.diagnostics import refuse
from stillgraph.program.constants import MOST_ENTRIES, is_table, united
from stillgraph.program.types import JoinFailure, join_types
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.leaves import same_constant
from stillgraph.trace.control_flow.joined.told_objects import objects_in
from stillgraph.trace.control_flow.joined.unjoined import Picked, Unjoined, is_leaf, picked
from stillgraph.trace.graph.typed_values import define
from stillgraph.trace.values.containers import split
from stillgraph.trace.values.numbers import StagedInt
from stillgraph.trace.values.several import known_in
from stillgraph.trace.values.text import StagedText


def pick(capture: Session, elements: Sequence[Any], key: StagedInt, kind: type = tuple) -> Any:
    """The element at an index that only the run knows.

    Tensors and numbers of one type are picked by the program, constants out of a table, tuples part by part. Of a few
    others the program knows which it is: what is done with it is done with each.

    Args:
        capture, elements, key: of the session; out of which; at which place.
        kind: of the user's sequence, a tuple or list, which an index out of its range names in the run.

    Raises:
        CaptureError: the elements have no join, and are too many to be told apart.
    """
    first = elements[0]
    if all(map(is_leaf, elements)) and len({isinstance(element, StagedText) for element in elements}) == 1:
        return _pick_leaf(capture, elements, key, kind)
    if all(same_constant(first, element) for element in elements[1:]):
        _pick_leaf(capture, range(len(elements)), key, kind)  # which raises where there is no such element
        return first
    parts = [p for element in elements if isinstance(element, tuple) and (p := split(element)) is not None]
    if len(parts) == len(elements) and len({(p.type, p.context) for p in parts}) == 1:
        columns = zip(*(p.children for p in parts))
        return parts[0].rebuild([pick(capture, column, key, kind) for column in columns])
    tables = [known_in(element) for element in elements]
    known = united(*(table or () for table in tables))
    if all(tables) and len(known) <= MOST_ENTRIES and is_table(known):
        numbers = [capture.entry_of(element) for element in elements]
        return Picked(_pick_leaf(capture, numbers, key, kind), known, _PLACE)
    return _told_apart(capture, elements, key, kind)


_PLACE = "the element"
_MOST = 16


def _told_apart(capture: Session, elements: Sequence[Any], key: StagedInt, kind: type) -> Any:
    kinds = " and ".join(dict.fromkeys(type(element).__name__ for element in elements))
    message = f"values that are no tensors of one kind ({kinds}) are picked by an index that only the run knows"
    if len(elements) > _MOST:
        hint = "Choose among a few with if and elif, or keep tensors of one shape and dtype."
        raise refuse("SG203", message, location=here(), hint=hint)
    capture.has_optionals = capture.has_optionals or any(element is None for element in elements)
    objects = [objects_in(element, lambda value: not is_leaf(value)) for element in elements]
    if all(objects):
        numbers = [capture.entry_of(element) for element in elements]
        return picked(_pick_leaf(capture, numbers, key, kind), united(*(each or () for each in objects)), _PLACE)
    index = _pick_leaf(capture, range(len(elements)), key, kind)
    told = elements[-1]
    for number in reversed(range(len(elements) - 1)):
        told = Unjoined(index == number, elements[number], told, _PLACE, JoinFailure("SG203", message))
    return told


def _pick_leaf(capture: Session, elements: Sequence[Any], key: StagedInt, kind: type) -> Any:
    try:
        type_ = capture.type_of(elements[0])
        for element in elements[1:]:
            type_ = join_types(type_, capture.type_of(element))
    except JoinFailure as failure:
        raise refuse(failure.code, failure.message, location=here()) from failure
    return define(capture, type_, capture.emit("call_function", operator.getitem, (kind(elements), key), {}))
