"""What Python says where an operation on numbers fails, and what a saved program says where it has no such number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

WIDE = "OverflowError: a whole number of more than 64 bits, which Python has and a saved program has not"
FRACTION = "RuntimeError: a whole number to a negative power, which is a float in Python and whole in a saved program"
COMPLEX = "RuntimeError: a negative number to a power that is not whole, which is complex in Python"
MIXED = "OverflowError: a number that is an int on one path and a float on another is exact up to 2**53 in a file"
NAN_SORTED = "ValueError: a value that is not a number is sorted, and Python puts it where it happens to end up"
NAN_COMPARED = "ValueError: two values that are not numbers are compared in tuples: for Python they may be one object"
LIMITS = frozenset({WIDE, FRACTION, COMPLEX, MIXED, NAN_SORTED, NAN_COMPARED})
"""Texts of errors that Python does not raise: no handler of the program's may take them."""

LEAST, MOST = -(2**63), 2**63 - 1
"""The whole numbers of 64 bits."""

EXACT = 2**53
"""A float tells whole numbers up to this one from their neighbours."""


def said_of(function: Callable[..., Any], *operands: Any) -> str:
    """Type and text of what the running Python raises for operands that an operation fails for.

    From 3.14 on the text of some has the operand in it, at its end: that is cut off, for it differs from run to run.
    """
    try:
        function(*operands)
    except (ArithmeticError, LookupError, ValueError) as error:
        return f"{type(error).__name__}: {str(error).partition(', got ')[0]}"
    raise AssertionError(f"{function.__name__}{operands} does not fail")
