"""Which exception the program has caught, where the capture knows those that it may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stillgraph.program.operations import which, without_traceback
from stillgraph.program.types import JoinFailure
from stillgraph.trace.control_flow.unjoined import Unjoined
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.values.caught import CaughtPart, raised_of, slot
from stillgraph.trace.values.raised import classes, told_apart
from stillgraph.trace.values.text import StagedText

_MOST = 5  # each but one is a branch around what is done with it
_TOLD = "stillgraph_told"


def exception_of(recorder: Recorder, error: Any) -> Any:
    """An exception like the one that is caught, or one for each that it may be; None if they are not known."""
    known = told_apart(raised_of(error))
    if not known:
        return None
    texts = tuple(str(each.text) for each in known)
    return _one_of(recorder, error, tuple(type(each.error) for each in known), texts, [each.error for each in known])


def class_of(recorder: Recorder, error: Any) -> Any:
    """The class of the exception that is caught, or one for each that it may be; None if they are not known."""
    known = classes(raised_of(error))
    return _one_of(recorder, error, tuple(known), None, known) if known else None


def class_in_run(recorder: Recorder, error: Any) -> CaughtPart:
    """What stands for the class of an exception that is caught, where only the run knows it."""
    return CaughtPart(error, "type", lambda name: StagedText(recorder, f"{{.__class__.{name}}}", (error,)))


def _one_of(recorder: Recorder, error: Any, kinds: tuple[Any, ...], texts: Any, values: Sequence[Any]) -> Any:
    if len(values) > _MOST:
        return None
    asked: list[tuple[Region, Any, Any]] = slot(error, "__dict__").setdefault(_TOLD, [])
    for region, what, told in asked:
        if what == (kinds, texts) and _is_around(region, recorder.region):
            return told
    told = values[-1]
    index = recorder.fresh_result(int, recorder.emit("call_function", which, (error, kinds, texts), {}))
    for number in reversed(range(len(values) - 1)):
        failure = JoinFailure("SG203", f"a caught exception is {_shown(values[number])} or another")
        told = Unjoined(index == number, values[number], told, "the exception", failure)
    asked.append((recorder.region, (kinds, texts), told))
    return told


def _shown(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


def _is_around(region: Region, inner: Region | None) -> bool:
    while inner is not None and inner is not region:
        inner = inner.parent
    return inner is region


def clear_traceback(recorder: Recorder, error: Any) -> None:
    """Record that a caught exception gives up its traceback."""
    recorder.emit("call_function", without_traceback, (error,), {})
