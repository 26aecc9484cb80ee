"""The environment of torch's symbolic shapes and its mode of fake tensors, as a capture needs them."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from stillgraph.trace.fakes import sparse_fakes

WANTS_INTEGERS = "expected to contain only concrete integers"
"""What torch says where its code in C++ takes plain sizes alone."""

_SIZES: Any = ValueRanges(0, int_oo)


# ---- what torch loads once in a process, when it is first needed
@functools.cache
def load_shapes() -> None:
    """Let torch load what it needs for shapes and their symbols: a part of dynamo."""
    Environment().create_unbacked_symint()


def is_loaded() -> bool:
    """Whether `load_shapes` has been called."""
    return bool(load_shapes.cache_info().currsize)


class Environment(ShapeEnv):
    """torch's environment for symbols, which does not look for the line that each symbol and each question comes from.

    It would walk through all frames for that, and for the names of torch's own files load most of Inductor and of
    `torch.export`. Where something is refused, `frames.here` says which line of the user's it is.
    """

    def __init__(self) -> None:
        super().__init__(specialize_zero_one=False, duck_shape=False)

    def _get_user_frame(self) -> FrameType:
        return sys._getframe(1)

    def _log_create_unbacked_symbol(self, *args: Any, **kwargs: Any) -> None:
        """Not told: it asks for the same."""

    def create_symbol(self, *args: Any, **kwargs: Any) -> Any:
        positive = kwargs.pop("positive", True)
        kwargs["positive"] = None
        symbol = super().create_symbol(*args, **kwargs)
        if positive and symbol.is_Symbol:
            self.var_to_range[symbol] &= _SIZES  # torch takes a size for a positive number: it may be 0
        return symbol


class FakeMode(FakeTensorMode):
    """torch's mode of fake tensors, which can refuse to take a symbol for the one size that it had in the example.

    So does torch where its code in C++ asks for plain sizes: that of ``matmul`` before torch 2.13.

    Attributes:
        refuses: whether it does that now.
        writes: how many operations in it have written to a tensor. Tensors of inference mode do not count their own.
    """

    refuses = False
    writes = 0

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.refuses and func is torch.ops.aten.size.default and any(map(_is_symbol, args[0].shape)):
            raise RuntimeError(WANTS_INTEGERS)
        if getattr(func, "_schema", None) is not None and func._schema.is_mutable:
            self.writes += 1
        if func in _QUANTIZING:
            raise UnsupportedFakeTensorException("quantized")
        if func is sparse_fakes.COUNTS:
            raise DataDependentOutputException(func)
        result = super().dispatch(func, types, args, kwargs)
        return sparse_fakes.as_counted(self, func, args, result)


_QUANTIZING = frozenset(
    getattr(packet, overload)
    for packet in (torch.ops.aten.quantize_per_tensor, torch.ops.aten.quantize_per_channel)
    for overload in packet.overloads()
)
"""Of the first, torch says that it gives a tensor of numbers that are not quantized."""


def _is_symbol(size: Any) -> bool:
    return isinstance(size, torch.SymInt) and not size.node.expr.is_number
