"""Calls of functions written in Python: those that may meet a staged value are rewritten, and followed."""

from __future__ import annotations

import contextlib
import functools
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_distributions, is_standard_library
from stillgraph.operators import dispatch
from stillgraph.operators.calls.left_alone import call_left_alone
from stillgraph.operators.calls.making import refuse_spread
from stillgraph.operators.calls.meanings import has_meaning
from stillgraph.operators.conditions.methods import keeps_unknown
from stillgraph.operators.control_flow.generators import call_generator
from stillgraph.operators.control_flow.recursion import call_recursive
from stillgraph.operators.dispatch import call
from stillgraph.operators.elements import lists
from stillgraph.operators.objects.changes import note_contents
from stillgraph.operators.objects.registries import TablesSeen, before_tables
from stillgraph.operators.outside.hidden_state import refuse_weak
from stillgraph.operators.torch.transforms import call_transform
from stillgraph.operators.torch.wrappers import refuse_unseen
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.compiled import behind_compiler
from stillgraph.trace.code.frames import here, is_transform, mode_decorated
from stillgraph.trace.code.names import assigned_outer_variables
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.heap.places import CellPlace

_DEEPEST = 12  # how often a function may be inside itself, under conditions that only the run knows


@dispatch.call_function.defined
def call_function(capture: Session, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a Python function, rewritten if it may meet a staged value."""
    if is_transform(function):
        return call_transform(capture, function, args, kwargs)
    behind = behind_compiler(function)
    if behind is not None:
        return call(behind, *args, **kwargs)
    refuse_unseen(function)
    before_tables(capture, function, args, kwargs)
    if is_distributions(function.__code__.co_filename):
        capture.conversion.before_distribution()
    inner = mode_decorated(function)
    if inner is not None and not capture.conversion.wants(function):
        factory, decorated = inner
        with factory():
            return call(decorated, *args, **kwargs)
    if function.__code__ is _DISPATCHING and args:
        cells = dict(zip(function.__code__.co_freevars, (c.cell_contents for c in function.__closure__ or ())))
        return call(cells["dispatch"](call(type, args[0])), *args, **kwargs)
    manager = _context_manager(function)
    if manager is not None and capture.conversion.wants(manager):
        made: Any = contextlib._GeneratorContextManager(capture.conversion.convert(manager), args, kwargs)
        capture.conversion.managers[made] = manager
        return made
    produced = call_generator(capture, function, args, kwargs)
    return _call_followed(capture, function, args, kwargs) if produced is None else produced


def _call_followed(capture: Session, original: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function, in_library = original, is_standard_library(original.__code__.co_filename)
    if capture.conversion.wants(function) or (in_library and any(map(keeps_unknown, args[:1]))):
        function = capture.conversion.convert(function)
    elif in_library:
        refuse_spread(function, args)
        note_all(args)
        refuse_weak(function, args)
        _refuse_callback(function, args)
    elif any(lists.is_spread(argument) for argument in args) and not capture.is_rewritten(function.__code__):
        capture.follow_libraries()
    if original.__code__ in capture.knowledge.recursive:
        return call_recursive(capture, original, function, args, kwargs, note_outer_variables)
    if capture.conversion.skipped(function):
        return call_left_alone(
            capture, function, lambda *a, **k: _call_noted(capture, original, function, a, k), args, kwargs
        )
    return _call_noted(capture, original, function, args, kwargs)


def _call_noted(
    capture: Session, original: FunctionType, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    note_outer_variables(capture, original)
    capture.depth.enter()
    try:
        with TablesSeen(capture, function, args), capture.depth.of(function.__code__, capture.is_rewritten):
            arm = capture.in_arm
            return _call_in_arm(capture, original, function, args, kwargs) if arm else function(*args, **kwargs)
    finally:
        capture.depth.leave()


def _call_in_arm(
    capture: Session, original: FunctionType, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    code = original.__code__
    capture.calls[code] += 1
    try:
        if capture.calls[code] > _DEEPEST:
            if code in capture.knowledge.recursive or not capture.is_rewritten(function.__code__):
                raise refuse("SG207", f"'{function.__name__}' calls itself under a staged condition", location=here())
            raise Restart("recursive", code)
        return function(*args, **kwargs)
    finally:
        capture.calls[code] -= 1


def note_outer_variables(capture: Session, function: FunctionType) -> None:
    """To be called before a function that assigns variables of those around it."""
    if not function.__code__.co_freevars:
        return
    with capture.executed.paused():
        names = assigned_outer_variables(function.__code__)
    for name in names:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        capture.journal.note(CellPlace(cell, name))


_DISPATCHING = functools.singledispatch(id).__code__  # type: ignore[attr-defined]  # of what it makes, a function


def _context_manager(function: FunctionType) -> FunctionType | None:
    """The generator function behind a ``@contextlib.contextmanager``."""
    wrapped = getattr(function, "__wrapped__", None)
    if function.__code__.co_filename == contextlib.__file__ and isinstance(wrapped, FunctionType):
        return wrapped if function.__code__.co_name == "helper" else None
    return None


def note_all(args: tuple[Any, ...]) -> None:
    """To be called before code that is not rewritten gets containers which it might change, and objects it may read."""
    for argument in args:
        note_contents(argument, certain=False)
    note_read(args)


def note_read(args: tuple[Any, ...]) -> None:
    """To be called before code that is not rewritten gets objects which it may read."""
    capture = session()
    for argument in args:
        if capture is not None and not isinstance(argument, _NOT_LOOKED_INTO):
            capture.reads.whole[id(argument)] = argument


_NOT_LOOKED_INTO = (torch.Tensor, torch.nn.Module, str, int, float, bool, type(None))


def _refuse_callback(function: FunctionType, args: tuple[Any, ...]) -> None:
    """Refuse to leave to an ``ExitStack`` what the program has to do: nobody looks on when it is called."""
    if function not in (contextlib.ExitStack.callback, contextlib.ExitStack.push) or len(args) < 2:
        return
    if has_meaning(args[1]):
        name = getattr(args[1], "__name__", type(args[1]).__name__)
        hint = "Use try and finally."
        raise refuse("SG305", f"an ExitStack is to call {name} in the end", location=here(), hint=hint)
