"""Transforms of `torch.func` inside a captured function: the transformed code is followed, its kernels are recorded."""

from __future__ import annotations

import functools
from types import BuiltinFunctionType, CellType, FunctionType
from typing import Any

from stillgraph.operators.dispatch import call
from stillgraph.trace.capture.session import Session
from stillgraph.trace.fakes.kernels import by_kernels


def call_transform(capture: Session, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a transform (``torch.func.vjp``), or a function that one has made (``torch.vmap(f)``).

    What it transforms it calls by way of ours, so that this code is rewritten like any other of the call.
    """
    cells = {
        name: CellType(_followed(cell.cell_contents)) if name == "func" else cell
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())
    }
    following = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells.values())
    )
    following.__kwdefaults__ = function.__kwdefaults__
    given = [_followed(each) for each in args]
    return by_kernels(capture, following, given, {name: _followed(each) for name, each in kwargs.items()})


def _followed(value: Any) -> Any:
    """What calls a callable by way of ours; anything else, or a function of torch's in C++, as it is."""
    if not callable(value) or isinstance(value, (type, BuiltinFunctionType, _Followed)):
        return value
    return _Followed(value)


class _Followed:
    """A callable that is followed when torch calls it."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call(self._function, *args, **kwargs)
