"""The function that is captured: what of it is the user's, where it begins, what its parameters are called."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch

from stillgraph.core.diagnostics import CaptureError
from stillgraph.core.files import is_torch
from stillgraph.core.location import Location, start_of
from stillgraph.core.lookup import stated, stated_signature
from stillgraph.trace.code.compiled import original_of


def called_function(function: Any, args: tuple[Any, ...]) -> Any:
    """The user's own function behind a module's call, or behind one that ``torch.jit.script`` compiled."""
    return args[0].forward if function is torch.nn.Module.__call__ else original_of(function) or function


def at_start(error: CaptureError, function: Any) -> CaptureError:
    """An error that names no line, at the one where the function starts; that of torch's own, or none, helps nobody."""
    location = place_of(function)
    return error if is_torch(location.file) or location == _UNKNOWN else error.located(location)


def _behind_torch(function: Any) -> Any:
    """The user's function behind torch's own decorators: ``@torch.no_grad()``."""
    while isinstance(function, FunctionType) and is_torch(function.__code__.co_filename):
        if not hasattr(function, "__wrapped__"):
            break
        function = function.__wrapped__
    return function


def place_of(function: Any) -> Location:
    """Where a function, or the call of another callable, begins in the user's source."""
    code = stated(_behind_torch(function), "__code__") or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return _UNKNOWN
    return start_of(code)


_UNKNOWN = Location("<unknown>", 1)


def parameter_names(function: Any, args: tuple[Any, ...]) -> dict[int | str, str]:
    """The names of the parameters that positional arguments go to, by position; those of ``*rest`` are numbered."""
    signature = stated_signature(function)
    parameters = () if signature is None else signature.parameters.values()
    names: dict[int | str, str] = {}
    for position, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.update({i: f"{parameter.name}_{i - position}" for i in range(position, len(args))})
            break
        names[position] = parameter.name
    return names
