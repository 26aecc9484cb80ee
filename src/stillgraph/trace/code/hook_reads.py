"""What only hooks read: autograd calls them as they are, so that no program depends on what they find."""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

import torch

_HOOKS = ("_backward_hooks", "_backward_pre_hooks")
_LOOKING = frozenset({"locals", "vars", "dir", "eval", "exec"})  # at a function's variables without naming them

Spot = tuple[str, int]  # where code is defined: its name and line


def hooks_of_modules(values: Iterable[Any]) -> Iterator[FunctionType]:
    """The functions that autograd calls for the modules among some objects."""
    return (hook for hook in all_hooks_of_modules(values) if isinstance(hook, FunctionType))


def all_hooks_of_modules(values: Iterable[Any]) -> Iterator[Any]:
    """As `hooks_of_modules`, with callables of any kind."""
    for module in values:
        if isinstance(module, torch.nn.Module):
            for table in _HOOKS:
                yield from getattr(module, table).values()


def global_hooks_of_autograd() -> Iterator[Any]:
    """The hooks that a backward pass calls for each module there is."""
    for table in _HOOKS:
        yield from getattr(torch.nn.modules.module, f"_global{table}").values()


def cells_left_alone(
    hooks: list[FunctionType], others: Iterable[FunctionType], rewritten: Iterable[FunctionType]
) -> frozenset[int]:
    """The ids of the closure cells that hooks read and nothing else does.

    Args:
        hooks: functions that only autograd calls.
        others: all functions that there are; of these, hooks are left out.
        rewritten: those of them whose code ran; hooks defined in it are no part of what ran.
    """
    ids = {id(hook) for hook in hooks}
    ran = {id(function) for function in rewritten}
    spots = [(hook.__code__.co_name, hook.__code__.co_firstlineno) for hook in hooks]
    left = {id(cell) for hook in hooks for cell in hook.__closure__ or ()}
    for function in others:
        if id(function) in ids:
            continue
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        used = _loaded(function.__code__, _alone(function.__code__, spots)) if id(function) in ran else None
        left -= {id(cell) for name, cell in cells.items() if used is None or name in used}
    return frozenset(left)


def _alone(code: CodeType, spots: list[Spot]) -> frozenset[Spot]:
    """Those of some places where one code object is defined inside another; at some there may be several."""
    inside = [(each.co_name, each.co_firstlineno) for each in _nested(code)]
    return frozenset(spot for spot in spots if inside.count(spot) == 1)


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def _loaded(code: CodeType, hooks: frozenset[Spot]) -> frozenset[str] | None:
    """The variables of functions around that code reads or assigns, hooks in it apart; None if it may be any."""
    if not _LOOKING.isdisjoint(code.co_names):
        return None
    names = {i.argval for i in dis.get_instructions(code) if "DEREF" in i.opname}
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and (constant.co_name, constant.co_firstlineno) not in hooks:
            inner = _loaded(constant, hooks)
            if inner is None:
                return None
            names |= inner
    return frozenset(names)
