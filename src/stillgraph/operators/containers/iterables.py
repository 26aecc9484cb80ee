"""What a loop may run over by position: a sequence for each kind of iterable."""

from __future__ import annotations

import enum
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import class_member, is_exactly
from stillgraph.operators.containers.indexed import Indexed
from stillgraph.operators.containers.ranges import Range
from stillgraph.operators.containers.sequences import Listed, StagedArrayRows, StagedEntries, StagedRows
from stillgraph.operators.containers.table_methods import Keys
from stillgraph.operators.elements import lists
from stillgraph.trace.capture.session import session
from stillgraph.trace.code.frames import called, here
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.entries import container_of, table_of


def as_sequence(iterable: Any) -> Any:
    """The sequence for something a loop runs over, or None if it can only be iterated once."""
    capture = session()
    if capture is not None:
        capture.settling.require_current(iterable)
    if isinstance(iterable, Indexed):
        return iterable
    if isinstance(iterable, torch.Tensor):
        return StagedRows(iterable)
    if isinstance(iterable, StagedArray):
        return StagedArrayRows(iterable.tensor)
    if isinstance(iterable, range):
        return Range(iterable.start, iterable.stop, iterable.step)
    if is_exactly(iterable, (list, tuple)) or isinstance(iterable, (torch.nn.ModuleList, torch.Size)):
        return Listed(iterable)
    if lists.is_spread(iterable):
        return Listed(iterable)
    if isinstance(iterable, enum.EnumMeta) and class_member(type(iterable), "__iter__") is enum.EnumMeta.__iter__:
        return Listed(tuple(iterable))
    if container_of(iterable) is None:
        return None
    table = table_of(iterable) if isinstance(iterable, (dict, set, frozenset)) else None
    if table is None:
        return StagedEntries(iterable)
    if not isinstance(iterable, dict):
        what = f"{called(iterable)}, a set of numbers that only the run knows, is run over"
        raise refuse("SG211", what, location=here(), hint="Run over sorted(...) of it: Python's order is the run's.")
    return Keys(iterable)  # as they are in each iteration: Python raises where their number has changed
