"""Code written for TorchScript: what of it becomes one program, and what is left to do."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import torch

from stillgraph.api.captures import capture_call, function_of
from stillgraph.core.faults import unwinds
from stillgraph.core.location import start_of
from stillgraph.operators.torch.torchscript import class_behind, exported_methods, refuse_module
from stillgraph.program.input_spec import Specs
from stillgraph.report.boxes import Place, place_of
from stillgraph.report.migration import Entry, Migration, refusal_of
from stillgraph.report.torchscript_idioms import find_idioms, is_users, package_of
from stillgraph.trace.code.compiled import original_of
from stillgraph.trace.code.options import Options

Call = tuple[tuple[Any, ...], dict[str, Any], Specs | None]


def migrate(target: Any, calls: Mapping[str, Call]) -> Migration:
    """Find what in a function or module is written for TorchScript, and capture each of its entry points.

    Args:
        target: a function or module, or what torch.jit made of one.
        calls: by entry point (``"forward"`` for a module's call, and for a function), arguments, keyword arguments and
            the dimensions to leave open of an example call. An entry point that has none is not captured unless it
            takes no arguments, and a call for what is no entry point is not made.

    Returns:
        What becomes of it. An entry point that cannot be captured, or fails, is told of there.
    """
    is_module = isinstance(target, torch.nn.Module)
    names = entry_points(target)
    function = _python_behind(target)
    shown = names if is_module else [getattr(function, "__name__", type(target).__name__)]
    entries = tuple(_entry(target, name, label, calls.get(name)) for name, label in zip(names, shown, strict=True))
    name = getattr(target, "original_name", type(target).__name__) if is_module else shown[0]
    roots = _classes(target) if is_module else [function]
    return Migration(name, _start(roots), entries, find_idioms(roots, _python_behind))


def entry_points(target: Any) -> list[str]:
    """``"forward"``, which stands for a function too, and the methods that are marked with ``torch.jit.export``."""
    return ["forward", *exported_methods(target)] if isinstance(target, torch.nn.Module) else ["forward"]


def _entry(target: Any, name: str, label: str, call: Call | None) -> Entry:
    if call is None and _takes_nothing(target, name):
        call = (), {}, None
    if call is None:
        return Entry(label, name)
    args, kwargs, spec = call
    try:
        if isinstance(target, torch.jit.ScriptModule):
            raise refuse_module(target)
        method = target if name == "forward" else getattr(target, name)
        with torch.no_grad():
            program = capture_call(method, args, kwargs, spec, Options(for_calls=False))
    except BaseException as error:  # the user's own, too: they are part of the report
        if unwinds(error):
            raise
        return Entry(label, name, refused=refusal_of(error))
    return Entry(label, name, regions=len(program.regions))


def _takes_nothing(target: Any, name: str) -> bool:
    """Whether an entry point of the user's Python is called without arguments."""
    if isinstance(target, torch.jit.ScriptModule):
        return False
    function = getattr(target, name) if isinstance(target, torch.nn.Module) else _python_behind(target)
    try:
        return not inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _python_behind(value: Any) -> Any:
    """The Python function or class behind what torch.jit made; anything else as it is."""
    if isinstance(value, torch.jit.ScriptFunction):
        return original_of(value) or value
    if isinstance(value, torch.nn.Module):
        return type(value)
    return getattr(function_of(value, ())[0], "__original_fn", value) if callable(value) else value


def _classes(module: torch.nn.Module) -> list[type]:
    """The classes of a module and of those in it, as they were written."""
    found = [class_behind(each) or type(each) for each in module.modules()]
    return list(dict.fromkeys(found))


def _start(roots: list[Any]) -> Place | None:
    """Where the first of the functions and classes stands; None where that cannot be read, or is torch's."""
    root = inspect.unwrap(roots[0])
    if not is_users(root, package_of(root)):
        return None
    if isinstance(root, FunctionType):
        return place_of(start_of(root.__code__))
    try:
        return Place(inspect.getfile(root), inspect.getsourcelines(root)[1]) if isinstance(root, type) else None
    except (OSError, TypeError):
        return None
