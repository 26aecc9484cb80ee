"""``torch._check`` and its kin: an ``if`` and a ``raise``, as they are in eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental import symbolic_shapes

from stillgraph.polyfills.versions import CHECKS_TAKE_TEXTS

_SAYS_NOTHING = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)
_IS_TENSOR = (
    "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that all "
    "elements are true."
)


def check_with(error_type: Any, cond: Any, message: Any) -> None:
    """``torch._check_with``: what the message says is made where the check fails alone."""
    if not isinstance(cond, (bool, torch.SymBool)):
        if isinstance(cond, torch.Tensor):
            raise TypeError(_IS_TENSOR)
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if not issubclass(error_type, Exception) or issubclass(error_type, Warning):
        raise AssertionError(f"error_type must be a subclass of Exception but not Warning, got {error_type}")
    if message is None:
        raise error_type(_SAYS_NOTHING)
    if not callable(message) and not CHECKS_TAKE_TEXTS:
        raise TypeError("message must be a callable")
    raise error_type(str(message() if callable(message) else message))


def check(cond: Any, message: Any = None) -> None:
    """``torch._check``."""
    check_with(RuntimeError, cond, message)


def check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """``torch._check_is_size``, but for what torch says of its future."""
    check_with(RuntimeError, i >= 0, message)
    if max is not None:
        check_with(RuntimeError, i <= max, message)


def check_index(cond: Any, message: Any = None) -> None:
    """``torch._check_index``."""
    check_with(IndexError, cond, message)


def check_value(cond: Any, message: Any = None) -> None:
    """``torch._check_value``."""
    check_with(ValueError, cond, message)


def check_type(cond: Any, message: Any = None) -> None:
    """``torch._check_type``."""
    check_with(TypeError, cond, message)


def check_not_implemented(cond: Any, message: Any = None) -> None:
    """``torch._check_not_implemented``."""
    check_with(NotImplementedError, cond, message)


def check_tensor_all_with(error_type: Any, cond: Any, message: Any = None) -> None:
    """``torch._check_tensor_all_with``."""
    if not isinstance(cond, torch.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != torch.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    check_with(error_type, cond._is_all_true().item(), message)


def check_tensor_all(cond: Any, message: Any = None) -> None:
    """``torch._check_tensor_all``."""
    check_tensor_all_with(RuntimeError, cond, message)


def assert_(condition: Any, message: Any) -> None:
    """``torch._assert``."""
    if not condition:
        raise AssertionError(message)


def assert_scalar(self: Any, assert_msg: Any) -> None:
    """``torch._assert_scalar``."""
    if not self:
        raise RuntimeError(assert_msg)


def constrain_range_for_size(size: Any, *, min: Any = None, max: Any = None) -> None:
    """``torch.sym_constrain_range_for_size``."""
    constrain_range(size, min=0 if min is None else min, max=max)


def constrain_range(size: Any, *, min: Any = None, max: Any = None) -> None:
    """``torch.sym_constrain_range``."""
    least, most = -(2**63) if min is None else min, 2**63 - 1 if max is None else max
    if size < least or size > most:
        raise RuntimeError(f"Invalid value range for {size} between [{least}, {most}].")


def _assert_match(what: str, expected: Any, found: Any) -> None:
    if expected != found:
        raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected}, Got: {found}")


def assert_tensor_metadata(
    a: Any, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    """``torch._assert_tensor_metadata``, which on fake tensors raises exceptions of another class."""
    if size is not None:
        _assert_match("sizes", [*size], [*a.size()])
    if stride is not None:
        _assert_match("strides", [*stride], [*a.stride()])
    if dtype is not None and dtype != a.dtype:
        raise RuntimeError(f"Tensor dtype mismatch! Expected: {_KINDS[dtype][0]}, Got: {_KINDS[a.dtype][1]}")
    if device is not None:
        _assert_match("device", torch.device(device), a.device)
    if layout is not None and layout != a.layout:
        raise RuntimeError(f"Tensor layout mismatch! Expected: {_LAYOUTS[layout]}, Got: {_LAYOUTS[a.layout]}")


_KINDS = {
    torch.bool: ("Bool", "bool"),
    torch.uint8: ("Byte", "unsigned char"),
    torch.int8: ("Char", "signed char"),
    torch.int16: ("Short", "short int"),
    torch.int32: ("Int", "int"),
    torch.int64: ("Long", "long int"),
    torch.float16: ("Half", "c10::Half"),
    torch.bfloat16: ("BFloat16", "c10::BFloat16"),
    torch.float32: ("Float", "float"),
    torch.float64: ("Double", "double"),
    torch.complex64: ("ComplexFloat", "c10::complex<float>"),
    torch.complex128: ("ComplexDouble", "c10::complex<double>"),
}
"""What torch's C++ calls a dtype that it expects, and one that it has got."""
_LAYOUTS = {
    torch.strided: "Strided",
    torch.sparse_coo: "Sparse",
    torch.sparse_csr: "SparseCsr",
    torch.sparse_csc: "SparseCsc",
    torch.sparse_bsr: "SparseBsr",
    torch.sparse_bsc: "SparseBsc",
    torch._mkldnn: "Mkldnn",  # type: ignore[attr-defined]  # torch has no stub for it
}


def guarded(a: Any) -> Any:
    """What asks whether torch knows a condition while it traces: in eager PyTorch it is known."""
    return a


def _named(module: Any, *names: str) -> list[Any]:
    """Those of a module's functions that this version of torch has; of an operator its overload too."""
    found = [getattr(module, name) for name in names if hasattr(module, name)]
    return found + [each.default for each in found if isinstance(each, torch._ops.OpOverloadPacket)]


_GUARDS = (
    *("expect_true", "guard_or_false", "guard_or_true", "guard_bool", "guard_int", "guard_float", "guard_scalar"),
    *("statically_known_true", "definitely_true", "guard_size_oblivious"),
)
_IN_C: dict[str, Callable[..., Any]] = {
    "_assert_scalar": assert_scalar,
    "_assert_tensor_metadata": assert_tensor_metadata,
    "sym_constrain_range": constrain_range,
    "sym_constrain_range_for_size": constrain_range_for_size,
}
POLYFILLS: dict[Any, Callable[..., Any]] = {
    torch._check_with: check_with,
    torch._check: check,
    torch._check_is_size: check_is_size,
    torch._check_index: check_index,
    torch._check_value: check_value,
    torch._check_type: check_type,
    torch._check_not_implemented: check_not_implemented,
    torch._check_tensor_all_with: check_tensor_all_with,
    torch._check_tensor_all: check_tensor_all,
    torch._assert: assert_,
    **{
        function: polyfill
        for module in (torch, torch.ops.aten)
        for name, polyfill in _IN_C.items()
        for function in _named(module, name)
    },
    **dict.fromkeys(_named(symbolic_shapes, *_GUARDS), guarded),
}
"""By torch's own functions."""
