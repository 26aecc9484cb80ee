"""What is found in a call, in a few words."""

from __future__ import annotations

import reprlib
import types
from collections.abc import Sequence
from typing import Any

import torch

from stillgraph.core.files import is_users
from stillgraph.core.lookup import class_member
from stillgraph.core.parcel import Parcel, opened
from stillgraph.program.guards import TensorGuard


class _Repr(reprlib.Repr):
    """Calls no ``__repr__`` of a user's: it may do something, and nobody has asked for it. Tensors are brief."""

    def repr1(self, x: Any, level: int) -> str:
        x = opened(x)
        if isinstance(x, torch.Tensor):
            return f"{str(x.dtype).removeprefix('torch.')}{[*x.shape]}"
        return super().repr1(x, level)

    def repr_instance(self, x: Any, level: int) -> str:
        method = class_member(type(x), "__repr__")
        if isinstance(method, types.FunctionType) and is_users(method.__code__.co_filename):
            return object.__repr__(x)
        return super().repr_instance(x, level)


_REPR = _Repr()
_REPR.maxstring = _REPR.maxother = 60
_MOST = 64  # characters of a value


def _cut(text: str) -> str:
    """A text in one line, and none that is long."""
    text = " ".join(text.split())
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."


def shown(packed: Any, guard: TensorGuard | None = None) -> str:
    """A value in a few words; a tensor by its metadata, with its strides where ``guard`` is on them."""
    value = opened(packed)
    if not isinstance(value, torch.Tensor):
        try:
            return repr(value) if isinstance(value, (type, types.FunctionType)) else _cut(_REPR.repr(value))
        except Exception:  # the user's own `__repr__`
            return f"a {type(value).__qualname__}"
    strides = value.stride() if guard is not None and guard.strides is not None else None
    dims = [str(size) for size in value.shape]
    text = _tensor_text(type(value), value.dtype, dims, value.device, value.requires_grad, strides)
    return text + _lazy_text((value.is_conj(), value.is_neg()))


def expected_tensor(guard: TensorGuard) -> str:
    """What a guard on a tensor expects."""
    dims = ["?" if size is None else str(size) for size in guard.shape]
    text = _tensor_text(guard.type, guard.dtype, dims, guard.device, guard.requires_grad, guard.strides)
    return f"{guard.source} should be {text}{_lazy_text(guard.lazy)}"


def _tensor_text(
    kind: type, dtype: torch.dtype, dims: Sequence[str], device: torch.device, grad: bool, strides: Any
) -> str:
    text = f"{kind.__name__} {str(dtype).removeprefix('torch.')}[{', '.join(dims)}] on {device}"
    if strides is not None:
        text += f" with strides ({', '.join('?' if step is None else str(step) for step in strides)})"
    return text + (", requires grad" if grad else "")


def _lazy_text(lazy: tuple[bool, bool]) -> str:
    return "".join(word for word, is_on in zip((", conjugated", ", negated"), lazy) if is_on)


def kind_expected(kind: type) -> str:
    """What a value is to be: one of a class, or what is passed by a program that does not look at it."""
    return "an object that is only handed on" if kind is Parcel else f"a {kind.__qualname__}"


def kind_found(packed: Any) -> str:
    """What a value is: one of its class."""
    return f"a {type(opened(packed)).__qualname__}"
