"""Operations that raise for some values of their arguments, which fake tensors do not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from stillgraph.trace.numbers import StagedInt
from stillgraph.trace.symbolic import is_fake

_T = torch.Tensor
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
    rounds = name in ("div", "divide") and kwargs.get("rounding_mode") is not None
    if (rounds or name.strip("_") in _DIVIDING) and _may_divide_by_zero(args):
        return (RuntimeError,)
    if _has_no_kernel(name.strip("_"), args):
        return (RuntimeError,)
    if name in ("softmax", "log_softmax") and _has_no_dimension(args[0], kwargs.get("dim", args[1:2])):
        return (IndexError,)  # fake tensors do not look at it
    given = torch.utils._pytree.tree_leaves((args, kwargs))
    if any(isinstance(a, torch.Tensor) and is_fake(a) and _has_unknown_size(a) for a in given):
        return (RuntimeError, IndexError)
    takes_number = any(isinstance(a, (torch.SymInt, StagedInt)) for a in given)
    return (RuntimeError, IndexError) if takes_number and name.strip("_") not in _OF_ANY_NUMBER else ()


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


def _may_divide_by_zero(operands: Sequence[Any]) -> bool:
    """Whether whole numbers are divided by what may be zero: other numbers have an infinity."""
    tensors = [each for each in operands if isinstance(each, torch.Tensor)]
    with torch._C.DisableTorchFunction():
        whole = all(each.dtype in _WHOLE for each in tensors) and not any(type(each) is float for each in operands)
    return whole and (len(tensors) > 1 or not isinstance(operands[-1], int) or operands[-1] == 0)


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
