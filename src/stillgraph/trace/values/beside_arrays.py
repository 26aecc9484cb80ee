"""Python's numbers of the run beside numpy's arrays of the run: numpy takes them in a dtype of its own."""

from __future__ import annotations

import sys
from typing import Any

import torch

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
