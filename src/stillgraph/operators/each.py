"""Operands that are one value or another, by the path: an operator is applied to each, in the arms of a branch."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.control_flow.joined.unjoined import Unjoined

Applied = TypeVar("Applied", bound=Callable[..., Any])


class Case(enum.Flag):
    """What an operand may be."""

    UNJOINED = enum.auto()
    """Two values without a join."""
    NONE = enum.auto()
    """A value that is None on some path."""


ANY = Case.UNJOINED | Case.NONE


def of_each(*positions: int, cases: Case = ANY) -> Callable[[Applied], Applied]:
    """Let an operator meet one of the values at a time that its operands may be.

    It is not for what stands for a function of Python's (`calls.binding` asks that for its parameters).

    Args:
        positions: of the operands.
        cases: what they are told apart by; the operator deals with the others itself.
    """

    def decorator(operator: Applied) -> Applied:
        @functools.wraps(operator)
        def applied(*args: Any) -> Any:
            capture = session()
            if capture is not None:
                for position in positions:
                    apply = _telling_apart(capture, args[position], cases)
                    if apply is not None:
                        return apply(functools.partial(_with, args, position))
            return operator(*args)

        def _with(args: tuple[Any, ...], position: int, one: Any) -> Any:
            return applied(*args[:position], one, *args[position + 1 :])

        return applied  # type: ignore[return-value]  # of the same parameters, which `wraps` does not tell

    return decorator


def _telling_apart(capture: Session, value: Any, cases: Case) -> Callable[[Callable[[Any], Any]], Any] | None:
    """What does something with each of the values that one may be; None for one value."""
    if Case.UNJOINED in cases and isinstance(value, Unjoined):
        return value.either
    if Case.NONE in cases and capture.may_be_none(value):
        return functools.partial(capture.with_or_without, value)
    return None
