"""Operations that raise for some values of their arguments, which fake tensors do not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from stillgraph.trace.numbers import StagedFloat, StagedInt, is_number, kind_of
from stillgraph.trace.symbolic import is_fake

_T = torch.Tensor
_leaves = torch.utils._pytree.tree_leaves
_FAILING = frozenset({torch.cholesky, torch.inverse, torch._assert, torch._assert_async, _T.cholesky, _T.inverse})
_WHOLE = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})
_DIVIDING = frozenset({"floordiv", "ifloordiv", "rfloordiv", "floor_divide", "mod", "rmod", "remainder", "fmod"})
_OF_BITS = frozenset(
    {
        *("and", "or", "xor", "iand", "ior", "ixor", "rand", "ror", "rxor", "invert", "lshift", "rshift"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
    }
)
_ORDERING = frozenset({"lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal"})
_LOOKING_UP = frozenset(
    {
        *("index_select", "gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "take"),
        *("index_add", "index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_", "index_put"),
        *("index_put_", "take_along_dim", "embedding", "one_hot", "nll_loss", "cross_entropy", "bincount"),
        *("multinomial", "repeat_interleave"),
    }
)
"""What looks up in one tensor the elements that another one names."""

_CHECKING = frozenset(
    {
        *("bernoulli", "binary_cross_entropy", "binomial", "bucketize", "histc", "mvlgamma", "normal", "poisson"),
        *("put", "random", "searchsorted", "uniform"),
    }
)
"""What looks at the values that it is given, or at numbers that fake tensors take whatever they are."""

_OF_SIZES = frozenset(
    {
        *("expand", "narrow", "new_empty", "new_full", "new_ones", "new_zeros", "repeat", "reshape", "resize"),
        *("roll", "tile", "topk", "unflatten", "view"),
    }
)
"""What takes sizes and positions behind its tensor, which may be tensors of whole numbers."""

_ALONG = frozenset({"softmax", "log_softmax", "sort", "argsort"})
"""What takes a dimension that fake tensors do not look at."""

_OF_ANY_NUMBER = frozenset(
    {
        *("add", "sub", "mul", "div", "truediv", "true_divide", "pow", "radd", "rsub", "rmul", "rdiv", "rtruediv"),
        *("rpow", "iadd", "isub", "imul", "itruediv", "eq", "ne", "lt"),
        *("le", "gt", "ge", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "where", "masked_fill", "fill"),
        *("full_like", "as_tensor", "tensor", "scalar_tensor", "and", "or", "xor", "bitwise_and", "bitwise_or"),
    }
)
"""What takes a number as an operand, of which no value is wrong."""


def failures_of(func: Any, args: Any, kwargs: Any) -> tuple[type[Exception], ...]:
    """What a torch function raises for some values of its arguments, such as a matrix that has no inverse."""
    name = getattr(func, "__name__", "")
    if name.startswith("linalg_") or func in _FAILING:
        return (RuntimeError,)
    if func in (_T.__getitem__, _T.__setitem__):
        whole = args[1] if isinstance(args[1], tuple) else (args[1],)
        of_any_size = isinstance(args[0], torch.Tensor) and is_fake(args[0]) and _has_unknown_size(args[0])
        fixed = of_any_size and any(type(index) is int for index in whole)
        return (IndexError,) if fixed or any(map(_may_be_outside, whole)) else ()
    if name in _LOOKING_UP:
        return (RuntimeError, IndexError)
    if name.strip("_") in _CHECKING or _is_wrong_number(name, args, kwargs) or _subtracts_truth(name, args):
        return (RuntimeError, IndexError)
    if name.endswith("dropout") and any(isinstance(each, torch.Tensor) for each in (*args[1:2], kwargs.get("p"))):
        return (ValueError, RuntimeError)
    if name in _OF_SIZES and any(isinstance(each, torch.Tensor) for each in _leaves((args[1:], kwargs))):
        return (RuntimeError, IndexError)
    rounds = name in ("div", "divide") and kwargs.get("rounding_mode") is not None
    if (rounds or name.strip("_") in _DIVIDING) and _may_divide_by_zero(args, "__r" in name):
        return (RuntimeError,)
    if _has_no_kernel(name.strip("_"), args):
        return (RuntimeError,)
    if name in _ALONG and _has_no_dimension(args[0], kwargs.get("dim", args[1:2])):
        return (IndexError,)
    given = _leaves((args, kwargs))
    if any(isinstance(a, torch.Tensor) and is_fake(a) and _has_unknown_size(a) for a in given):
        return (RuntimeError, IndexError)
    takes_number = any(isinstance(a, (torch.SymInt, StagedInt)) for a in given)
    return (RuntimeError, IndexError) if takes_number and name.strip("_") not in _OF_ANY_NUMBER else ()


def _is_wrong_number(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a number has a value that no fake tensor looks at: a width of nothing, or one below."""
    if name == "smooth_l1_loss":
        return any(isinstance(each, StagedFloat) or each < 0 for each in _given(args[4:], kwargs, "beta"))
    if name == "celu":
        return any(isinstance(each, StagedFloat) or each == 0 for each in _given(args[1:2], kwargs, "alpha"))
    return False


def _given(positional: Sequence[Any], kwargs: dict[str, Any], name: str) -> list[Any]:
    """The number that a function has for a parameter, in a list; nothing where it has none."""
    return [each for each in (*positional, kwargs.get(name)) if is_number(each)]


def _subtracts_truth(name: str, operands: Sequence[Any]) -> bool:
    """Whether truth values are subtracted from each other, of which one may be Python's."""
    if name.strip("_") not in ("sub", "isub", "rsub", "subtract"):
        return False
    with torch._C.DisableTorchFunction():
        return all(_is_truth(each) for each in operands[:2])


def _is_truth(value: Any) -> bool:
    return value.dtype == torch.bool if isinstance(value, torch.Tensor) else is_number(value) and kind_of(value) is bool


def _has_no_kernel(name: str, operands: Sequence[Any]) -> bool:
    """Whether an operation is of bits and a tensor has none, or asks for an order that complex numbers have not."""
    with torch._C.DisableTorchFunction():
        types = [each.dtype for each in operands if isinstance(each, torch.Tensor)]
    by_bits = name in _OF_BITS and any(each.is_floating_point for each in types)
    return by_bits or (name in _ORDERING and any(each.is_complex for each in types))


def _has_no_dimension(tensor: Any, dim: Any) -> bool:
    number = dim[0] if isinstance(dim, tuple) and dim else dim
    if type(number) is not int or not isinstance(tensor, torch.Tensor):
        return False
    with torch._C.DisableTorchFunction():
        most = max(tensor.dim(), 1)
    return not -most <= number < most


def _may_divide_by_zero(operands: Sequence[Any], reflected: bool) -> bool:
    """Whether whole numbers are divided by what may be zero: other numbers have an infinity.

    Args:
        operands: in the order of the method.
        reflected: whether the first is the divisor.
    """
    tensors = [each for each in operands if isinstance(each, torch.Tensor)]
    with torch._C.DisableTorchFunction():
        whole = all(each.dtype in _WHOLE for each in tensors) and not any(type(each) is float for each in operands)
    divides = not isinstance(operands[0], torch.Tensor) or len(tensors) > 1 or reflected
    return whole and (divides or not isinstance(operands[-1], int) or operands[-1] == 0)


def _may_be_outside(index: Any) -> bool:
    """Whether only the run knows if there is such an element."""
    if isinstance(index, torch.Tensor):
        return index.dtype in _WHOLE
    if isinstance(index, (tuple, list)):
        return any(type(each) is int or _may_be_outside(each) for each in index)  # which fake tensors do not look at
    return isinstance(index, (torch.SymInt, StagedInt))


def _has_unknown_size(fake: torch.Tensor) -> bool:
    with torch._C.DisableTorchFunction():
        return any(type(size) is not int for size in fake.shape)
