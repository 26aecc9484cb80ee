"""What is done for a call, by the kind of its callee."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import (
    BuiltinMethodType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import class_member
from stillgraph.operators.calls.builtin_methods import call_builtin, call_partial
from stillgraph.operators.calls.cached import call_cached
from stillgraph.operators.calls.functions import OTHERS
from stillgraph.operators.calls.making import construct, refuse_spread
from stillgraph.operators.calls.number_methods import is_declined, on_staged
from stillgraph.operators.calls.python_functions import call_function, note_all
from stillgraph.operators.dispatch import call
from stillgraph.operators.objects.attribute_stores import del_past_class, set_past_class
from stillgraph.operators.outside.foreign import before_method
from stillgraph.operators.outside.hidden_state import refuse_hidden_state
from stillgraph.operators.outside.outside import OUTSIDE
from stillgraph.operators.outside.weak import before_weak_call
from stillgraph.operators.torch import torchscript
from stillgraph.operators.torch.functions import apply_function
from stillgraph.operators.torch.modules import call_in_turn, call_module, follow_parametrizations
from stillgraph.operators.torch.optimizers import call_optimizer, is_optimizers, note_made
from stillgraph.operators.torch.wrappers import WRAPPERS
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here
from stillgraph.trace.torch_rules.special import HANDLERS
from stillgraph.trace.values.operands import require_known
from stillgraph.trace.values.text import StagedText

Args = tuple[Any, ...]
Keywords = dict[str, Any]
Rule = Callable[[Session, Any, Args, Keywords], Any]


def call_by_kind(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    """Call what has no meaning of its own, as its kind is called."""
    before_weak_call(capture, function, args, kwargs)
    if (by_slot := on_staged(function, args, kwargs)) is not None:
        return by_slot()
    if is_optimizers(function):
        return call_optimizer(capture, function, args, kwargs)
    if capture.scripting:
        if torchscript.is_left_to_python(function):
            return torchscript.left_to_python(capture, function, args, kwargs)
        kwargs = torchscript.with_float_defaults(function, args, kwargs)
    rule = next((rule for kind, rule in _KINDS if isinstance(function, kind)), _call_object)
    return rule(capture, function, args, kwargs)


def _call_function(capture: Session, function: FunctionType, args: Args, kwargs: Keywords) -> Any:
    if function is torch.nn.Module.__call__ and args:
        return call_module(capture, args[0], args[1:], kwargs)
    return call_function(capture, function, args, kwargs)


def _call_descriptor(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if function.__objclass__ is str and args and isinstance(args[0], StagedText):
        require_known(args[:1], f"is given to str.{function.__name__}")
        return call(getattr(args[0], function.__name__), *args[1:], **kwargs)
    if args and isinstance(args[0], function.__objclass__):
        before_method(capture, function.__get__(args[0]), args[1:], kwargs)
    refuse_spread(function, args)
    note_all(args)
    return function(*args, **kwargs)


def _call_slot(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if function.__name__ == "__call__" and args and isinstance(args[0], function.__objclass__):
        return call(function.__get__(args[0]), *args[1:], **kwargs)
    return _call_object(capture, function, args, kwargs)


def _call_partial(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    if class_member(type(function), "__call__") is not _OF_PARTIAL:
        return _call_object(capture, function, args, kwargs)
    return call_partial(function, args, kwargs)


_OF_PARTIAL = functools.partial.__dict__["__call__"]


def _call_module(capture: Session, module: Any, args: Args, kwargs: Keywords) -> Any:
    if isinstance(module, torch.jit.ScriptModule):
        raise torchscript.refuse_module(module)
    if type(module).__call__ is not torch.nn.Module.__call__:
        return call_function(capture, type(module).__call__, (module, *args), kwargs)
    return call_module(capture, module, args, kwargs)


def _call_class(capture: Session, kind: Any, args: Args, kwargs: Keywords) -> Any:
    instance = capture.made_modules.add(construct(capture, kind, args, kwargs))
    if isinstance(instance, torch.optim.Optimizer):
        note_made(capture, instance, args, kwargs)
    return instance


def _refuse_script_method(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    raise torchscript.refuse_module(function)


def _call_object(capture: Session, function: Any, args: Args, kwargs: Keywords) -> Any:
    behind = getattr(type(function), "__stillgraph_behind__", None)
    if behind is not None:
        return call(behind(function), *args, **kwargs)
    method = class_member(type(function), "__call__")
    if isinstance(method, FunctionType):
        return call_function(capture, method, (function, *args), kwargs)
    before_method(capture, function, args, kwargs)
    refuse_hidden_state(function)
    note_all(args)
    if function is object.__getattribute__ and args:
        capture.dictionaries.shown(args[0])
    return function(*args, **kwargs)


# ---- bound methods of functions
def _call_method(capture: Session, method: MethodType, args: Args, kwargs: Keywords) -> Any:
    function, receiver = method.__func__, method.__self__
    if is_declined(method, args):
        return NotImplemented
    known = _known_method(function)
    if known is not None:
        return known(receiver, *args, **kwargs)
    for kind, rule in _RECEIVERS:
        if isinstance(receiver, kind) and (done := rule(capture, method, args, kwargs)) is not None:
            return done[0]
    if isinstance(function, FunctionType):
        if isinstance(receiver, torch.nn.Module):
            follow_parametrizations(capture, receiver)
        refuse_hidden_state(method)
        return call_function(capture, function, (receiver, *args), kwargs)
    return call(function, receiver, *args, **kwargs)


def _known_method(function: Any) -> Callable[..., Any] | None:
    """What a function means as a method: one that means something else as a function has it in these tables."""
    if function in _METHODS:
        return _METHODS[function]
    return OUTSIDE.get(function) or WRAPPERS.get(function)


_METHODS: dict[Any, Callable[..., Any]] = {
    torch.nn.Module.__setattr__: functools.partial(set_past_class, torch.nn.Module.__setattr__),
    torch.nn.Module.__delattr__: functools.partial(del_past_class, torch.nn.Module.__delattr__),
    torch.nn.Sequential.forward: call_in_turn,
    **{each: OTHERS[each] for each in (torch.nn.Module.train, torch.nn.Module.eval, torch.nn.Module.zero_grad)},
}


def _of_scaler(capture: Session, method: MethodType, args: Args, kwargs: Keywords) -> None:
    if method.__name__ in ("unscale_", "step", "update"):
        message = f"GradScaler.{method.__name__} decides by gradients; call it outside the static function"
        hint = "Keep scaler.scale(loss).backward() in the function, and step after it: scaler.step(optimizer)."
        raise refuse("SG305", message, location=here(), hint=hint)


def _of_tensor(capture: Session, method: MethodType, args: Args, kwargs: Keywords) -> tuple[Any] | None:
    if method.__name__ != "tolist":
        return None
    return (HANDLERS[torch.Tensor.tolist](capture, torch.Tensor.tolist, (method.__self__, *args), kwargs),)  # its rows


def _of_class(capture: Session, method: Any, args: Args, kwargs: Keywords) -> tuple[Any] | None:
    applies = issubclass(method.__self__, torch.autograd.Function) and method.__name__ == "apply"
    return (apply_function(capture, method, args, kwargs),) if applies else None


def _of_module(capture: Session, method: Any, args: Args, kwargs: Keywords) -> tuple[Any] | None:
    calls = method.__func__ is torch.nn.Module.__call__  # ``super().__call__``
    return (call_module(capture, method.__self__, args, kwargs),) if calls else None


_RECEIVERS: tuple[tuple[type, Callable[..., tuple[Any] | None]], ...] = (
    (torch.amp.GradScaler, _of_scaler),
    (torch.Tensor, _of_tensor),
    (type, _of_class),
    (torch.nn.Module, _of_module),
)
"""By the class of the receiver: what the call gives, in a tuple; None for a method that is like any other."""

_KINDS: tuple[tuple[Any, Rule], ...] = (
    (FunctionType, _call_function),
    (MethodType, _call_method),
    ((BuiltinMethodType, MethodWrapperType), call_builtin),
    (MethodDescriptorType, _call_descriptor),
    (WrapperDescriptorType, _call_slot),
    (functools._lru_cache_wrapper, call_cached),
    (functools.partial, _call_partial),
    (torch.nn.Module, _call_module),
    (type, _call_class),
    (torch.jit.ScriptFunction, torchscript.call_compiled),
    (torch.ScriptMethod, _refuse_script_method),
)
"""By the class of the callee, which none shares with another row; an instance of any other class is an object."""
