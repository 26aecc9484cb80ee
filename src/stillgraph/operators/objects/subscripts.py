"""Subscripts that are read, `target[key]`: indices, slices and keys that only the run knows."""

from __future__ import annotations

import collections
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.operators import dispatch
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.containers import entries, tables
from stillgraph.operators.containers.ranges import Range
from stillgraph.operators.dispatch import call
from stillgraph.operators.each import Case, of_each
from stillgraph.operators.elements import lists
from stillgraph.operators.elements.indices import as_index, in_tensor
from stillgraph.operators.elements.picking import pick
from stillgraph.operators.objects.array_items import array_item, is_by_run
from stillgraph.operators.objects.changes import note_contents
from stillgraph.operators.objects.index_errors import require_in_range
from stillgraph.operators.objects.namespaces import note_name
from stillgraph.operators.objects.stores import is_cut_by_staged, set_item
from stillgraph.operators.objects.strings import text
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.both_sides import require_one_object, several_in
from stillgraph.trace.control_flow.joined.unjoined import is_leaf
from stillgraph.trace.control_flow.narrowing import exchanged
from stillgraph.trace.values import number_failures
from stillgraph.trace.values.entries import find
from stillgraph.trace.values.numbers import StagedInt
from stillgraph.trace.values.text import StagedText


@dispatch.item.defined
@of_each(0, cases=Case.UNJOINED)
def item(target: Any, key: Any) -> Any:
    """``target[key]``; a list or tuple may be indexed by a number that only the run knows."""
    several = several_in(key)
    require_one_object(key)
    if several is not None:
        return several.either(lambda v: item(target, exchanged(key, several, v)))
    capture = session()
    if capture is not None:
        capture.settling.require_current(target)
        method = method_of(target, "__getitem__")
        if method is not None:
            return call(method, target, key)
    if capture is not None and isinstance(target, torch.Tensor):
        key = in_tensor(key)
    elif capture is not None and is_by_run(target, key):
        return array_item(capture, target, key)
    if capture is not None and (isinstance(target, _INDEXED) or is_exactly(target, _LAYERS)):
        key = as_index(capture, key)
        if lists.is_spread(target) or (is_exactly(target, (list, tuple)) and is_cut_by_staged(key)):
            return lists.at(capture, target, key)
        if isinstance(key, StagedInt):
            exact = is_exactly(target, (list, tuple))
            capture.before_failures(number_failures.indexing(type(target)) if exact else None)
            return _staged_item(capture, target, key)
        if isinstance(target, range) and is_cut_by_staged(key) and key.step is None:
            return _cut_range(capture, target, key)
    if capture is not None and isinstance(key, StagedText) and isinstance(target, torch.nn.ModuleDict):
        return item(target._modules, key)
    if isinstance(target, collections.defaultdict):
        note_contents(target, certain=False)  # reading makes what is missing
    if capture is not None and isinstance(target, dict):
        if tables.is_looked_up(target, key):
            return tables.at(capture, target, key)
        if target and entries.is_staged_key(target, key):
            return entries.look_up(capture, target, key)
        known = find(target, key)
        if known is not None:
            return entries.at(capture, target, known)
        note_name(target, key)
        if _is_made_by_factory(target, key):
            set_item(target, key, call(target.default_factory))  # type: ignore[attr-defined]  # of a defaultdict
    return target[key]


def _is_made_by_factory(target: Any, key: Any) -> bool:
    """Whether a ``defaultdict`` calls a function of Python's for what it has by a key."""
    if not isinstance(target, collections.defaultdict) or not isinstance(target.default_factory, FunctionType):
        return False
    return type(target).__missing__ is collections.defaultdict.__missing__ and key not in target


def _cut_range(capture: Session, target: range, key: slice) -> Range:
    start, stop = (
        default if bound is None else _clamped(capture, bound, len(target))
        for bound, default in ((key.start, 0), (key.stop, len(target)))
    )
    return Range(target.start + start * target.step, target.start + stop * target.step, target.step)


def _clamped(capture: Session, bound: Any, length: int) -> Any:
    """The bound of a slice as an index from 0 to the length of what is sliced."""
    from_front = bound + length * (bound < 0)
    return capture.number_operation(max, (capture.number_operation(min, (from_front, length)), 0))


def _staged_item(capture: Session, target: Any, key: StagedInt) -> Any:
    elements = list(target)
    if not elements:
        message = "an empty list is indexed by a number that only the run knows"
        raise refuse("SG203", message, location=here(), hint="Put a value into the list before it is indexed.")
    said = next((text for kind, text in _OUT_OF_RANGE.items() if isinstance(target, kind)), None)
    if said is not None:
        require_in_range(capture, len(elements), key, said)
    picked = pick(capture, elements, key, list if isinstance(target, list) else tuple)
    if not is_leaf(picked):
        capture.identities.references.pick(target, key, picked)
    return picked


_INDEXED = (list, tuple, range, collections.deque)
_LAYERS = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ParameterList)

_OUT_OF_RANGE: dict[type, Callable[[Any], str]] = {
    collections.deque: lambda index: "deque index out of range",
    range: lambda index: "range object index out of range",
    **{kind: lambda index: text("index {} is out of range", index) for kind in _LAYERS},
}
