"""numpy on staged tensors, by way of torch's own numpy layer: the adapter to `torch._numpy`.

``tensor.numpy()`` gives a `StagedArray`. numpy's functions and operators on it are those of the same name in
`torch._numpy`, whose torch calls are recorded like any others; what leaves the program is a real array again.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import MisreadError, StillgraphError, refuse
from stillgraph.core.files import is_our_module
from stillgraph.trace.frames import here
from stillgraph.trace.numbers import Staged, StagedNumber


class StagedArray(Staged):
    """A numpy array that only the run knows: ``tensor`` is its memory."""

    __array_ufunc__ = None  # an array on the left of an operator leaves it to this class

    def __init__(self, tensor: torch.Tensor) -> None:
        self.__dict__["tensor"] = tensor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and hasattr(sys.modules["numpy"].ndarray, name):
            self._refuse()
        if name.startswith(("__", "stillgraph_")):
            raise AttributeError(name)
        if name in _AS_IN_TORCH:
            return tuple(self.tensor.shape) if name == "shape" else getattr(self.tensor, name)
        value = getattr(_wrapped(self), name, None)
        if value is None:
            raise refuse("SG310", f"the attribute {name} of a numpy array of a staged tensor", location=here())
        if not callable(value):
            return _given_back(value)
        return _calling(value, functools.partial(_method, name, self))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise refuse("SG305", f"the attribute {name} of a numpy array is set", location=here())

    def _refuse(self, *args: Any) -> NoReturn:
        raise refuse("SG301", "a numpy array of a staged tensor is used by code that is not converted", location=here())

    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = __str__ = __repr__ = __array__ = _refuse
    __hash__ = __divmod__ = __rdivmod__ = __contains__ = __complex__ = __copy__ = __deepcopy__ = __delitem__ = _refuse

    def __round__(self, ndigits: Any = None) -> NoReturn:
        if self.tensor.dim():
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        self._refuse()


_AS_IN_TORCH = ("shape", "ndim")
_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"),
    *("neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge", "getitem", "setitem"),
)
_REFLECTED = _OPERATORS[:13]
_IN_PLACE = frozenset({"__setitem__", *(f"__i{name}__" for name in _REFLECTED)})


def _operator(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        real = None if name in _IN_PLACE else functools.partial(_method, name, self)
        result = _calling(getattr(_wrapped(self), name), real)(*args)
        scalar = name == "__getitem__" and isinstance(result, StagedArray) and result.tensor.dim() == 0
        return StagedArray(result.tensor.clone()) if scalar else result  # an element is a number, not a view

    return method


def _names() -> Iterator[str]:
    yield from (f"__{name}__" for name in _OPERATORS)
    for name in _REFLECTED:
        yield f"__r{name}__"
        yield f"__i{name}__"


for _name in _names():
    setattr(StagedArray, _name, _operator(_name))


def _method(name: str, array: StagedArray, *args: Any, **kwargs: Any) -> Any:
    """A method of numpy's own on ones of an array's shape and dtype."""
    ones = _tried(lambda value: value, (array,), {})
    return getattr(ones, name)(*args, **kwargs)


def _layer() -> Any:
    return importlib.import_module("torch._numpy")


def _wrapped(array: StagedArray) -> Any:
    return _layer().ndarray(array.tensor)


def _calling(function: Callable[..., Any], real: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function of the layer's, taking and giving arrays of ours.

    Args:
        function: of the layer.
        real: numpy's own, which says on arrays of ones of what dtype and shape the result has to be.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        wanted = None if real is None else _tried(real, args, kwargs)
        if wanted is None and real is not None:
            with contextlib.suppress(*_OF_VALUES):
                _fail_as_numpy(real, args, kwargs)  # by a TypeError: what torch makes of it may fail in the run alone
        try:
            result = _given_back(function(*map(_handed_in, args), **{k: _handed_in(v) for k, v in kwargs.items()}))
        except (StillgraphError, ArithmeticError):
            raise
        except Exception as error:  # of any kind: that of the layer, or of torch
            _fail_as_numpy(real, args, kwargs)
            message = f"torch's numpy layer does not do what is asked of an array of the run ({error})"
            raise refuse("SG310", message, location=here(), hint=_counterpart(real), kind=MisreadError) from error
        _require_same_kind(real, wanted, result)
        return result

    return call


_OF_VALUES = (ValueError, IndexError, AttributeError, ArithmeticError, RuntimeError)


def _tried(real: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What numpy gives for arrays of ones; None if that says nothing."""
    numpy: Any = sys.modules["numpy"]
    try:
        with numpy.errstate(all="ignore"):
            return real(*map(_dummy, args), **{name: _dummy(value) for name, value in kwargs.items()})
    except (TypeError, *_OF_VALUES):
        return None  # of unknown size, or an error that the layer will raise as well


def _dummy(value: Any) -> Any:
    """Ones for an array of the run."""
    numpy: Any = sys.modules["numpy"]
    if isinstance(value, StagedArray):
        with torch._C.DisableTorchFunction():
            shape, dtype = tuple(value.tensor.shape), str(value.tensor.dtype).removeprefix("torch.")
        ones = numpy.ones(shape, dtype)
        return ones if shape else ones[()]
    return type(value)(map(_dummy, value)) if type(value) in (tuple, list) else value


def _fail_as_numpy(real: Callable[..., Any] | None, args: Any, kwargs: dict[str, Any]) -> None:
    """Raise what numpy raises for arrays of ones, if it does: for these shapes and types."""
    given, named = tuple(map(_dummy, args)), {name: _dummy(value) for name, value in kwargs.items()}
    numpy: Any = sys.modules["numpy"]
    if real is not None and not any(map(_is_none_of_numpys, torch.utils._pytree.tree_leaves((given, named)))):
        with numpy.errstate(all="ignore"):
            real(*given, **named)


def _is_none_of_numpys(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or is_our_module(type(value).__module__)


def _require_same_kind(real: Any, wanted: Any, result: Any) -> None:
    numpy: Any = sys.modules["numpy"]
    if not isinstance(wanted, (numpy.ndarray, numpy.generic)) or not isinstance(result, StagedArray):
        return
    with torch._C.DisableTorchFunction():
        mine = str(result.tensor.dtype).removeprefix("torch.")
        shape = tuple(result.tensor.shape)
    known = all(type(size) is int for size in shape)
    if wanted.dtype.name != mine or (known and wanted.shape != shape):
        message = f"numpy gives {wanted.dtype.name}{list(wanted.shape)} here, torch's numpy layer {mine}{list(shape)}"
        raise refuse("SG310", message, location=here(), hint=_counterpart(real))


_NAMED_OTHERWISE = {"percentile": "torch.quantile, with q / 100,"}


def _counterpart(function: Any) -> str | None:
    """What to write in place of a function of numpy's, where torch has it."""
    name = getattr(function, "__name__", "")
    known = _NAMED_OTHERWISE.get(name)
    if known is None:
        within = [part for part in (_module(function) or "").split(".")[1:] if part in ("fft", "linalg")]
        place: Any = getattr(torch, within[0]) if within else torch
        found = getattr(place, name, None)
        if not callable(found):
            return f"Use .to(torch.{name}) on the tensor itself." if isinstance(found, torch.dtype) else None
        known = ".".join(["torch", *within[:1], name])
    return f"Use {known} on the tensor itself, whose dtype and shape the program knows."


def _handed_in(value: Any) -> Any:
    if isinstance(value, StagedArray):
        return _wrapped(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map(_handed_in, value))
    if isinstance(value, StagedNumber):
        value.recorder.number_meets_array(value)
    numpy: Any = sys.modules["numpy"]
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        with torch._C.DisableTorchFunction():
            constant = torch.as_tensor(value).clone()
        return _layer().ndarray(constant)
    if isinstance(value, (numpy.dtype, type)) and (isinstance(value, numpy.dtype) or issubclass(value, numpy.generic)):
        return _layer().dtype(numpy.dtype(value).name)
    return value


def _given_back(value: Any) -> Any:
    layer = _layer()
    if isinstance(value, layer.ndarray):
        return StagedArray(value.tensor)
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(map(_given_back, value))
    if isinstance(value, layer._dtypes.DType):
        return sys.modules["numpy"].dtype(value.name)
    return value


def require_one_element(array: StagedArray, convert: Callable[[Any], Any]) -> None:
    """Raise what numpy raises where an array becomes one value of Python's, unless it has one element.

    Raises:
        TypeError, ValueError: as numpy, by ``convert``: `bool`, `int` or `float`.
    """
    with torch._C.DisableTorchFunction():
        sizes = tuple(array.tensor.shape)
    if all(type(size) is int for size in sizes) and any(size != 1 for size in sizes):
        convert(_dummy(array))


def is_array(value: Any) -> bool:
    """Whether an object is one of numpy's arrays."""
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and issubclass(type(value), numpy.ndarray)  # the user's code is not to be asked


def is_numpy(function: Any) -> bool:
    """Whether a callable is one of numpy's."""
    return any((module or "").split(".")[0] == "numpy" for module in (function.__class__.__module__, _module(function)))


def refuse_numbers(values: Any) -> None:
    """To be called before code of numpy's gets values: an array cannot hold what stands for a number."""
    for value in torch.utils._pytree.tree_leaves(values):
        if isinstance(value, StagedNumber):
            value.recorder.number_meets_array(value)


def _module(function: Any) -> str | None:
    module = getattr(function, "__module__", None)
    return module if isinstance(module, str) else None


def call_numpy(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A function of numpy's on staged values, by torch's layer.

    Raises:
        CaptureError: the layer does not have it, or it is to work on a staged number.
    """
    refuse_numbers((args, kwargs))
    name = getattr(function, "__name__", str(function))
    place: Any = _layer()
    for part in (_module(function) or "numpy").split(".")[1:]:
        place = getattr(place, part, place)
    found = getattr(place, name, None)
    if found is None or isinstance(function, type):
        message = f"torch's numpy layer has no {name}, which is called on what only the run knows"
        raise refuse("SG310", message, location=here(), hint=_counterpart(function))
    args = tuple(StagedArray(a) if isinstance(a, torch.Tensor) else a for a in args)
    return _calling(found, function)(*args, **kwargs)
