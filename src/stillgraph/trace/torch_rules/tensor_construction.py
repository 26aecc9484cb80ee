"""Construction of tensors from data (`torch.tensor`, `as_tensor`): of staged numbers, nested lists and arrays."""

from __future__ import annotations

import contextlib
import functools
import operator
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.lookup import is_exactly
from stillgraph.program.facts.info import info
from stillgraph.trace.torch_rules.number_results import refuse_mixed
from stillgraph.trace.values.arrays.beside import number_in_dtype
from stillgraph.trace.values.arrays.functions import is_array
from stillgraph.trace.values.arrays.staged_array import StagedArray, call_numpy
from stillgraph.trace.values.numbers import StagedNumber, is_mixed, is_number, is_of_numpy, kind_of

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T = torch.Tensor


def from_data(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``torch.tensor(data)`` and ``as_tensor``: staged elements are stacked, arrays become constants."""
    data = args[0] if args else kwargs.get("data")
    if isinstance(data, StagedArray):
        shares = func in (torch.from_numpy, torch.as_tensor, torch.asarray) and not kwargs
        return recorder.record(_T.detach, (data.tensor,), {}) if shares else _copied(recorder, data.tensor, kwargs)
    if isinstance(data, torch.Tensor):
        is_either = info(data).may_be_number and kwargs.get("dtype") is not None
        return _of_either(recorder, func, data, kwargs) if is_either else recorder.record(func, args, kwargs)
    if isinstance(data, (tuple, list)) and _holds_staged(data):
        return _stack(recorder, data, kwargs)
    if is_number(data) and isinstance(data, StagedNumber):
        return _scalar(recorder, data, kwargs)
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        return of_array(recorder, func, data, args[1:], kwargs)
    return recorder.record(func, args, kwargs)


def _of_either(recorder: Recorder, func: Any, value: torch.Tensor, kwargs: dict[str, Any]) -> Any:
    """A tensor made of what is a tensor on one path and a number on the other: a new one in either case.

    Args:
        recorder: the capture.
        func: `torch.tensor` or `torch.as_tensor`.
        value: the tensor or number.
        kwargs: as `torch.tensor` has them, with a ``dtype``.
    """
    like = recorder.to_fake(value)
    device = torch.device(kwargs.get("device") or like.device)
    fake = recorder.symbolic.empty((), kwargs["dtype"], device, bool(kwargs.get("requires_grad")))
    return recorder.bind(fake, recorder.emit("call_function", func, (value,), kwargs))


def _copied(recorder: Recorder, tensor: torch.Tensor, kwargs: dict[str, Any]) -> Any:
    """``torch.tensor(array)``, by what torch does not warn of where it gets a tensor."""
    options = {name: kwargs[name] for name in ("dtype", "device") if kwargs.get(name) is not None}
    if options:
        result = recorder.record(_T.to, (tensor,), {**options, "copy": True})
    else:
        result = recorder.record(torch.clone, (tensor,), {})
    if kwargs.get("requires_grad"):
        recorder.__torch_function__(_T.requires_grad_, (), (result,))
    return result


def of_array(recorder: Recorder, func: Any, array: Any, args: Any = (), kwargs: Any = None) -> Any:
    """A tensor made of a numpy array that is known: each run makes it, unless it is the memory of one from outside."""
    with torch._C.DisableTorchFunction():
        made = func(array, *args, **(kwargs or {}))
        needs_gradient, made = made.requires_grad, made.detach()
        shared = is_array(array) and made.numel() > 0 and made.data_ptr() == array.ctypes.data
        outside = shared and (recorder.is_outer(array) or recorder.memory.holds(array))
        constant = made if outside else made.clone()
    result = constant if outside else recorder.record(torch.clone, (constant,), {})
    if shared:
        recorder.memory.share(array, recorder.to_fake(result))
    return recorder.__torch_function__(_T.requires_grad_, (), (result,)) if needs_gradient else result


_UFUNCS: dict[Any, str] = {
    operator.add: "add",
    operator.sub: "subtract",
    operator.mul: "multiply",
    operator.truediv: "divide",
    operator.eq: "equal",
    operator.ne: "not_equal",
    operator.lt: "less",
    operator.le: "less_equal",
    operator.gt: "greater",
    operator.ge: "greater_equal",
}
"""By Python's operator the function of numpy's that does it."""
_TAKING_NUMBERS = {*_UFUNCS.values(), "maximum", "minimum"}


def numpy_operation(recorder: Recorder, function: Any, operands: tuple[Any, ...]) -> Any:
    """An operator, or a function of numpy's on elements, on numbers of the run and on known arrays or scalars.

    Returns:
        What stands for the array or scalar that numpy gives.

    Raises:
        CaptureError: no operation does the same.
    """
    numpy: Any = sys.modules["numpy"]
    function = getattr(numpy, _UFUNCS.get(function, ""), function)
    given: list[Any] = []
    if isinstance(function, numpy.ufunc) and (function.nin == 1 or function.__name__ in _TAKING_NUMBERS):
        with contextlib.suppress(TypeError, ValueError):  # torch has no such arrays
            given = [_staged_array(recorder, each) for each in operands]
    dtypes = {array.tensor.dtype for array in given if isinstance(array, StagedArray)}
    if not given or len(dtypes) > 1:
        recorder.number_meets_array(next(each for each in operands if isinstance(each, StagedNumber)))
    by = "truediv" if function.__name__ == "divide" else function.__name__
    return call_numpy(function, [_in_dtype(by, each, *dtypes) for each in given], {})


def _staged_array(recorder: Recorder, value: Any) -> Any:
    """What stands for an array or scalar of numpy's that is known; any other value as it is.

    Raises:
        TypeError: it is of a class derived from numpy's, such as a matrix or masked array; or torch has no such dtype.
    """
    numpy: Any = sys.modules["numpy"]
    if isinstance(value, numpy.generic) and type(value) is value.dtype.type:
        return StagedArray(torch.as_tensor(value).clone(), True)
    if is_exactly(value, (numpy.ndarray,)):
        return StagedArray(of_array(recorder, torch.from_numpy, value))
    if is_of_numpy(value):
        raise TypeError(f"{type(value).__name__} does operators in its own way")
    return value


def _in_dtype(name: str, value: Any, dtype: torch.dtype | None = None) -> Any:
    """A number of the run as a scalar of the dtype in which numpy takes it beside arrays of a dtype."""
    if not isinstance(value, StagedNumber):
        return value
    if dtype is None and kind_of(value) is bool:
        value.recorder.number_meets_array(value)  # numpy computes with it in half precision
    if dtype is None:
        dtype = torch.float64 if kind_of(value) is float else torch.int64
    return StagedArray(number_in_dtype(name, value, dtype), True)


def _holds_staged(data: Any) -> bool:
    if isinstance(data, (tuple, list)):
        return any(_holds_staged(item) for item in data)
    return isinstance(data, (torch.Tensor, StagedNumber, StagedArray))


def _scalar(recorder: Recorder, number: Any, kwargs: dict[str, Any]) -> Any:
    defaults = {bool: torch.bool, int: torch.int64, float: torch.get_default_dtype()}
    dtype = kwargs.get("dtype")
    if dtype is None and is_mixed(number):
        raise refuse_mixed("decides the dtype of a tensor")
    dtype = dtype or defaults[kind_of(number)]
    device = kwargs.get("device")
    fake = recorder.symbolic.empty((), dtype, torch.device(device or "cpu"), bool(kwargs.get("requires_grad")))
    return recorder.bind(fake, recorder.emit("call_function", torch.tensor, (number,), kwargs))


def _stack(recorder: Recorder, data: Any, kwargs: dict[str, Any]) -> Any:
    """Nested lists with staged elements, as ``torch.tensor`` would read them: values only, no gradient."""

    def do(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return recorder.record(function, args, options)

    dtype = kwargs.get("dtype")
    rows = [_element(recorder, item, {} if dtype is None else {"dtype": dtype}) for item in data]
    if dtype is None:
        dtype = functools.reduce(torch.promote_types, (recorder.to_fake(row).dtype for row in rows))
    stacked = do(torch.stack, [do(_T.to, row, dtype) for row in rows])
    if kwargs.get("device") is not None:
        stacked = do(_T.to, stacked, kwargs["device"])
    return do(_T.requires_grad_, stacked) if kwargs.get("requires_grad") else stacked


def _element(recorder: Recorder, item: Any, wanted: dict[str, Any]) -> Any:
    """One element of a nested list as a tensor."""
    if isinstance(item, (tuple, list)):
        return _stack(recorder, item, wanted)
    if isinstance(item, torch.Tensor) and info(item).may_be_number:
        dtype = wanted.get("dtype", recorder.to_fake(item).dtype)
        if not wanted and dtype.is_floating_point:
            raise refuse_mixed("decides the dtype of a tensor")
        return _of_either(recorder, torch.as_tensor, item, {"dtype": dtype})
    if isinstance(item, torch.Tensor):
        return recorder.record(_T.reshape, (recorder.record(_T.detach, (item,), {}), ()), {})
    if isinstance(item, StagedNumber):
        return _scalar(recorder, item, wanted)
    if isinstance(item, StagedArray):
        if item.scalar and item.tensor.dtype == torch.bool:
            raise TypeError("'numpy.bool' object cannot be interpreted as an integer")
        return recorder.record(_T.detach, (item.tensor,), {})
    return recorder.record(torch.tensor, (item,), {})
