"""Python's own functions on values that only the run knows: what a call of each means in a capture."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from types import BuiltinFunctionType, GeneratorType
from typing import Any

import torch

from stillgraph.operators.objects.strings import format_, print_, repr_, str_
from stillgraph.operators.python.classes import isinstance_, issubclass_, type_
from stillgraph.operators.python.extremes import EXTREMES
from stillgraph.operators.python.iteration import all_, any_, list_, reversed_, sum_, tuple_
from stillgraph.operators.python.iterators import enumerate_, zip_
from stillgraph.operators.python.numbers import bool_, float_, index, int_, len_, math_, pow_, range_, round_

_OF_NUMBERS = [each for each in vars(math).values() if isinstance(each, BuiltinFunctionType) and each is not math.prod]

MEANINGS: dict[Any, Callable[..., Any]] = {
    int: int_,
    float: float_,
    bool: bool_,
    len: len_,
    list: list_,
    tuple: tuple_,
    range: range_,
    enumerate: enumerate_,
    zip: zip_,
    reversed: reversed_,
    **EXTREMES,
    sum: sum_,
    any: any_,
    all: all_,
    isinstance: isinstance_,
    torch.is_tensor: lambda obj, /: isinstance_(obj, torch.Tensor),
    inspect.isgenerator: lambda value, /: isinstance_(value, GeneratorType),
    issubclass: issubclass_,
    type: type_,
    print: print_,
    str: str_,
    repr: repr_,
    format: format_,
    pow: pow_,
    round: round_,
    operator.index: index,
    bin: lambda number, /: format_(index(number), "#b"),
    oct: lambda number, /: format_(index(number), "#o"),
    hex: lambda number, /: format_(index(number), "#x"),
    operator.truth: lambda value, /: bool_(value),
    **{function: math_(function) for function in _OF_NUMBERS},
}
"""What a call of one of Python's own functions means in a capture."""
