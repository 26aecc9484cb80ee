"""Immutable values of the standard library, numpy and torch: they are compared by what they say, never by address."""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
import uuid
from collections.abc import Callable
from typing import Any

import torch

try:
    import numpy as np

    _SCALARS: tuple[type, ...] = (np.generic,)
except ImportError:  # torch works without it
    _SCALARS = ()


def is_value(value: Any) -> bool:
    """Whether an object is such a value."""
    return type(value) in _KEYS or (isinstance(value, _SCALARS) and not _dtype(value).hasobject)


def value_key(value: Any) -> Any:
    """What is equal for two such values exactly when no program could tell them apart.

    Their own ``==`` is too weak: it takes ``Decimal("1.0")`` for ``Decimal("1.00")``, and a time of day for the same
    time elsewhere.
    """
    known = _KEYS.get(type(value))
    return (_dtype(value), value.tobytes()) if known is None else known(value)


def _dtype(value: Any) -> Any:
    return value.dtype


def _moment(value: Any) -> Any:
    zone = value.tzinfo
    return value.replace(tzinfo=None), value.fold, value_key(zone) if type(zone) in _KEYS else zone


_KEYS: dict[type, Callable[[Any], Any]] = {
    datetime.datetime: _moment,
    datetime.time: _moment,
    datetime.date: datetime.date.toordinal,
    datetime.timedelta: lambda value: value,
    datetime.timezone: lambda value: (value.utcoffset(None), value.tzname(None)),
    decimal.Decimal: lambda value: value.as_tuple(),
    fractions.Fraction: lambda value: (value.numerator, value.denominator),
    uuid.UUID: lambda value: (value.int, value.is_safe),
    **dict.fromkeys(
        (pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath, pathlib.WindowsPath),
        lambda value: (value.drive, value.root, value.parts),
    ),
    **dict.fromkeys((torch.finfo, torch.iinfo), lambda value: value.dtype),
}
