"""Hooks that the captured function puts on tensors: the program puts them on, and autograd calls them as they are.

A hook is no part of the program, so what it closes over has to be there when autograd calls it: staged values are put
into a fresh closure each time the program runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import BuiltinMethodType, CellType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.hooks import RemovableHandle

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_ours
from stillgraph.core.location import Location
from stillgraph.program.operations import closed_over
from stillgraph.program.types import ObjectType
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.values.numbers import Staged, StagedNumber

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T = torch.Tensor
_HINT = "Let the hook use objects from outside the function, or put it on a tensor that the function returns."
_CONSTANTS = (
    *(int, float, complex, str, bytes, bool, type(None), type, ModuleType),
    *(torch.dtype, torch.device, torch.nn.Module, torch.Tensor, BuiltinMethodType),
)


class Handle:
    """What registering a hook gives; the program has the real one."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def remove(self) -> None:
        """Take the hook off again."""
        self._recorder.emit("call_method", "remove", (self,), {})


@dataclass
class HookedVariables:
    """Variables that hooks close over: Python would show a hook what they hold in the end, a program does not."""

    known: list[tuple[CellType, Any, Location | None]] = field(default_factory=list)
    hooks: list[FunctionType] = field(default_factory=list)
    called: list[Any] = field(default_factory=list)  # all that autograd calls, functions or not

    def require_unchanged(self) -> None:
        """To be called at the end of an arm, and of the capture."""
        for cell, value, location in self.known:
            if _contents(cell) is not value:
                raise refuse("SG305", "a variable that a hook uses is assigned again", location=location, hint=_HINT)

    def forget_undone(self) -> None:
        """To be called after an arm was undone: what was assigned in it is not to be seen from outside."""
        self.known = [entry for entry in self.known if _contents(entry[0]) is entry[1]]


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return HookedVariables  # nothing: no variable holds this class


def _register(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Handle:
    """``tensor.register_hook(hook)`` and its kin."""
    tensor, hook = args[0], args[1] if len(args) > 1 else kwargs["hook"]
    recorder.before_raise(RuntimeError)
    recorder.hooked.called.append(hook)
    if isinstance(hook, FunctionType):
        recorder.hooked.hooks.append(hook)
    node = recorder.emit("call_method", func.__name__, (tensor, _lasting(recorder, hook)), {})
    node.meta["val"] = ObjectType(RemovableHandle)
    handle = Handle(recorder)
    recorder.region.define(handle, node)
    return handle


def _lasting(recorder: Recorder, value: Any) -> Any:
    """Something that a hook uses, as an argument of a node: as it is, or made anew by the program."""
    if isinstance(value, (StagedNumber,)) or is_fake(value):
        return value
    if isinstance(value, Staged) or str(type(value).__module__).startswith("stillgraph.trace."):
        raise refuse("SG305", "a hook uses what only the run knows", location=here(), hint=_HINT)
    if isinstance(value, FunctionType):
        return _function(recorder, value)
    if isinstance(value, functools.partial):
        inner = _lasting(recorder, value.func)
        given = [_lasting(recorder, each) for each in value.args]
        keywords = {name: _lasting(recorder, each) for name, each in value.keywords.items()}
        made = [inner, *given, *keywords.values()]
        before = (value.func, *value.args, *value.keywords.values())
        if all(a is b and not _is_staged(a) for a, b in zip(made, before)):
            return value
        return _made(recorder, functools.partial, (inner, *given), keywords)
    if isinstance(value, MethodType):
        _lasting(recorder, value.__self__)
        return value
    if isinstance(value, BuiltinMethodType) and not isinstance(value.__self__, ModuleType):
        _lasting(recorder, value.__self__)
        return value
    if isinstance(value, _CONSTANTS) or recorder.is_outer(value):
        return value
    if isinstance(value, (tuple, frozenset)) and all(_lasting(recorder, each) is each for each in value):
        return value
    kind = type(value).__name__
    raise refuse("SG305", f"a hook uses a {kind} that the function has made", location=here(), hint=_HINT)


def _function(recorder: Recorder, function: FunctionType) -> Any:
    """A function; with what it closes over put in by the program where that is staged."""
    if recorder.is_outer(function) or is_ours(function.__code__.co_filename):  # an operator in a rewritten function
        return function
    names = function.__code__.co_freevars
    staged: dict[str, Any] = {}
    for name, cell in zip(names, function.__closure__ or ()):
        try:
            value = cell.cell_contents
        except ValueError:
            raise refuse("SG305", f"a hook uses '{name}', assigned after it", location=here(), hint=_HINT) from None
        if value is function:
            continue
        recorder.hooked.known.append((cell, value, here()))
        lasting = _lasting(recorder, value)
        if lasting is not value or _is_staged(value):
            staged[name] = lasting
    defaults = [_lasting(recorder, value) for value in function.__defaults__ or ()]
    keywords = {name: _lasting(recorder, value) for name, value in (function.__kwdefaults__ or {}).items()}
    plain = not any(map(_is_staged, (*defaults, *keywords.values())))
    if plain and not staged:
        return function
    return _made(recorder, closed_over, (function, staged, tuple(defaults), keywords), {})


def _made(recorder: Recorder, make: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """The node of a callable that the program makes."""
    node = recorder.emit("call_function", make, args, keywords)
    node.meta["val"] = ObjectType(FunctionType)
    return node


def _is_staged(value: Any) -> bool:
    return isinstance(value, (StagedNumber, torch.fx.Node)) or is_fake(value)


HANDLERS: dict[Any, Callable[..., Any]] = {
    _T.register_hook: _register,
    _T.register_post_accumulate_grad_hook: _register,
}
