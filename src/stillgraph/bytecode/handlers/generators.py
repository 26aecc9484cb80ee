"""Iterators and generators: what their instructions do besides going elsewhere (`interpreter.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from types import GeneratorType
from typing import Any

from stillgraph.bytecode.machine.frame import Frame, Handler
from stillgraph.bytecode.machine.iteration import Iteration
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.calls.calls import call
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.containers.drawing import ByMethod, items, iterable_of, run_by_loop
from stillgraph.operators.containers.iterables import as_sequence
from stillgraph.operators.containers.watched import watched_container
from stillgraph.operators.control_flow.generators import Produced
from stillgraph.trace.capture.session import session
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.effects.iterators import is_advanced_unseen


def _get_iter(frame: Frame, _: Any) -> None:
    value = frame.pop()
    frame.push(frame.act(_iterator, value, frame.segment is not None))


def _iterator(value: Any, in_segment: bool) -> Any:
    capture = session()
    if capture is None or isinstance(value, Iteration):
        return iter(value)
    value = iterable_of(value)
    method = method_of(value, "__iter__")
    if method is not None:
        value = call(method, value)
    value = run_by_loop(value)
    known = isinstance(value, (Unjoined, Produced)) or is_exactly(value, _PLAIN)
    if known or as_sequence(value) is not None or watched_container(value) is not None or is_advanced_unseen(value):
        made: Any = Iteration(value)
    elif isinstance(value, Iterator):
        if method_of(value, "__next__") is not None and not in_segment:
            return ByMethod(value)
        return value if method is not None else iter(value)  # it was asked for its iterator
    else:
        made = iter(value)
    capture.iterators.made(made, value)
    return made


_PLAIN = (list, tuple, frozenset, str, bytes, range)


def _return_generator(frame: Frame, _: Any) -> None:
    frame.push(None)  # what is popped next, where Python begins with what was sent


def _get_yield_from_iter(frame: Frame, _: Any) -> None:
    value = frame.pop()
    frame.push(value if isinstance(value, GeneratorType) else frame.act(lambda values: iter(items(values)), value))


def _end_send(frame: Frame, _: Any) -> None:
    value = frame.pop()
    frame.pop()
    frame.push(value)


def _stopiteration_error(frame: Frame, _: Any) -> None:
    error = frame.pop()
    if isinstance(error, StopIteration):
        fresh = RuntimeError("generator raised StopIteration")
        fresh.__cause__ = fresh.__context__ = error
        error = fresh
    frame.push(error)


HANDLERS: dict[str, Handler] = {
    "GET_ITER": _get_iter,
    "RETURN_GENERATOR": _return_generator,
    "GET_YIELD_FROM_ITER": _get_yield_from_iter,
    "END_SEND": _end_send,
    "STOPITERATION_ERROR": _stopiteration_error,
}
