"""Whole numbers where Python asks for an index: a tensor or truth value of the run is one, too."""

from __future__ import annotations

import operator
from typing import Any

import torch

from stillgraph.operators.dispatch import indexed
from stillgraph.program.types import NumberType
from stillgraph.trace.capture.session import Session
from stillgraph.trace.control_flow.spreads import is_spread
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.lists import Leaf, StagedSpread
from stillgraph.trace.values.numbers import StagedBool, StagedInt, is_mixed
from stillgraph.trace.values.operands import require_known


def _is_of_whole_numbers(items: list[Any]) -> bool:
    spreads = [each.element for each in items if type(each) is StagedSpread]
    numbers = (each for each in items if type(each) is not StagedSpread)
    columns = all(isinstance(each, Leaf) and each.type == NumberType(int) for each in spreads)
    return columns and all(type(each) is int or isinstance(each, StagedInt) for each in numbers)


NOT_AN_INDEX = "only integer tensors of a single element can be converted to an index"


def as_index(capture: Session, value: Any) -> Any:
    """What Python indexes with, staged where only the run knows it; the bounds of a slice likewise.

    Raises:
        TypeError: as eager PyTorch, for a tensor of floats.
    """
    if isinstance(value, slice):
        return slice(*(as_index(capture, bound) for bound in (value.start, value.stop, value.step)))
    if isinstance(value, torch.Tensor):
        if value.dtype.is_floating_point or value.dtype.is_complex:
            raise TypeError(NOT_AN_INDEX)
        numel = capture.to_fake(value).numel()
        if isinstance(numel, int) and numel != 1:
            raise TypeError(NOT_AN_INDEX)
        if not isinstance(numel, int):
            capture.before_raise(TypeError)
        return capture.fresh_result(int, capture.emit("call_function", operator.index, (value,), {}))
    if isinstance(value, StagedArray):
        return _of_scalar(value)
    if isinstance(value, StagedBool) or (isinstance(value, StagedInt) and is_mixed(value)):
        require_known((value,), "is an index")
        return capture.number_operation(int, (value,))
    return indexed(value)


def _of_scalar(array: StagedArray) -> Any:
    """The number in a whole number of numpy's; any other array as it is."""
    dtype = array.tensor.dtype
    is_whole = not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool
    return array.tensor.item() if is_whole and not array.tensor.dim() else array


def in_tensor(key: Any) -> Any:
    """What a tensor is indexed with.

    Of an array of the run that is its memory, a tensor; of a whole number of numpy's its number; of a list of whole
    numbers of which only the run knows the length a tensor of them.
    """
    if type(key) is list and is_spread(key) and _is_of_whole_numbers(key):
        return torch.tensor(key, dtype=torch.int64)
    if isinstance(key, StagedArray):
        return key.tensor if key.tensor.dim() else _of_scalar(key)
    if isinstance(key, slice):
        return slice(*map(in_tensor, (key.start, key.stop, key.step)))
    if type(key) is tuple:
        return tuple(map(in_tensor, key))
    try:
        return indexed(key)
    except TypeError:  # for which torch has words of its own
        return key


def counted(capture: Session, left: Any, right: Any) -> tuple[Any, Any]:
    """The operands of ``left * right``, where a tensor may say how often a sequence of Python's is repeated."""
    if isinstance(right, torch.Tensor) and isinstance(left, _SEQUENCES):
        return left, as_index(capture, right)
    if isinstance(left, torch.Tensor) and isinstance(right, _SEQUENCES):
        return as_index(capture, left), right
    if isinstance(left, _SEQUENCES):
        return left, indexed(right, "__rmul__")
    return (indexed(left, "__mul__"), right) if isinstance(right, _SEQUENCES) else (left, right)


_SEQUENCES = (list, tuple, str, bytes)
