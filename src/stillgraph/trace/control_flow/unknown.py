"""Since which line only the run knows the length of a list, or the keys of a dict or set."""

from __future__ import annotations

import collections
from typing import Any

from stillgraph.core.diagnostics import Side, refuse
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.unjoined import is_leaf
from stillgraph.trace.graph.current import current
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.heap.places import AttributePlace, ContentsPlace, Place
from stillgraph.trace.values.entries import container_of
from stillgraph.trace.values.lists import has_spread


def leave(recorder: Recorder, place: Place, value: Any) -> None:
    """Let a place hold what a branch or loop leaves there, and remember the line if that is of unknown length."""
    recorder.journal.write(place, value)
    if isinstance(place, AttributePlace) and is_leaf(value):
        recorder.unboundness(value)  # where an operation fails behind this, the account says whether it is there
    held = place.target if isinstance(place, ContentsPlace) else value
    if id(held) not in recorder.unknown and _is_unknown(held):
        recorder.unknown[id(held)] = (held, here())


def refuse_unknown(code: str, message: str, value: Any, hint: str | None = None) -> BaseException:
    """The refusal of what is done with a list, dict or set of unknown length, with the line that made it so."""
    return refuse(code, message, location=here(), hint=hint, sides=_since(value))


def _since(value: Any) -> tuple[Side, ...]:
    recorder = current()
    held = getattr(value, "mapping", value)
    _, line = (None, None) if recorder is None else recorder.unknown.get(id(held), (None, None))
    if line is None or line == here():
        return ()
    what = "its length is" if isinstance(held, (list, tuple, collections.deque)) else "its keys are"
    return (Side(f"{what} not known since", line),)


def _is_unknown(value: Any) -> bool:
    if isinstance(value, (list, tuple, collections.deque)):
        return has_spread(value)
    return container_of(value) is not None
