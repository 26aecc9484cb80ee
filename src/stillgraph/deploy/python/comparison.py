"""Do a written file and the program give the same? Classes of the file's own stand for those of the user's."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from stillgraph.deploy.exporting.torch_export import summary
from stillgraph.program.outputs import BOUND


def difference(expected: Any, actual: Any, where: str = "the outcome") -> str | None:
    """What is different, in words; None where nothing is."""
    if isinstance(expected, BaseException) or isinstance(actual, BaseException):
        return _of_errors(expected, actual)
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        return _of_tensors(expected, actual, where)
    if type(expected).__name__ != type(actual).__name__:
        return f"{where} is a {type(actual).__name__}, not a {type(expected).__name__}"
    if isinstance(expected, Mapping):
        if list(expected) != list(actual):
            return f"{where} has the keys {list(actual)}, not {list(expected)}"
        return _first(difference(expected[key], actual[key], f"{where}[{key!r}]") for key in expected)
    if isinstance(expected, (str, bytes)):
        return None if expected == actual else f"{where} is {actual!r}, not {expected!r}"
    if isinstance(expected, enum.Enum):
        same = (expected._name_, expected._value_) == (actual._name_, actual._value_)
        return None if same else f"{where} is {actual!r}, not {expected!r}"
    if isinstance(expected, BOUND) and expected.__name__ == actual.__name__:
        return difference(expected.__self__, actual.__self__, f"{where}.__self__")
    if isinstance(expected, float) and math.isnan(expected):
        return None if math.isnan(actual) else f"{where} is {actual!r}, not nan"
    if isinstance(expected, float) and math.isfinite(expected):
        return None if math.isclose(expected, actual, rel_tol=1e-6) else f"{where} is {actual!r}, not {expected!r}"
    if isinstance(expected, Sequence):
        if len(expected) != len(actual):
            return f"{where} has {len(actual)} elements, not {len(expected)}"
        return _first(difference(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(expected, actual)))
    if not _compares(type(expected)) or type(expected) is not type(actual):
        own, other = getattr(expected, "__dict__", None), getattr(actual, "__dict__", None)
        if own is not None and other is not None and not callable(expected):
            return difference(own, other, where)
    same = expected is actual or _are_equal(expected, actual)
    return None if same else f"{where} is {actual!r}, not {expected!r}"


def _compares(kind: type) -> bool:
    """Whether a class says what is equal to one of its instances; a dataclass compares what it holds, as done here."""
    if dataclasses.is_dataclass(kind):
        return False
    return any("__eq__" in vars(base) for base in kind.__mro__ if base is not object)


def _are_equal(expected: Any, actual: Any) -> bool:
    try:
        return bool(expected == actual)
    except Exception:  # a comparison of the user's, which need not give a truth value
        return False


def _first(found: Any) -> str | None:
    return next((each for each in found if each is not None), None)


def _of_errors(expected: Any, actual: Any) -> str | None:
    if isinstance(expected, BaseException) and isinstance(actual, BaseException):
        same = type(expected).__name__ == type(actual).__name__
        return None if same else f"it raises {summary(actual)}, not {summary(expected)}"
    if isinstance(actual, BaseException):
        return f"it raises {summary(actual)}"
    return f"it does not raise {summary(expected)}"


def _of_tensors(expected: torch.Tensor, actual: torch.Tensor, where: str) -> str | None:
    rtol, atol = (1e-4, 1e-5) if expected.dtype == torch.float32 else (None, None)  # None: torch's own for the dtype
    try:
        torch.testing.assert_close(actual.detach(), expected.detach(), equal_nan=True, rtol=rtol, atol=atol)
    except AssertionError as error:
        return f"{where}: {' '.join(str(error).split())}"
    return None
