"""Items of numpy's arrays by numbers that only the run knows: torch's indexing, with numpy's errors and kinds."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.operators.dispatch import item
from stillgraph.operators.elements.indices import as_index, in_tensor
from stillgraph.operators.objects.index_errors import require_in_range
from stillgraph.operators.objects.strings import text
from stillgraph.program.sources import has_memory
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.torch_rules.tensor_construction import of_array
from stillgraph.trace.values.arrays.beside import number_put_in
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.arrays.staged_array import StagedArray, refuse_numbers
from stillgraph.trace.values.numbers import Staged, StagedInt, StagedNumber


def is_by_run(target: Any, key: Any) -> bool:
    """Whether something is an array of numpy's, or stands for one, and only the run knows at what it is looked."""
    return isinstance(target, StagedArray) or (is_array(target) and any(map(_is_staged, _flat(key))))


def array_item(capture: Session, target: Any, key: Any) -> Any:
    """``target[key]``, for an array.

    Raises:
        CaptureError: torch has no such indexing.
        IndexError: as numpy, where the array has too few dimensions.
    """
    wanted = key if type(key) is tuple else (key,)
    parts = tuple(_of_tensors(capture, part) for part in wanted)
    if not any(isinstance(each, StagedInt) for each in _flat(parts)):
        return _whole(capture, target, parts)[key]
    array = _whole(capture, target, parts) if all(map(_is_taken, parts)) else None
    if not isinstance(array, StagedArray):
        refuse_numbers([*_flat(parts)])
        raise AssertionError("a number of the run is among them")
    is_scalar = _is_scalar(array.tensor.dim(), parts)
    _require_in_bounds(capture, array, parts)
    found = item(array.tensor, parts if type(key) is tuple else parts[0])
    return StagedArray(found.clone(), True) if is_scalar else StagedArray(found)  # a scalar is no view


def made_by_run(capture: Session, value: Any) -> Any:
    """What numpy has given, where each run is to make the arrays that the function makes."""
    own = is_exactly(value, (sys.modules["numpy"].ndarray,)) and has_memory(value)
    if not own or capture.memory.overlaps(value):
        return value
    with torch._C.DisableTorchFunction():
        constant = torch.from_numpy(value)
    return StagedArray(capture.record(torch.clone, (constant,), {}))


def set_array_item(capture: Session, array: StagedArray, key: Any, value: Any) -> None:
    """``array[key] = value``.

    Raises:
        CaptureError: torch has no such indexing, or the value does not fit the array as numpy has it fit.
        IndexError: as numpy, where the array has too few dimensions.
    """
    parts = tuple(_of_tensors(capture, part) for part in (key if type(key) is tuple else (key,)))
    if not any(isinstance(each, StagedInt) for each in _flat(parts)):
        array[key] = value
        return
    if not all(map(_is_taken, parts)):
        refuse_numbers([*_flat(parts)])
    is_scalar = _is_scalar(array.tensor.dim(), parts)
    _require_in_bounds(capture, array, parts)
    given = _put_in(value, array)
    if is_scalar and given.dim():
        raise refuse("SG310", "an array becomes an element of another one", location=here())
    array.tensor[in_tensor(parts if type(key) is tuple else parts[0])] = given


def _put_in(value: Any, array: StagedArray) -> torch.Tensor:
    """What is to stand in an array, as a tensor of its dtype."""
    if isinstance(value, StagedNumber):
        return number_put_in(value, array.tensor.dtype)
    if isinstance(value, StagedArray):
        return value.tensor.clone() if array.shares_memory(value) else value.tensor
    if is_fake(value):
        raise refuse("SG310", "a tensor is put in an array of numpy's", location=here(), hint="Put in its .numpy().")
    refuse_numbers(value)
    numpy: Any = sys.modules["numpy"]
    made = numpy.zeros(numpy.shape(value), str(array.tensor.dtype).removeprefix("torch."))
    made[...] = value  # numpy says what does not fit
    with torch._C.DisableTorchFunction():
        return torch.from_numpy(made)


def _require_in_bounds(capture: Session, array: StagedArray, parts: tuple[Any, ...]) -> None:
    for axis, index in _axes(array.tensor.dim(), parts):
        if not isinstance(index, slice):
            size = array.shape[axis]
            require_in_range(capture, size, index, functools.partial(_out_of_bounds, axis, size))


def _out_of_bounds(axis: int, size: Any, index: Any) -> Any:
    return text(f"index {{}} is out of bounds for axis {axis} with size {{}}", index, size)


def _whole(capture: Session, target: Any, parts: tuple[Any, ...]) -> Any:
    """What stands for an array; itself, where torch has no such memory, or would give a view that nobody may write."""
    if isinstance(target, StagedArray) or not is_exactly(target, (sys.modules["numpy"].ndarray,)):
        return target
    if not target.flags.writeable:
        if not all(map(_is_taken, parts)) or not _is_scalar(target.ndim, parts):
            return target
        target = target.copy()
    try:
        return StagedArray(of_array(capture, torch.from_numpy, target))
    except (TypeError, ValueError):  # texts and objects; what runs backwards
        return target


def _of_tensors(capture: Session, part: Any) -> Any:
    """What numpy indexes with: it asks a tensor of one element, and its own whole numbers, for their ``__index__``."""
    if isinstance(part, slice):
        return slice(*(_of_tensors(capture, bound) for bound in (part.start, part.stop, part.step)))
    if isinstance(part, StagedInt):
        return as_index(capture, part)
    if isinstance(part, torch.Tensor) and not (part.dtype.is_floating_point or part.dtype.is_complex):
        count = capture.to_fake(part).numel()
        return as_index(capture, part) if isinstance(count, int) and count == 1 else part
    return as_index(capture, part) if isinstance(part, StagedArray) and part.scalar else part


def _flat(key: Any) -> Iterator[Any]:
    for part in key if type(key) is tuple else (key,):
        yield from (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)


def _is_staged(value: Any) -> bool:
    return isinstance(value, (Staged, torch.Tensor))


def _is_taken(part: Any) -> bool:
    """Whether torch takes a part of an index as numpy does, beside a number of the run."""
    if isinstance(part, slice):
        forwards = part.step is None or (type(part.step) is int and part.step > 0)
        return forwards and all(each is None or _is_whole(each) for each in (part.start, part.stop))
    return part is None or part is Ellipsis or _is_whole(part)


def _is_whole(value: Any) -> bool:
    return isinstance(value, StagedInt) or type(value) is int


def _is_scalar(rank: int, parts: tuple[Any, ...]) -> bool:
    """Whether numpy gives a scalar and no array; it raises an IndexError where the array has too few dimensions."""
    numpy: Any = sys.modules["numpy"]
    known = (0 if _is_whole(each) else slice(None) if isinstance(each, slice) else each for each in parts)
    return isinstance(numpy.ones((1,) * rank)[tuple(known)], numpy.generic)


def _axes(rank: int, parts: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
    """The parts of an index, each with the axis that it is for."""
    axis, left = 0, sum(1 for part in parts if part is not None and part is not Ellipsis)
    for part in parts:
        if part is Ellipsis:
            axis = rank - left
        elif part is not None:
            yield axis, part
            axis, left = axis + 1, left - 1
