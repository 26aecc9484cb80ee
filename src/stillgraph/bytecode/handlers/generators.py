"""Iterators and generators: what their instructions do besides going elsewhere (`interpreter.py`)."""

from __future__ import annotations

from types import GeneratorType
from typing import Any

from stillgraph.bytecode.frame import Frame, Handler
from stillgraph.bytecode.iteration import Iteration
from stillgraph.operators.generators import Produced
from stillgraph.operators.sequences import as_sequence
from stillgraph.trace.session import session
from stillgraph.trace.unjoined import Unjoined


def _get_iter(frame: Frame, _: Any) -> None:
    value = frame.pop()
    frame.push(frame.act(_iterator, value))


def _iterator(value: Any) -> Any:
    if session() is None or isinstance(value, Iteration):
        return iter(value)
    if isinstance(value, (Unjoined, Produced)) or as_sequence(value) is not None or type(value) in _PLAIN:
        return Iteration(value)
    return iter(value)


_PLAIN = (list, tuple, dict, set, frozenset, str, bytes, range)


def _return_generator(frame: Frame, _: Any) -> None:
    frame.push(None)  # what is popped next, where Python begins with what was sent


def _get_yield_from_iter(frame: Frame, _: Any) -> None:
    value = frame.pop()
    frame.push(value if isinstance(value, GeneratorType) else frame.act(iter, value))


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
