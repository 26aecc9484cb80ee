"""Python's numbers of the run beside numpy's arrays, and as their elements: numpy takes them in a dtype of its own."""

from __future__ import annotations

import sys
from typing import Any

import torch

from stillgraph.core.lookup import is_exactly
from stillgraph.trace.values.numbers import StagedNumber, kind_of
from stillgraph.trace.values.operands import require_one_kind

_OPERATORS = frozenset({"add", "sub", "mul", "truediv", "eq", "ne", "lt", "le", "gt", "ge"})
_DTYPES = ("int64", "float32", "float64")  # which take every number; one of fewer bits is asked whether it fits


def is_taken(name: str, value: Any) -> bool:
    """Whether an operator of an array's takes a number as each of numpy's functions would, whatever its value."""
    plain = name.strip("_")
    return isinstance(value, StagedNumber) and any(plain in (each, f"r{each}", f"i{each}") for each in _OPERATORS)


def number_in_dtype(name: str, number: StagedNumber, dtype: torch.dtype) -> torch.Tensor:
    """What numpy makes of a number beside an array of a dtype, as a tensor without dimensions.

    Args:
        name: of the operator: a quotient of whole numbers is of ``float64``.
        number: the operand.
        dtype: of the array.

    Raises:
        CaptureError: the kind of the number depends on the path; or whether it fits is not known.
    """
    require_one_kind((number,), "meets a numpy array")
    numpy: Any = sys.modules["numpy"]
    wanted = numpy.result_type(numpy.ones(1, str(dtype).removeprefix("torch.")), kind_of(number)(1)).name
    wanted = "float64" if wanted == "int64" and "truediv" in name else wanted
    if wanted not in _DTYPES:
        number.recorder.number_meets_array(number)
    exact = torch.int64 if wanted == "int64" else torch.float64
    value: Any = number
    return torch.full((), value, dtype=exact).to(torch.float32 if wanted == "float32" else exact)


def number_put_in(number: StagedNumber, dtype: torch.dtype) -> torch.Tensor:
    """What an element of an array becomes to which a number is assigned, as a tensor without dimensions.

    Args:
        number: what is assigned.
        dtype: of the array.

    Raises:
        CaptureError: the kind of the number depends on the path; or the array may not take it, for its value.
    """
    require_one_kind((number,), "is put in a numpy array")
    kind = kind_of(number)
    takes_all = dtype in (torch.float32, torch.float64)
    if not (takes_all or (dtype == torch.int64 and kind is not float) or (dtype == torch.bool and kind is bool)):
        number.recorder.number_meets_array(number)
    value: Any = number
    return torch.full((), value, dtype=torch.float64 if takes_all else dtype).to(dtype)


def array_of_numbers(data: Any) -> torch.Tensor | None:
    """The tensor with the elements of the array that numpy makes of numbers, some of them of the run.

    Args:
        data: a number, or lists and tuples of numbers. Lists of one nesting have one length.

    Returns:
        None where something else is among them, or none is of the run.

    Raises:
        CaptureError: the kind of a number depends on the path.
    """
    leaves = _leaves(data)
    numbers = [each for each in leaves if isinstance(each, StagedNumber)]
    if not numbers or _shape(data) is None:
        return None
    if any(not isinstance(each, StagedNumber) and type(each) not in _OF_KIND for each in leaves):
        return None
    require_one_kind(tuple(numbers), "becomes an element of a numpy array")
    kinds = {kind_of(each) if isinstance(each, StagedNumber) else type(each) for each in leaves}
    return torch.tensor(data, dtype=next(dtype for kind, dtype in _OF_KIND.items() if kind in kinds))


_OF_KIND = {float: torch.float64, int: torch.int64, bool: torch.bool}
"""What numpy makes of Python's numbers: of several kinds, the first of these."""


def _leaves(data: Any) -> list[Any]:
    return [leaf for each in data for leaf in _leaves(each)] if is_exactly(data, (list, tuple)) else [data]


def _shape(data: Any) -> tuple[int, ...] | None:
    """The lengths of nested lists; None where those of one nesting differ."""
    if not is_exactly(data, (list, tuple)):
        return ()
    inner = {_shape(each) for each in data}
    first = next(iter(inner), ())
    return None if len(inner) > 1 or first is None else (len(data), *first)
