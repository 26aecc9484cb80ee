"""What numpy itself would give: tried on arrays of ones, which are like those of the run in dtype and shape."""

from __future__ import annotations

import contextlib
import copy
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stillgraph.core.diagnostics import MisreadError, StillgraphError, refuse
from stillgraph.core.files import is_our_module
from stillgraph.core.lookup import is_exactly
from stillgraph.core.operation import Operation
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.symbolic import without_dispatch_modes
from stillgraph.trace.values.arrays.functions import counterpart
from stillgraph.trace.values.numbers import Staged


class ArrayValue(Staged):
    """What stands for an array or scalar of numpy's: ``tensor`` is its memory.

    Args:
        tensor: what it shares its memory with.
        scalar: whether it is a scalar of numpy's, and not an array without dimensions.
        read_only: whether it is a view that nobody may write to.
    """

    tensor: torch.Tensor
    scalar: bool
    read_only: bool

    def __init__(self, tensor: torch.Tensor, scalar: bool = False, read_only: bool = False) -> None:
        self.__dict__.update(tensor=tensor, scalar=scalar, read_only=read_only)


@dataclass(frozen=True)
class Tried:
    """What numpy gives for some arrays.

    Attributes:
        value: what it gives.
        given: the arrays, and what else was given.
    """

    value: Any
    given: tuple[Any, ...]


UNKNOWN = Tried(object(), ())
_OF_NO_SIZE = 2  # stands for sizes that only the run knows
OF_VALUES = (ValueError, IndexError, AttributeError, ArithmeticError, RuntimeError)


def tried(real: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Tried:
    """What numpy gives for arrays of ones, or else of zeros, which are indices into all.

    Returns:
        `UNKNOWN` if that says nothing: the layer raises the error as well, or the sizes do not fit.
    """
    numpy: Any = sys.modules["numpy"]
    for fill in (numpy.ones, numpy.zeros):
        given = [_dummy(fill, value) for value in args]
        named = {name: _dummy(fill, value) for name, value in kwargs.items()}
        try:
            with numpy.errstate(all="ignore"), warnings.catch_warnings(), _without_modes():
                warnings.simplefilter("ignore")
                return Tried(real(*given, **named), tuple(torch.utils._pytree.tree_leaves((given, named))))
        except (TypeError, *OF_VALUES):
            continue
    return UNKNOWN


@contextlib.contextmanager
def _without_modes() -> Iterator[None]:
    """Inside, torch computes with real tensors."""
    with without_dispatch_modes(), torch._C.DisableTorchFunction():
        yield


def _dummy(fill: Callable[..., Any], value: Any, length: int = _OF_NO_SIZE) -> Any:
    """What is like a value, and known."""
    if is_exactly(value, (tuple, list)):
        return type(value)(_dummy(fill, each, length) for each in value)
    if not isinstance(value, (ArrayValue, torch.Tensor)):
        return value
    tensor = value.tensor if isinstance(value, ArrayValue) else value
    with torch._C.DisableTorchFunction():
        shape = tuple(each if type(each) is int else length for each in tensor.shape)
        made = fill(shape, str(tensor.dtype).removeprefix("torch."))
        if all(type(each) is int for each in tensor.shape) and not tensor.is_contiguous():
            made = _laid_out(made, tensor.stride())
    if isinstance(value, ArrayValue):
        if value.read_only:
            made.flags.writeable = False
        return made[()] if value.scalar else made
    with _without_modes():
        return torch.from_numpy(made).requires_grad_(tensor.requires_grad)


def _laid_out(array: Any, steps: tuple[Any, ...]) -> Any:
    """The same array, with its elements in memory as those of a tensor."""
    if not all(type(step) is int for step in steps) or not all(steps):
        return array
    numpy: Any = sys.modules["numpy"]
    span = sum((size - 1) * step for size, step in zip(array.shape, steps, strict=True)) + 1
    memory = numpy.zeros(max(span, 1), array.dtype)
    made = numpy.lib.stride_tricks.as_strided(memory, array.shape, [step * array.itemsize for step in steps])
    made[...] = array
    return made


def fail_as_numpy(real: Callable[..., Any] | None, args: Any, kwargs: dict[str, Any]) -> None:
    """Raise what numpy raises for arrays of ones, if it does: for these shapes and types."""
    numpy: Any = sys.modules["numpy"]
    if real is None or any(map(_is_none_of_numpys, torch.utils._pytree.tree_leaves((args, kwargs)))):
        return
    given = [_dummy(numpy.ones, value) for value in args]
    named = {name: _dummy(numpy.ones, value) for name, value in kwargs.items()}
    with numpy.errstate(all="ignore"), _without_modes():
        real(*given, **named)


def _is_none_of_numpys(value: Any) -> bool:
    is_ours = is_our_module(type(value).__module__) and not isinstance(value, ArrayValue)
    return isinstance(value, torch.Tensor) or is_ours


def require_alike(
    real: Callable[..., Any] | None, layers: Callable[..., Any], own: Any, args: Any, kwargs: dict[str, Any]
) -> None:
    """Refuse a function of the layer's that gives other values than numpy's for some samples, or fails at them.

    Args:
        real: numpy's function.
        layers: that of the layer, which takes arrays of numpy's; it gives the result, and ``own`` as it is then.
        own: the array that the functions are methods of.
        args: the other arguments, by position.
        kwargs: those by keyword.

    Raises:
        CaptureError: it does.
    """
    numpy: Any = sys.modules["numpy"]
    name = getattr(real, "args", (getattr(real, "__name__", ""),))[0]
    leaves = torch.utils._pytree.tree_leaves((args, kwargs))
    if real is None or name in _OF_NO_VALUES or any(map(_is_none_of_numpys, leaves)):
        return
    for sample in (_sample, _signed_sample):
        given = [_dummy(sample, value) for value in (*own, *args)]
        if name in _IN_ORDER and len(given) > _IN_ORDER[name]:
            given[_IN_ORDER[name]] = numpy.sort(given[_IN_ORDER[name]])
        named = {key: _dummy(sample, value) for key, value in kwargs.items()}
        theirs, theirs_named = copy.deepcopy((given, named))
        with numpy.errstate(all="ignore"), warnings.catch_warnings(), _without_modes():
            warnings.simplefilter("ignore")
            try:
                wanted = real(*theirs, **theirs_named), theirs[: len(own)]
            except Exception:  # of any kind: numpy's own; the sample tells nothing
                continue
            try:
                found = layers(*given, **named)
            except StillgraphError:
                raise
            except Exception as error:  # of any kind: that of the layer, or of torch
                message = f"torch's numpy layer does not do what is asked of an array of the run ({error})"
                raise refuse("SG310", message, location=here(), hint=counterpart(real), kind=MisreadError) from error
            alike = _are_alike(wanted, found)
        if not alike:
            message = f"torch's numpy layer gives other values than numpy for {name.strip('_')}"
            raise refuse("SG310", message, location=here(), hint=counterpart(real))


_OF_NO_VALUES = frozenset({"empty_like", "argsort", "argpartition", "lexsort", "svd", "qr", "eig", "eigh"})
"""Functions whose values are left open: of no values, in the order of equal ones, or up to signs."""

_IN_ORDER = {"interp": 1, "searchsorted": 0}
"""Functions that want one of their arguments in order, and which that is."""


def _sample(shape: tuple[int, ...], dtype: str) -> Any:
    """An array with zeros, halves and whole numbers."""
    numpy: Any = sys.modules["numpy"]
    values = numpy.arange(math.prod(shape)) * 7 % 11 / 2
    return (values.astype(numpy.int64) % 2 if dtype == "bool" else values).astype(dtype).reshape(shape)


def _signed_sample(shape: tuple[int, ...], dtype: str) -> Any:
    """As `_sample`, with negative numbers where there are such."""
    numpy: Any = sys.modules["numpy"]
    values = numpy.arange(math.prod(shape)) * 7 % 11 / 2 - 2.5
    return values.astype(dtype).reshape(shape) if numpy.dtype(dtype).kind in "ifc" else _sample(shape, dtype)


def _are_alike(wanted: Any, found: Any) -> bool:
    """Whether arrays, or sequences of such, hold the same values, as far as they are of one shape."""
    numpy: Any = sys.modules["numpy"]
    if isinstance(wanted, (tuple, list)) and isinstance(found, (tuple, list)):
        return all(map(_are_alike, wanted, found))
    found = found.tensor if isinstance(found, ArrayValue) else found
    if not isinstance(wanted, (numpy.ndarray, numpy.generic)) or not isinstance(found, torch.Tensor):
        return True
    mine = found.detach().numpy()
    if mine.shape != wanted.shape or mine.dtype != wanted.dtype:
        return True  # see `as_in_numpy`
    if not numpy.issubdtype(wanted.dtype, numpy.inexact):
        return bool(numpy.array_equal(mine, wanted))
    close = 1e-2 if wanted.dtype == numpy.float16 else 1e-4
    return bool(numpy.allclose(mine, wanted, close, close, equal_nan=True))


def as_in_numpy(real: Any, outcome: Tried, result: Any, given: tuple[Any, ...]) -> Any:
    """What the layer gives as what numpy gives: of the same kind, and views where numpy gives views.

    Args:
        real: numpy's function.
        outcome: what it gives for arrays like those that are given.
        result: what the layer gives.
        given: to both.

    Raises:
        CaptureError: numpy gives something else, or nobody can tell what.
    """
    made = _of_the_same_kind(real, outcome.value, result)
    if outcome is UNKNOWN:
        return made
    arrays = [*zip(outcome.given, torch.utils._pytree.tree_leaves(given), strict=True)]
    if isinstance(made, ArrayValue):
        return _with_memory_as(outcome.value, made, arrays)
    if isinstance(made, (tuple, list)) and any(isinstance(each, ArrayValue) for each in made):
        parts = [_with_memory_as(mine, each, arrays) for mine, each in zip(outcome.value, made, strict=True)]
        return type(made)(*parts) if hasattr(made, "_fields") else type(made)(parts)
    return made


def _with_memory_as(wanted: Any, made: Any, arrays: list[tuple[Any, Any]]) -> Any:
    """An array with memory of its own where numpy's has such; where numpy's alone is a view, nothing may be written to.

    Args:
        wanted: what numpy gives.
        made: what the layer gives.
        arrays: what both are given, numpy first.
    """
    if not isinstance(made, ArrayValue) or made.scalar:
        return made
    numpy: Any = sys.modules["numpy"]
    known = [(real, each) for real, each in arrays if isinstance(real, numpy.ndarray) and isinstance(each, ArrayValue)]
    for real, each in known:
        if real is wanted:
            return each
    is_view = any(numpy.may_share_memory(wanted, real) for real, _ in known)
    with torch._C.DisableTorchFunction():
        storage = made.tensor.untyped_storage()._cdata
        shares = any(each.tensor.untyped_storage()._cdata == storage for _, each in known)
    if shares and not is_view:
        return type(made)(made.tensor.clone())
    if is_view and not (shares and wanted.flags.writeable):
        keep_unwritten([made.tensor, *(each.tensor for _, each in known)])
    return made if wanted.flags.writeable else type(made)(made.tensor, read_only=True)


keep_unwritten: Operation[[Sequence[torch.Tensor]], None] = Operation("keep unwritten")
"""Refuse that some tensors are written to from now on: the program has copies where eager has views."""


def _of_the_same_kind(real: Any, wanted: Any, result: Any) -> Any:
    """What the layer gives as what numpy gives: an array or a scalar, a tuple or a list.

    Raises:
        CaptureError: numpy gives something else, or nobody can tell what.
    """
    numpy: Any = sys.modules["numpy"]
    is_array_ = isinstance(wanted, (numpy.ndarray, numpy.generic))
    if isinstance(result, ArrayValue) and is_array_:
        _require_same_type(real, wanted, result)
        return type(result)(result.tensor, isinstance(wanted, numpy.generic))
    if isinstance(result, (tuple, list)) and isinstance(wanted, (tuple, list)) and len(result) == len(wanted):
        parts = [_of_the_same_kind(real, mine, each) for mine, each in zip(wanted, result, strict=True)]
        return type(wanted)(*parts) if hasattr(wanted, "_fields") else type(wanted)(parts)
    if isinstance(result, ArrayValue) and wanted is UNKNOWN.value and result.tensor.dim():
        return result
    if is_array_ or isinstance(result, (ArrayValue, tuple, list)):
        given = "what nobody can tell before the run" if wanted is UNKNOWN.value else f"a {type(wanted).__name__}"
        message = f"numpy gives {given} here, torch's numpy layer a {_named(result)}"
        raise refuse("SG310", message, location=here(), hint=counterpart(real))
    return result


def _named(value: Any) -> str:
    return "ndarray" if isinstance(value, ArrayValue) else type(value).__name__


def _require_same_type(real: Any, wanted: Any, result: ArrayValue) -> None:
    with torch._C.DisableTorchFunction():
        mine = str(result.tensor.dtype).removeprefix("torch.")
        shape = tuple(result.tensor.shape)
    known = all(type(size) is int for size in shape)
    if wanted.dtype.name != mine or len(wanted.shape) != len(shape) or (known and wanted.shape != shape):
        message = f"numpy gives {wanted.dtype.name}{list(wanted.shape)} here, torch's numpy layer {mine}{list(shape)}"
        raise refuse("SG310", message, location=here(), hint=counterpart(real))


def like_array(array: ArrayValue, length: int) -> Any:
    """An array of ones like another one, of ``length`` where only the run knows how long that is."""
    fill: Callable[..., Any] = sys.modules["numpy"].ones
    return _dummy(fill, array, length)
