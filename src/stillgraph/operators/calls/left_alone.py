"""Functions that the user wants to be left as they are: Python runs them, and what they change is found behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.lookup import own_attributes
from stillgraph.operators.objects.changes import CONTAINERS, note_contents
from stillgraph.program.facts.module_tables import MODULE_INTERNALS
from stillgraph.trace.capture.session import Session
from stillgraph.trace.control_flow.reachable_values import places_within
from stillgraph.trace.effects.lent import Lending
from stillgraph.trace.heap.contents import is_same
from stillgraph.trace.heap.places import AttributePlace, ContentsPlace, Place


def call_left_alone(
    capture: Session, function: FunctionType, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What such a function gives: ``run(*args, **kwargs)`` calls it."""
    handed = (*args, *kwargs.values())
    lending = Lending(capture, function, handed)
    with capture.executed.paused():
        before = {place.key: (place, place.get()) for place in _places(capture, handed)}
    try:
        with capture.unseen.left_alone():
            return lending.call(lambda a, k: run(*a, **k), args, kwargs)
    finally:
        with capture.executed.paused():
            changed = [each for each in before.values() if not is_same(each[0].get(), each[1])]
        for place, held in changed:
            _take_down(capture, place, held)


def _places(capture: Session, handed: tuple[Any, ...]) -> Iterator[Place]:
    """What the function may change besides what is compared in the end: containers, and what the call has made."""
    within = [place for place, _ in places_within(handed) if isinstance(place, (AttributePlace, ContentsPlace))]
    found = [value for value, _ in capture.finder.everything()]
    tables = {id(table) for owner in (*found, *(place.target for place in within)) for table in _tables(owner)}
    yield from (ContentsPlace(each) for each in found if isinstance(each, CONTAINERS) and id(each) not in tables)
    yield from (p for p in within if id(p.target) not in tables and capture.is_new(p.target) is not False)


def _tables(owner: Any) -> Iterator[Any]:
    """The tables in which an object has its attributes: these are places of their own, or compared in the end."""
    own = own_attributes(owner)
    if type(own) is dict:
        yield own
    if isinstance(owner, torch.nn.Module):
        yield from (own[name] for name in MODULE_INTERNALS if name in own)


def _take_down(capture: Session, place: Place, before: Any) -> None:
    """Let the journal know of a change that it has not seen, and rely on what the function could read there."""
    now = place.get()
    place.set(before)
    if isinstance(place, ContentsPlace):
        note_contents(place.target)
        capture.reads.whole[id(place.target)] = place.target
    else:
        capture.journal.note(place)
    place.set(now)
