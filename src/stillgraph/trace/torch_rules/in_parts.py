"""Cutting a tensor along a size that only the run knows into parts of which that decides the number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import torch

from stillgraph.polyfills import parts
from stillgraph.trace.values.numbers import StagedNumber, kind_of

if TYPE_CHECKING:
    from stillgraph.trace.capture.session import Session
    from stillgraph.trace.graph.recorder import Recorder


def _cut(polyfill: Callable[..., Any]) -> Callable[..., Any]:
    """What records a call, or follows a polyfill where only the run knows the size."""
    signature = inspect.signature(polyfill)
    by_name = {"split_size_or_sections": "split_size", "indices_or_sections": "sections"}

    def handled(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        named = {by_name.get(name, name): value for name, value in kwargs.items()}
        try:
            tensor, *how, dim = _bound(signature, args, named)
        except TypeError:
            return recorder.record(func, args, kwargs)  # torch says what it is given
        shape = recorder.to_fake(tensor).shape if isinstance(tensor, torch.Tensor) else ()
        known = type(dim) is int and -len(shape) <= dim < len(shape) and all(map(_may_be_count, how))
        is_open = known and (recorder.symbolic.is_newer(shape[dim], -1) or any(type(n) is not int for n in how))
        if not is_open:
            return recorder.record(func, args, kwargs)
        followed = cast("Session", recorder).conversion.convert(cast(FunctionType, polyfill))
        with recorder:  # what it calls of torch is recorded
            return followed(tensor, *how, dim)

    return handled


def _may_be_count(number: Any) -> bool:
    """Whether it is how many parts there are, or how long each is."""
    return number > 0 if type(number) is int else isinstance(number, StagedNumber) and kind_of(number) is int


def _bound(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


HANDLERS: dict[Any, Callable[..., Any]] = {
    getattr(space, name): _cut(polyfill)
    for space in (torch, torch.Tensor)
    for name, polyfill in (
        ("unbind", parts.unbind),
        ("split", parts.split),
        ("unsafe_split", parts.split),
        ("chunk", parts.chunk),
        ("unsafe_chunk", parts.chunk),
        ("tensor_split", parts.tensor_split),
    )
}
