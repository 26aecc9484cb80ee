"""Calls with keywords that are there on some paths only: ``f(**options)`` of a dict with keys that may be missing."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import FunctionType, MethodType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.operators.conditions.branches import select
from stillgraph.operators.dispatch import call
from stillgraph.operators.torch.modules import takes_hooks_with_keywords
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here, mode_decorated
from stillgraph.trace.values.entries import MaybeName

Keywords = dict[str, Any]


def has_some(names: Iterable[str]) -> bool:
    """Whether among the keywords of a call there is one that only some paths have."""
    return any(type(name) is MaybeName for name in names)


def settled(capture: Session, function: Any, args: tuple[Any, ...], kwargs: Keywords) -> Keywords | None:
    """The keywords with which a function can be called on all paths at once; None where it has to be called on each.

    A keyword that may be missing is, for a parameter with a default, the value or the default. A function that
    is followed gets it in its ``**kwargs`` as a key that may be missing (`arguments.received`).
    """
    if isinstance(function, torch.nn.Module):
        known = type(function).__call__ is torch.nn.Module.__call__ and not takes_hooks_with_keywords(function)
        return kwargs if known and settled(capture, function.forward, args, kwargs) is not None else None
    if isinstance(function, MethodType):
        if isinstance(function.__self__, torch.nn.Module) and function.__func__ is torch.nn.Module.__call__:
            return settled(capture, function.__self__, args, kwargs)
        return settled(capture, function.__func__, (function.__self__, *args), kwargs)
    if not isinstance(function, FunctionType):
        return None
    if mode_decorated(function) is not None:
        return kwargs  # what the mode decorates gets them
    return _bound(capture, function, args, kwargs) if _is_followed(capture, function) else None


def _is_followed(capture: Session, function: FunctionType) -> bool:
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE) or code.co_name == "<lambda>":
        return False
    return code not in capture.knowledge.recursive and (
        capture.conversion.wants(function) or capture.is_rewritten(code)
    )


def _bound(capture: Session, function: FunctionType, args: tuple[Any, ...], kwargs: Keywords) -> Keywords | None:
    code, bound = function.__code__, Keywords()
    defaults = _defaults(function)
    named = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    by_position = code.co_varnames[: min(len(args), code.co_argcount)]
    for name, value in kwargs.items():
        if type(name) is not MaybeName or (name not in named and code.co_flags & inspect.CO_VARKEYWORDS):
            bound[name] = value
        elif name in named and name not in by_position and name in defaults:
            bound[str(name)] = _value_or_default(capture, name, value, defaults[name])
        else:
            return None
    return bound


def _value_or_default(capture: Session, name: MaybeName, value: Any, default: Any) -> Any:
    return select(capture, name.present, lambda: value, lambda: default)


def _defaults(function: FunctionType) -> Keywords:
    """The defaults of a function's parameters."""
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values)), **(function.__kwdefaults__ or {})}


def on_each_path(capture: Session, function: Any, args: tuple[Any, ...], kwargs: Keywords) -> Any:
    """The call with the first of the keywords that may be missing, and the call without it.

    Raises:
        CaptureError: the program may end in one of the two calls, and would go on from there on both paths: Python
            makes the call then.
    """
    if capture.may_end:
        names = " and ".join(repr(str(name)) for name in kwargs if type(name) is MaybeName)
        raise refuse("SG211", f"only the run knows whether a call has the keyword {names}", location=here())
    capture.cannot_end = True
    first = next(name for name in kwargs if type(name) is MaybeName)
    there = {str(name) if name is first else name: value for name, value in kwargs.items()}
    missing = {name: value for name, value in kwargs.items() if name is not first}
    return select(
        capture, first.present, lambda: call(function, *args, **there), lambda: call(function, *args, **missing)
    )
