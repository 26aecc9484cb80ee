"""What is done with a tensor that is None on some path, where what is recorded would not do to None what eager does.

An operation that is recorded raises in the run what None says to it. That does not hold for what the capture answers
itself, nor for an operator of Python's that arrives here as torch's method, or the other way round.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import BuiltinMethodType, MethodType, MethodWrapperType
from typing import Any

import torch

from stillgraph.trace.code.frames import is_asked_by
from stillgraph.trace.fakes.node_naming import BINARY_METHODS
from stillgraph.trace.torch_rules.tensor_attributes import PLAIN_ATTRIBUTES
from stillgraph.trace.values.numbers import StagedNumber

_T = torch.Tensor

HIDDEN = frozenset({"device", "__class__"})  # attributes that what is staged answers itself, unseen by torch's modes

_METADATA = frozenset(
    {
        *("size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "element_size", "get_device"),
        "numpy",
        *("type", "is_contiguous", "is_floating_point", "is_complex", "is_signed", "is_conj", "is_shared"),
    }
)
AUGMENTING: dict[Any, Callable[..., Any]] = {
    _T.add_: operator.iadd,
    _T.sub_: operator.isub,
    _T.mul_: operator.imul,
    _T.div_: operator.itruediv,
    _T.floor_divide_: operator.ifloordiv,
    _T.remainder_: operator.imod,
    _T.pow_: operator.ipow,
    _T.__ipow__: operator.ipow,
    _T.__iand__: operator.iand,
    _T.__ior__: operator.ior,
    _T.__ixor__: operator.ixor,
}
"""By the method of torch's that it arrives as: an operator such as ``+=``."""

_BY_OPERATOR: dict[Any, Callable[..., Any]] = {
    _T.neg: operator.neg,
    _T.positive: operator.pos,
    _T.abs: operator.abs,
    _T.__contains__: operator.contains,
    _T.__eq__: operator.eq,  # with what is no tensor and no number: None answers that as well
    _T.__ne__: operator.ne,
    **AUGMENTING,
}
_NOT_BY_NAME = frozenset({f.__name__ for f in (*BINARY_METHODS, *_BY_OPERATOR)} | {"tolist"})


def as_python(func: Any) -> Callable[..., Any] | None:
    """For a torch call whose node would not do it: the same as Python does it, be it to a tensor or to None."""
    if func in _BY_OPERATOR:
        return _BY_OPERATOR[func]
    name = getattr(func, "__name__", "")
    if name == "__get__":
        attribute = func.__self__.__name__
        return operator.attrgetter(attribute) if attribute in PLAIN_ATTRIBUTES or attribute in _PLACES else None
    if func is _T.__len__:
        return len
    if func is _T.dim and is_asked_by(_T.__iter__.__code__):
        return _dimensions_to_iterate
    if name in _METADATA and getattr(_T, name) is func:
        return lambda value, *args, **kwargs: getattr(value, name)(*args, **kwargs)
    return None


_PLACES = frozenset({"shape", "grad", "_grad"})


def _dimensions_to_iterate(value: Any) -> Any:
    return value.dim() if isinstance(value, torch.Tensor) else iter(value)


def is_read_first(function: Any) -> bool:
    """Whether a bound method is one that has to be looked up in None first, where its receiver may be that."""
    if not isinstance(function, (BuiltinMethodType, MethodType, MethodWrapperType)):
        return False
    name = function.__name__
    is_number = isinstance(function.__self__, StagedNumber)
    return is_number or name in _NOT_BY_NAME or name.startswith("__")
