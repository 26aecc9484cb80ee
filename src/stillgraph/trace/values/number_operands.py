"""What Python's own numbers make of operands that are no plain numbers: of ``IntEnum``, ``Fraction``, a user's class.

A number of the run stands for an ``int``, ``float`` or ``bool``. Python's code in C asks for exactly these types, so it
would take the stand-in for something else, and give an answer of its own. Whatever the other operand is, the answer
comes from here: a plain number to compute with, the other operand's own method, or a refusal.
"""

from __future__ import annotations

import enum
from decimal import Decimal
from fractions import Fraction
from typing import Any

from stillgraph.core.lookup import class_member

NUMBERS = (bool, int, float)
"""Python's own types, from the narrowest to the widest."""


def base_value(value: object) -> Any:
    """The plain number that an object of a class derived from ``int`` or ``float`` is; None for all others.

    numpy's are no such: they compute by rules of their own.
    """
    if hasattr(type(value), "__array_interface__"):
        return None
    if isinstance(value, int):
        return int.__pos__(value)
    return float.__pos__(value) if isinstance(value, float) else None


def has_own(value: object, method: str) -> bool:
    """Whether the class of a number, derived from Python's, has a method of its own."""
    member = class_member(type(value), method)
    return all(member is not class_member(kind, method) for kind in NUMBERS)


def takes(kind: type, value: object) -> bool:
    """Whether Python's ``kind`` of number knows what to do with a number, of a derived class perhaps."""
    return isinstance(value, int) or (kind is float and isinstance(value, float))


def is_asked_first(kind: type, value: object, method: str) -> bool:
    """Whether Python asks a number of a derived class what it makes of a plain one on its left, by its ``method``."""
    return has_own(value, method) and (issubclass(type(value), kind) or not takes(kind, value))


def keeps_any_number(value: object) -> bool:
    """Whether an object is a flag of Python's own that makes a flag of any number (``mode & Flag.READ``)."""
    return isinstance(value, enum.IntFlag) and getattr(type(value), "_boundary_", None) is enum.KEEP


UNEQUAL = object()
"""Stands for a number that no number of the run is equal to."""


def equal_number(kind: type, value: object) -> Any:
    """The plain number to which Python's ``kind`` of number is equal just when it is equal to ``value``.

    Returns:
        That number, `UNEQUAL` where there is none, or None where it is not known.
    """
    if type(value) is complex:
        return UNEQUAL if value.imag != 0 else value.real
    if type(value) is Fraction:
        return _exact(value)
    if type(value) is Decimal and kind is not float:  # which sets a flag of the context
        return _exact(Fraction(value)) if value.is_finite() else UNEQUAL if not value.is_snan() else None
    return _scalar(kind, value)


def _exact(value: Fraction) -> Any:
    """The ``int`` or ``float`` of exactly this value."""
    if value.denominator == 1:
        return value.numerator
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        return UNEQUAL
    return nearest if Fraction(nearest) == value else UNEQUAL


def _scalar(kind: type, value: object) -> Any:
    """As `equal_number`, for a scalar of numpy's, which compares in a dtype that depends on both sides."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or getattr(value, "shape", None) != () or not hasattr(value, "item"):
        return None
    if dtype.kind in "biu":
        return value.item() if kind is not float else float(value.item())
    is_exact = kind is float or abs(value.item()) < _ALL_WHOLE  # to this, no two whole numbers are one float
    return value.item() if dtype.str[1:] == "f8" and is_exact else None


_ALL_WHOLE = 2**53


def is_equal_to_none(kind: type, value: object, method: str, reflected: str) -> bool:
    """Whether Python finds by the types alone that a number is not equal to, or cannot be compared with, an object."""
    sample = kind(1)
    try:
        return getattr(kind, method)(sample, value) is NotImplemented and (
            getattr(type(value), reflected)(value, sample) is NotImplemented
        )
    except Exception:  # of any kind: it looks at the number
        return False
