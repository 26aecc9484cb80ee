"""In which of its tables a module has what the paths of a capture have left under one name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from stillgraph.core.lookup import class_member
from stillgraph.program.facts.info import info
from stillgraph.program.types import JoinFailure
from stillgraph.trace.control_flow.joined.join_errors import named, refuse_join
from stillgraph.trace.control_flow.joined.leaves import DEAD, may_be_parameter
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, alternatives
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.journal import Journal
from stillgraph.trace.heap.places import MISSING, AssignedPlace, AttributePlace, Place, TablePlace


def may_be_entry(value: Any) -> bool:
    """Whether something is, on some path, what a module enters in its tables."""
    if isinstance(value, Unjoined):
        return any(map(may_be_entry, (alternatives(value).left, alternatives(value).right)))
    return isinstance(value, torch.nn.Module) or may_be_parameter(value)


def parameters_behind(value: Any) -> Iterator[Any]:
    """The parameters that a joined one may be, as far as that is known."""
    for side in info(value).parameters:
        yield from parameters_behind(side) if info(side).parameters else (side,)


def before_unset(recorder: Recorder, place: AttributePlace, value: Any) -> None:
    """To be called where an object has an attribute on some paths only: whoever reads it is to be told.

    Args:
        recorder: the capture.
        place: the attribute.
        value: what it is on the other paths.

    Raises:
        JoinFailure: whoever reads it cannot be told, as one who has the ``__dict__``.
        Restart: code that reads it is not told of it yet.
    """
    is_class = isinstance(place.target, type)
    kind = place.target if is_class else type(place.target)
    is_field = place.name in (class_member(kind, "__dataclass_fields__") or ())  # which code of Python's reads
    is_element = isinstance(place.target, _CONTAINERS)  # as above, of torch's
    if not place.is_plainly_found or is_field or is_element or (is_class and _is_bound(value)):
        raise JoinFailure("SG204", "an attribute is made or deleted on one path only")
    recorder.watch_reads(place.target, place.name)
    recorder.relied.add(place)


def _is_bound(value: Any) -> bool:
    """Whether an instance that finds this in its class has something else, as a method is."""
    if isinstance(value, Unjoined):
        return any(map(_is_bound, (alternatives(value).left, alternatives(value).right)))
    return hasattr(type(value), "__get__")


_CONTAINERS = (
    *(torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict),
    *(torch.nn.ParameterList, torch.nn.ParameterDict),
)


def is_assigned(journal: Journal, place: AttributePlace, value: Any) -> bool:
    """Whether only the run knows in which table an attribute is: it goes where an assignment puts it then."""
    return journal.is_assigned(place) or _is_unknown(place.table, value)


def _is_unknown(table: str | None, value: Any) -> bool:
    """Whether torch has put what may be an entry into ``__dict__``, for want of knowing it."""
    hidden = isinstance(value, (torch.nn.Module, torch.nn.Parameter))  # as the user's code wants it
    return table == "__dict__" and not hidden and may_be_entry(value)


def joined_place(journal: Journal, place: Place, sides: Iterable[tuple[Place | None, Any]]) -> Place:
    """Where a joined value goes: into that table of a module in which the paths have left it.

    Args:
        journal: of the capture; what the paths have written is undone.
        place: what they have written.
        sides: for each path, where it has left the value, or None if it has written nothing; and the value.

    Raises:
        CaptureError: the paths have it in several tables, and what it is does not say in which.
    """
    if not isinstance(place, AttributePlace) or not isinstance(place.target, torch.nn.Module):
        return place
    left = {}
    for where, value in sides:
        if value is not DEAD and value is not MISSING:
            left[_table(journal, place, where, value), id(value)] = value
    tables = {table for table, _ in left}
    table = next(iter(tables), None)
    if len(tables) == 1 and table is not None:
        if table != "__dict__" or len(left) == 1 or not any(map(may_be_entry, left.values())):
            return TablePlace(place.target, place.name, table)
    elif not left or tables == {None}:
        return AssignedPlace(place.target, place.name) if left else place
    written = journal.written(0).get(place.key)
    first = place.table if written is None else written.table
    if "_buffers" in tables or not all(table in (None, _by_value(value, first)) for (table, _), value in left.items()):
        failure = JoinFailure("SG203", "an attribute is in another of the module's tables on one path")
        failure.place = named(place)
        raise refuse_join(failure.place, failure)
    return AssignedPlace(place.target, place.name)


def _table(journal: Journal, place: AttributePlace, where: Place | None, value: Any) -> str | None:
    """In which table a path has left a value; None where it lies by assignment."""
    if where is None:
        return None if is_assigned(journal, place, value) else place.table
    if isinstance(where, AssignedPlace) or not isinstance(where, TablePlace) or _is_unknown(where.where, value):
        return None
    return where.where


def _by_value(value: Any, first: str | None) -> str:
    """Where an assignment puts a value, ``first`` being the table that has had the attribute when the call began."""
    if isinstance(value, torch.nn.Module):
        return "_modules"
    return "_parameters" if may_be_parameter(value) else first or "__dict__"
