"""Enumerations: the member that has a value which only the run knows."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, NoReturn

from stillgraph.core.lookup import class_member, is_exactly
from stillgraph.operators.conditions.branches import select
from stillgraph.operators.containers import entries
from stillgraph.operators.dispatch import call
from stillgraph.operators.objects.strings import text
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.raising import emit_raise
from stillgraph.trace.values.numbers import StagedNumber

_NUMBERS = (bool, int, float)
_NO_NUMBERS = (str, bytes, type(None), tuple)


def is_looked_up(kind: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call of a class asks an enumeration for a member by a value of the run, which the program can find."""
    if not _is_enumeration(kind) or not kind.__members__ or kwargs or len(args) != 1:
        return False
    if isinstance(args[0], Unjoined):
        return True
    if not isinstance(args[0], StagedNumber) or issubclass(kind, enum.Flag):
        return False
    values: list[Any] = [member.value for member in kind]
    return all(is_exactly(value, (*_NUMBERS, *_NO_NUMBERS)) for value in values)


def _is_enumeration(kind: Any) -> bool:
    return isinstance(kind, enum.EnumMeta)


def member_of(capture: Session, kind: Any, value: Any) -> Any:
    """``kind(value)``: where no member has the value, ``_missing_`` is asked, or a ValueError raised."""
    if isinstance(value, Unjoined):
        return value.either(lambda each: call(kind, each))
    if capture.may_be_none(value):
        return capture.with_or_without(value, lambda each: call(kind, each))
    members: list[Any] = list(kind)
    known = {member.value: member for member in members if is_exactly(member.value, _NUMBERS)}
    if not known:
        return _missing(capture, kind, value)
    there = entries.has(capture, known, value)
    return select(capture, there, lambda: entries.picked(capture, known, value), lambda: _missing(capture, kind, value))


def _missing(capture: Session, kind: Any, value: Any) -> Any:
    if class_member(kind, "_missing_") is class_member(enum.Enum, "_missing_"):
        _refuse_value(capture, kind, value)
    return _given(capture, kind, value, call(kind._missing_, value))


def _given(capture: Session, kind: Any, value: Any, found: Any) -> Any:
    """What ``_missing_`` has given, if it is a member."""
    if isinstance(found, Unjoined):
        return found.either(lambda each: _given(capture, kind, value, each))
    if isinstance(found, kind):
        return found
    if found is not None:
        said = f"error in {kind.__name__}._missing_: returned {found!r} instead of None or a valid member"
        emit_raise(capture, TypeError(said))
        raise Diverged
    return _refuse_value(capture, kind, value)


def _refuse_value(capture: Session, kind: Any, value: Any) -> NoReturn:
    emit_raise(capture, ValueError(text("{!r} is not a valid {}", value, kind.__qualname__)))
    raise Diverged
