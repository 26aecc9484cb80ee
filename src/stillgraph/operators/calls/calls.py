"""Calls: followed into every Python function that may meet a staged value; torch's and Python's own run as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stillgraph.core.diagnostics import DemandError, Refusal, refuse
from stillgraph.operators import dispatch
from stillgraph.operators.calls.binding import call_python, fails_to_bind
from stillgraph.operators.calls.callees import call_by_kind
from stillgraph.operators.calls.meanings import meaning_of
from stillgraph.operators.calls.ways import ANOTHER, WAYS, Settled
from stillgraph.operators.containers.drawing import begun, drawing_call
from stillgraph.operators.objects.array_items import made_by_run
from stillgraph.operators.outside.misread import name_demand, refuse_misread
from stillgraph.operators.outside.streams import note_stream
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.joined.ruled_out import narrowed
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.values.arrays.functions import is_numpy
from stillgraph.trace.values.lists import StagedSpread


@dispatch.call.defined
def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``."""
    capture = session()
    if capture is None:
        return function(*args, **kwargs)
    if capture.has_several:
        args = tuple([_narrowed(capture, value) for value in args])
        kwargs = {name: _narrowed(capture, value) for name, value in kwargs.items()}
    for way in WAYS:
        given = way(capture, function, args, kwargs)
        if type(given) is Settled:
            kwargs = given.kwargs
        elif given is not ANOTHER:
            return given
    meaning = meaning_of(function)
    args = begun(function, args)
    function, args, kwargs = drawing_call(capture, function, meaning is not None, args, kwargs)
    result = _call(capture, meaning, function, args, kwargs)
    if type(result) is StagedSpread:
        message = "Python's own code, or a library's in C, picks an element of a list whose length only the run knows"
        hint = "Pick it in the function itself: values[-1], values[i]."
        raise refuse("SG210", message, location=here(), hint=hint)
    if capture.knowledge.arrays and meaning is None and is_numpy(function):
        result = made_by_run(capture, result)
    if capture.memory.watched:
        capture.memory.require_unchanged(location=here())
    if isinstance(result, Iterator):
        capture.iterators.made(result, (args, kwargs))
    note_stream(capture, result)
    return result


def _narrowed(capture: Session, value: Any) -> Any:
    return narrowed(capture, value) if type(value) is Unjoined else value


def _call(
    capture: Session, meaning: Callable[..., Any] | None, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Do what a function means, or call it as its kind is called; errors of Python's own are told of."""
    try:
        return call_by_kind(capture, function, args, kwargs) if meaning is None else meaning(*args, **kwargs)
    except Exception as error:  # of any kind: whatever Python's own code says to what it does not know
        if not fails_to_bind(function, meaning, error):
            refuse_misread(capture, function, error, meaning is None, (args, kwargs))
            raise
    except Refusal as refused:
        if isinstance(refused.error, DemandError):
            name_demand(function, refused)
        raise
    return call_python(capture, function, args, kwargs)
