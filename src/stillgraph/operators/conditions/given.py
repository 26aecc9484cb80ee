"""What methods of the user's give where Python asks for something of one kind: anything else it refuses."""

from __future__ import annotations

from typing import Any

import torch

from stillgraph.operators.conditions.methods import named
from stillgraph.trace.values.arrays import StagedArray
from stillgraph.trace.values.numbers import Staged, StagedBool, StagedNumber, kind_of


class _Truth:
    def __init__(self, given: Any) -> None:
        self._given = given

    def __bool__(self) -> bool:
        return self._given  # type: ignore[no-any-return]  # Python looks at it


class _Length:
    def __init__(self, given: Any) -> None:
        self._given = given

    def __len__(self) -> int:
        return self._given  # type: ignore[no-any-return]  # Python looks at it


def truth_given(given: Any) -> Any:
    """What ``bool(value)`` is where ``__bool__`` has given this.

    Raises:
        TypeError: it is no bool, though it may be one of torch's or numpy's.
    """
    if isinstance(given, StagedBool):
        return given
    if isinstance(given, (torch.Tensor, Staged, StagedArray)):
        raise TypeError(f"__bool__ should return bool, returned {named(given)}")
    return bool(_Truth(given))


def length_given(given: Any) -> Any:
    """What ``len(value)`` is where ``__len__`` has given this.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is a negative one.
        OverflowError: it is too large.
    """
    if isinstance(given, StagedNumber) and kind_of(given) is float:
        raise TypeError("'float' object cannot be interpreted as an integer")
    return given if isinstance(given, (torch.Tensor, Staged, StagedArray)) else len(_Length(given))
