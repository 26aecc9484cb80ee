"""Types that cover what one more iteration of a loop leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stillgraph.program.constants import MOST_ENTRIES, Known, is_table, united
from stillgraph.program.types import (
    JoinFailure,
    ListType,
    ObjectType,
    TableType,
    TensorType,
    Type,
    join_types,
    optional,
    same_dimension,
    table_of,
)
from stillgraph.trace.control_flow.joined.descriptions import describe
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.joined.join_errors import quoted
from stillgraph.trace.control_flow.joined.leaves import DEAD, is_empty
from stillgraph.trace.control_flow.joined.told_objects import has_objects, objects_in
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, is_leaf
from stillgraph.trace.heap.places import MISSING
from stillgraph.trace.values.several import known_in
from stillgraph.trace.values.text import StagedText
from stillgraph.trace.values.texts_of_paths import beside_text, text_type


def table_before(before: Any, after: Any) -> TableType | None:
    """The type of a place that is one of some constants before the first iteration and after it; None for any other."""
    entries = known_in(after)
    if before is DEAD:
        return table_of(entries) if entries is not None and isinstance(after, Unjoined) else None
    mine = known_in(before)
    if not mine or not entries or not is_table(e for e in united(mine, entries) if e.value is not MISSING):
        return None  # a number that is not always there has a type of its own
    return table_of(mine, entries)


def covering(type_: Type, joiner: Joiner, after: Any, place: str) -> Type:
    """The type of a leaf that covers what one more iteration left, too.

    Raises:
        JoinFailure: no type does.
    """
    if isinstance(type_, TableType) and is_leaf(after) and not isinstance(after, Unjoined):
        nothing = {entry.value for entry in type_.entries}
        if all(map(is_empty, nothing)):
            return optional(joiner.type_of(after), none=None in nothing, unbound=MISSING in nothing)
    entries = known_in(after) if isinstance(type_, (TableType, ObjectType)) else None
    if isinstance(type_, TableType) and has_objects(type_.entries):
        entries = objects_in(after, joiner.is_older)
    if isinstance(type_, TableType) and entries is not None:
        return _wider_table(type_, entries, joiner.is_late)
    text = text_type(entries)
    if text is not None:
        return join_types(type_, text)
    if isinstance(after, StagedText):
        type_ = beside_text(type_)
    if after is None or after is MISSING:
        return may_be(type_, after)
    if not is_leaf(after):
        raise JoinFailure("SG203", f"{quoted(joiner.named(place))} is {describe(after)} {joiner.when[1]}")
    return join_types(type_, joiner.type_of(after))


def _wider_table(type_: TableType, entries: tuple[Known, ...], is_late: bool) -> Type:
    """The type of one of some constants or of others; of texts that become more and more, the run makes the text."""
    known, both = len(type_.entries), united(type_.entries, entries)
    is_endless = known > _MANY and len(both) > 2 * known and not has_objects(both)  # as of a text that is made longer
    if is_endless or len(both) > MOST_ENTRIES or (is_late and len(both) > known):
        text = text_type(both)
        if text is not None:
            return text
    if is_endless:
        raise JoinFailure("SG205", "an iteration makes other constants of those that it finds")
    return table_of(both)


_MANY = 6


def may_be(type_: Type, empty: Any) -> Type:
    """The type of what may also be None, or `MISSING`."""
    return optional(type_, none=empty is None, unbound=empty is not None)


def same_type(left: Type, right: Type) -> bool:
    """Whether two types are one: of tensors, sizes that only the run knows are alike."""
    if isinstance(left, ListType) and isinstance(right, ListType):
        return same_type(left.element, right.element)
    if not isinstance(left, TensorType) or not isinstance(right, TensorType):
        return left == right
    same = len(left.shape) == len(right.shape) and all(
        (a is None and b is None) or same_dimension(a, b) for a, b in zip(left.shape, right.shape)
    )
    return same and replace(left, shape=()) == replace(right, shape=())
