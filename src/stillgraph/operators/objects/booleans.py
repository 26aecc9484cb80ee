"""`and`, `or` and `not`, with Python's short circuit and Python's values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from stillgraph.core.lookup import is_exactly
from stillgraph.operators import dispatch
from stillgraph.operators.conditions.branches import places, select
from stillgraph.operators.conditions.truth import truth
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.values.numbers import StagedBool


@dispatch.and_.defined
def and_(first: Any, *rest: Callable[[], Any], keeps: tuple[str, ...] = ()) -> Any:
    """``first and rest[0]() and …``; ``keeps`` are the variables that these assign by ``:=``."""
    return _chain(first, rest, keeps, stop_at=False)


@dispatch.or_.defined
def or_(first: Any, *rest: Callable[[], Any], keeps: tuple[str, ...] = ()) -> Any:
    """``first or rest[0]() or …``; ``keeps`` as for `and_`."""
    return _chain(first, rest, keeps, stop_at=True)


def _chain(
    value: Any, rest: tuple[Callable[[], Any], ...], keeps: tuple[str, ...], stop_at: bool, operand: int = 1
) -> Any:
    if not rest:
        return value
    capture = session()
    known = bool(value) if capture is None else truth(capture, value)
    if isinstance(known, bool):
        return value if known is stop_at else _chain(rest[0](), rest[1:], keeps, stop_at, operand + 1)
    assert capture is not None

    last: list[Any] = []

    def go_on() -> Any:
        last[:] = [_chain(rest[0](), rest[1:], keeps, stop_at, operand + 1)]
        return last[0]

    def stop() -> Any:
        return value

    if stop_at:
        result = select(capture, known, stop, go_on, f"or {operand}", places(keeps, *rest))
    else:
        result = select(capture, known, go_on, stop, f"and {operand}", places(keeps, *rest))
    if isinstance(result, (StagedBool, torch.Tensor)):
        for each in (known, *last):
            if each is known or (isinstance(each, StagedBool) and capture.region.holds(each)):
                capture.implies(result, not stop_at, each)
    # ``staged or True``; not of how deep a function is inside itself, which would be unrolled, a copy for each call.
    if last and not capture.is_recursing and _is_certain(capture, last[0], stop_at):
        capture.is_certainly(result, stop_at)
    return result


def _is_certain(capture: Session, value: Any, truth: bool) -> bool:
    """Whether a value has this truth in every run."""
    plain = value is None or is_exactly(value, (bool, int, float, str))
    return bool(value) is truth if plain else capture.known_truth(value) is truth


@dispatch.not_.defined
def not_(value: Any) -> Any:
    """``not value``."""
    capture = session()
    known = bool(value) if capture is None else truth(capture, value)
    if isinstance(known, bool):
        return not known
    assert capture is not None
    if isinstance(known, torch.Tensor):
        return capture.fresh_result(bool, capture.emit("call_function", operator.not_, (known,), {}))
    return capture.opposite(known)
