"""Which exception the program has caught, where the capture knows those that it may be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from stillgraph.program.exceptions import held_by, message_of, which, without_traceback
from stillgraph.program.types import TEXT, JoinFailure, Type, join_types
from stillgraph.trace.control_flow.joined.unjoined import Unjoined, is_leaf, lost
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.graph.typed_values import define
from stillgraph.trace.values.caught import CaughtPart, raised_of, slot
from stillgraph.trace.values.raised import classes, is_plain, told_apart
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


def attribute_of(
    recorder: Recorder, type_of: Callable[[Any], Type], error: Any, name: str
) -> tuple[Any] | None:
    """What a caught exception has by a name, read in the run; None where some that it may be are not known.

    Where nothing is known of some, and the others have one text as their argument, these have, too: the run checks it.

    Args:
        recorder: the capture.
        type_of: the type of a value as seen from behind the ``try``.
        error: what stands for it.
        name: of the attribute.
    """
    raised = raised_of(error)
    held = [each.held for each in raised]
    if not held or not all(each.exact for each in raised) or any(each is None for each in held):
        are_texts = all(each is None or _is_text(each.args) for each in held)
        return ((_message(recorder, error),),) if name == "args" and are_texts else None
    kinds = tuple(dict.fromkeys(type(each) for each in held))
    read = functools.partial(_read, recorder, type_of, error, kinds, name)
    if name == "args":
        columns = [each.args for each in held if each is not None]
        if len({len(each) for each in columns}) != 1:
            return None
        parts = [read(values, position) for position, values in enumerate(zip(*columns))]
        return (tuple(lost("an argument", _UNKNOWN) if part is None else part[0] for part in parts),)
    if all(name in vars(each) for each in held):
        return read([vars(each)[name] for each in held], None)
    of_class = [getattr(kind, name, _UNKNOWN) for kind in kinds if all(name not in vars(each) for each in held)]
    return (of_class[0],) if of_class and all(map(is_plain, of_class)) and len(set(map(repr, of_class))) == 1 else None


_UNKNOWN = JoinFailure("SG301", "what an exception holds is only known at run time")


def _is_text(args: tuple[Any, ...]) -> bool:
    return len(args) == 1 and type(args[0]) in (str, StagedText)


def _message(recorder: Recorder, error: Any) -> Any:
    return define(recorder, TEXT, recorder.emit("call_function", message_of, (error,), {}))


def _read(
    recorder: Recorder,
    type_of: Callable[[Any], Type],
    error: Any,
    kinds: tuple[type, ...],
    name: str,
    values: Sequence[Any],
    position: int | None,
) -> tuple[Any] | None:
    first, *others = values
    if is_plain(first) and all(type(each) is type(first) and repr(each) == repr(first) for each in others):
        return (first,)
    if not all(map(is_leaf, values)):
        return None
    try:
        type_ = functools.reduce(join_types, map(type_of, values))
    except JoinFailure:
        return None
    node = recorder.emit("call_function", held_by, (error, kinds, name, position), {})
    return (define(recorder, type_, node),)


def _shown(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


def _is_around(region: Region, inner: Region | None) -> bool:
    while inner is not None and inner is not region:
        inner = inner.parent
    return inner is region


def clear_traceback(recorder: Recorder, error: Any) -> None:
    """Record that a caught exception gives up its traceback."""
    recorder.emit("call_function", without_traceback, (error,), {})
