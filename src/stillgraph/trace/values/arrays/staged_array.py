"""numpy on staged tensors, by way of torch's own numpy layer: the adapter to `torch._numpy`.

``tensor.numpy()`` gives a `StagedArray`. numpy's functions and operators on it are those of the same name in
`torch._numpy`, whose torch calls are recorded like any others; what leaves the program is a real array again.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

import torch

from stillgraph.core.diagnostics import MisreadError, StillgraphError, refuse
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.values.arrays.beside import array_of_numbers, is_taken, number_in_dtype, number_put_in
from stillgraph.trace.values.arrays.functions import (
    OF_OUR_OWN,
    _module,
    counterpart,
    floor_divide,
    layer,
    remainder,
    takes_arrays,
)
from stillgraph.trace.values.arrays.trials import (
    OF_VALUES,
    UNKNOWN,
    ArrayValue,
    as_in_numpy,
    fail_as_numpy,
    require_alike,
    tried,
)
from stillgraph.trace.values.numbers import StagedNumber


class StagedArray(ArrayValue):
    """A numpy array, or scalar, that only the run knows."""

    __array_ufunc__ = None  # an array on the left of an operator leaves it to this class

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and hasattr(sys.modules["numpy"].ndarray, name):
            self._refuse()
        if name.startswith(("__", "stillgraph_")):
            raise AttributeError(name)
        if name in _OF_MEMORY:
            raise refuse("SG310", f"{name} of a numpy array that only the run knows is read", location=here())
        if name in _AS_IN_TORCH:
            return tuple(self.tensor.shape) if name == "shape" else getattr(self.tensor, name)
        value = getattr(_wrapped(self), name, None)
        if value is None:
            raise refuse("SG310", f"the attribute {name} of a numpy array of a staged tensor", location=here())
        if not callable(value):
            own = operator.attrgetter(name)
            return as_in_numpy(own, tried(own, (self,), {}), _given_back(value), (self,))
        return _calling(lambda array: getattr(_wrapped(array), name), functools.partial(_method, name), (self,))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise refuse("SG305", f"the attribute {name} of a numpy array is set", location=here())

    def _refuse(self, *args: Any) -> NoReturn:
        raise refuse("SG301", "a numpy array of a staged tensor is used by code that is not converted", location=here())

    __bool__ = __int__ = __float__ = __index__ = __str__ = __repr__ = __array__ = _refuse
    __hash__ = __divmod__ = __rdivmod__ = __contains__ = __complex__ = __copy__ = __deepcopy__ = __delitem__ = _refuse

    def __len__(self) -> int:
        if self.scalar:
            self._refuse()
        if not self.tensor.dim():
            raise TypeError("len() of unsized object")
        length = self.tensor.shape[0]
        return length if type(length) is int else self._refuse()

    def __iter__(self) -> Iterator[Any]:
        if self.scalar:
            self._refuse()
        if not self.tensor.dim():
            raise TypeError("iteration over a 0-d array")
        return map(self.row, range(len(self)))

    def row(self, index: Any) -> StagedArray:
        """What an array holds at an index along its first dimension: a view, or a number."""
        found = self.tensor[index]
        return StagedArray(found, read_only=self.read_only) if found.dim() else StagedArray(found.clone(), True)

    def shares_memory(self, other: Any) -> bool:
        """Whether something is another array of the same memory."""
        with torch._C.DisableTorchFunction():
            storages = [each.tensor.untyped_storage()._cdata for each in (self, other) if isinstance(each, StagedArray)]
        return len(storages) == 2 and storages[0] == storages[1]

    def __round__(self, ndigits: Any = None) -> NoReturn:
        if self.tensor.dim():
            raise TypeError("type numpy.ndarray doesn't define __round__ method")
        self._refuse()


_AS_IN_TORCH = ("shape", "ndim")
_OF_MEMORY = ("resize", "strides", "flags", "base", "ctypes", "data")  # which a tensor's is not like
_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"),
    *("neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge", "getitem", "setitem"),
)
_REFLECTED = _OPERATORS[:13]


def _operator(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        if any(isinstance(each, torch.Tensor) for each in args) and name not in ("__getitem__", "__setitem__"):
            return _beside_a_tensor(name, self, *args)
        args = tuple(_number_beside(name, self, each, index) for index, each in enumerate(args))
        called = name
        if name.startswith("__i") and self.scalar and name != "__invert__":
            called = f"__{name[3:]}"  # a scalar stays what it is
        in_place = called.startswith("__i") and called != "__invert__"
        real = None if in_place or name == "__setitem__" else functools.partial(_method, called)
        if name == "__setitem__" and self.shares_memory(args[1]):
            args = (args[0], StagedArray(args[1].tensor.clone()))  # as numpy does, where what is read is written, too
        trial = functools.partial(_method, called)
        result = _calling(functools.partial(_of_the_layer, called), real, (self,), trial)(*args)
        if in_place:
            return self
        is_element = isinstance(result, StagedArray) and result.scalar and name == "__getitem__"
        return StagedArray(result.tensor.clone(), True) if is_element else result  # it is a number, not a view

    return method


def _beside_a_tensor(name: str, array: StagedArray, tensor: torch.Tensor) -> Any:
    """An operator on a scalar and a tensor."""
    plain = getattr(operator, f"__{name.strip('_').removeprefix('r')}__", None)
    number = beside_a_tensor(array)
    if plain is None:  # in place: a scalar stays what it is
        return getattr(operator, name)(number, tensor)
    return plain(number, tensor) if name.strip("_") in _OPERATORS else plain(tensor, number)


def _number_beside(name: str, array: StagedArray, value: Any, index: int) -> Any:
    """An operand of an operator: a number of Python's as a scalar of the dtype in which numpy takes it."""
    is_put = name == "__setitem__" and index == 1 and isinstance(value, StagedNumber)
    if not (is_put or is_taken(name, value)):
        return value
    with torch._C.DisableTorchFunction():
        dtype = array.tensor.dtype
    return StagedArray(number_put_in(value, dtype) if is_put else number_in_dtype(name, value, dtype), True)


def beside_a_tensor(array: StagedArray) -> Any:
    """What torch takes a scalar for that is an operand beside a tensor: a number.

    Raises:
        CaptureError: it is an array, of which torch and numpy make a tensor or an error, as the case may be.
    """
    if not array.scalar or array.tensor.dtype == torch.bool:
        message = "an operator on an array of numpy's and a tensor"
        raise refuse("SG310", message, location=here(), hint="Make a tensor of it first, by torch.from_numpy.")
    return array.tensor.item()


def _of_the_layer(name: str, array: StagedArray) -> Callable[..., Any]:
    """The layer's method for an operator."""
    mine, symbol = _wrapped(array), name.strip("_")
    own = _OF_OUR_OWN.get(symbol.removeprefix("r").removeprefix("i"))
    if own is None:
        return cast("Callable[..., Any]", getattr(mine, name))
    if symbol.startswith("i"):
        return lambda other: _put_into(mine, own(mine, other))
    return lambda other: own(other, mine) if symbol.startswith("r") else own(mine, other)


_OF_OUR_OWN: dict[str, Callable[[Any, Any], Any]] = {"mod": remainder, "floordiv": floor_divide}


def _put_into(array: Any, value: Any) -> Any:
    array[...] = value
    return array


def _names() -> Iterator[str]:
    yield from (f"__{name}__" for name in _OPERATORS)
    for name in _REFLECTED:
        yield f"__r{name}__"
        yield f"__i{name}__"


for _name in _names():
    setattr(StagedArray, _name, _operator(_name))


def _method(name: str, array: Any, *args: Any, **kwargs: Any) -> Any:
    """A method of an array of numpy's own."""
    return getattr(array, name)(*args, **kwargs)


def _wrapped(array: StagedArray) -> Any:
    return layer().ndarray(array.tensor)


def _calling(
    of: Callable[..., Callable[..., Any]],
    real: Callable[..., Any] | None = None,
    own: tuple[Any, ...] = (),
    trial: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A function of the layer's, taking and giving arrays of ours.

    Args:
        of: gives the layer's function, of the array that it is a method of.
        real: numpy's own, which says on arrays of ones of what kind, dtype and shape the result has to be.
        own: what numpy's takes before the arguments: the array that the function is a method of.
        trial: numpy's own where ``real`` is None, for the comparison on samples alone.
    """

    def on_samples(*args: Any, **kwargs: Any) -> Any:
        arrays = [StagedArray(torch.from_numpy(sys.modules["numpy"].array(each))) for each in args[: len(own)]]
        rest, named = map(_handed_in, args[len(own) :]), {k: _handed_in(v) for k, v in kwargs.items()}
        return _given_back(of(*arrays)(*rest, **named)), [each.tensor for each in arrays]

    def call(*args: Any, **kwargs: Any) -> Any:
        outcome = UNKNOWN if real is None else tried(real, (*own, *args), kwargs)
        if outcome is UNKNOWN:
            with contextlib.suppress(*OF_VALUES):
                fail_as_numpy(real or trial, (*own, *args), kwargs)  # by a TypeError: torch's may come in the run alone
        require_alike(real or trial, on_samples, own, args, kwargs)
        try:
            result = _given_back(of(*own)(*map(_handed_in, args), **{k: _handed_in(v) for k, v in kwargs.items()}))
        except (StillgraphError, ArithmeticError):
            raise
        except Exception as error:  # of any kind: that of the layer, or of torch
            fail_as_numpy(real, (*own, *args), kwargs)
            message = f"torch's numpy layer does not do what is asked of an array of the run ({error})"
            raise refuse("SG310", message, location=here(), hint=counterpart(real), kind=MisreadError) from error
        return result if real is None else as_in_numpy(real, outcome, result, (*own, *args, *kwargs.values()))

    return call


def _handed_in(value: Any) -> Any:
    if isinstance(value, StagedArray):
        return _wrapped(value)
    if isinstance(value, torch.Tensor):
        return layer().ndarray(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map(_handed_in, value))
    if isinstance(value, StagedNumber):
        value.recorder.number_meets_array(value)
    numpy: Any = sys.modules["numpy"]
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        with torch._C.DisableTorchFunction():
            constant = torch.as_tensor(value).clone()
        return layer().ndarray(constant)
    if isinstance(value, (numpy.dtype, type)) and (isinstance(value, numpy.dtype) or issubclass(value, numpy.generic)):
        return layer().dtype(numpy.dtype(value).name)
    return value


def _given_back(value: Any) -> Any:
    numpys = layer()
    if isinstance(value, numpys.ndarray):
        return StagedArray(value.tensor)
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(map(_given_back, value))
    if isinstance(value, numpys._dtypes.DType):
        return sys.modules["numpy"].dtype(value.name)
    return value


def is_staged(value: Any) -> bool:
    """Whether a value is a tensor, an array or a number of the run."""
    return isinstance(value, (StagedArray, StagedNumber)) or is_fake(value)


def refuse_numbers(values: Any) -> None:
    """To be called before code of numpy's gets values: an array cannot hold what stands for a number."""
    for value in torch.utils._pytree.tree_leaves(values):
        if isinstance(value, StagedNumber):
            value.recorder.number_meets_array(value)


def _scalar(kind: type, number: StagedNumber) -> StagedArray:
    """A number of the run as a scalar of numpy's."""
    dtype = getattr(torch, kind.__name__.removesuffix("_"), None)
    if not isinstance(dtype, torch.dtype):
        number.recorder.number_meets_array(number)
    return StagedArray(number_put_in(number, dtype), True)


def _array_like(value: Any) -> Any:
    """What numpy makes an array of: numbers of the run among Python's own are its elements."""
    made = array_of_numbers(value)
    return value if made is None else StagedArray(made)


def call_numpy(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A function of numpy's on staged values, by torch's layer.

    Raises:
        CaptureError: the layer does not have it, or it is to work on a staged number.
    """
    if isinstance(function, sys.modules["numpy"].ufunc) and not kwargs:
        for each in args:
            if isinstance(each, StagedNumber):
                return each.recorder.numpy_operation(function, tuple(args))
    if isinstance(function, type) and not kwargs and len(args) == 1 and isinstance(args[0], StagedNumber):
        return _scalar(function, args[0])
    name = getattr(function, "__name__", str(function))
    taking = takes_arrays(function, args, kwargs)
    args = tuple(_array_like(each) if index in taking else each for index, each in enumerate(args))
    refuse_numbers((args, kwargs))
    place: Any = layer()
    for part in (_module(function) or "numpy").split(".")[1:]:
        place = getattr(place, part, place)
    found: Any = OF_OUR_OWN.get(name) or getattr(place, name, None)
    if found is None or isinstance(function, type):
        message = f"torch's numpy layer has no {name}, which is called on what only the run knows"
        raise refuse("SG310", message, location=here(), hint=counterpart(function))
    return _calling(lambda: found, function)(*args, **kwargs)
