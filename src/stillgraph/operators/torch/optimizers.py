"""Optimizers inside the captured function: what they do, they do when the program runs, to the real parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from stillgraph.core.diagnostics import refuse
from stillgraph.core.weak_method import weak_method
from stillgraph.program.operations import invoke
from stillgraph.program.optimizers import learning_rate, stepped, zeroed
from stillgraph.program.types import ObjectType, TensorType
from stillgraph.trace.capture.session import Session, capturing
from stillgraph.trace.code.frames import here
from stillgraph.trace.heap.places import AttributePlace, ContentsPlace, Place
from stillgraph.trace.torch_rules.gradients import clear_gradients, read_gradient
from stillgraph.trace.values.made_in_run import has_options, options_of

_HINT = "Call it outside the static function."
_STEPPING = ("step", "zero_grad")


def is_optimizers(function: Any) -> bool:
    """Whether a callable is a method of an optimizer or a learning rate scheduler."""
    return _owner(function) is not None


def _owner(function: Any) -> Any:
    if isinstance(function, MethodType) and isinstance(function.__self__, (torch.optim.Optimizer, LRScheduler)):
        return function.__self__
    if isinstance(function, FunctionType) and getattr(function, "_wrapped_by_lr_sched", False):
        # A scheduler puts this function in the place of ``optimizer.step``; only its closure knows the optimizer.
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        return cells["opt_ref"].cell_contents() if "opt_ref" in cells else None
    return None


def call_optimizer(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``optimizer.step()``, ``optimizer.zero_grad()``, ``scheduler.step()``: called by the program.

    So is ``scheduler.get_last_lr()``, where it gives floats.
    """
    owner, name = _owner(function), function.__name__
    what = f"{type(owner).__name__}.{name}"
    if isinstance(owner, LRScheduler) and capture.region.holds(owner.optimizer):
        return _call_own_scheduler(capture, function, args, kwargs)
    is_own = capture.region.holds(owner)
    if not is_own and not capture.is_outer(owner):
        raise refuse(
            "SG305", f"{what}, of one that is made inside the function, is called", location=here(), hint=_HINT
        )
    if getattr(function, "__func__", None) is LRScheduler.get_last_lr and set(_kinds_of_rates(owner)) <= {float}:
        return _learning_rates(capture, function, owner)
    given = [value for value in (*args, *kwargs.values()) if value is not None]
    if name not in _STEPPING or (isinstance(owner, LRScheduler) and name != "step"):
        raise refuse("SG305", f"{what} is called inside the function", location=here(), hint=_HINT)
    if name == "step" and given:
        raise refuse("SG305", f"{what} is called with an argument inside the function", location=here(), hint=_HINT)
    capture.before_risk()
    calls_python = getattr(function, "__func__", None) is not torch.optim.Optimizer.zero_grad
    hooks = (*_global_optimizer_pre_hooks.values(), *_global_optimizer_post_hooks.values())
    calling = capture.calling_python([owner, function, *hooks], what, _changed_by(owner, name))
    called = _of_own(capture, owner, name, args) if is_own else (weak_method(function), args)
    with calling if calls_python else contextlib.nullcontext():
        capture.emit("call_function", invoke, (*called, kwargs), {})
    if isinstance(owner, LRScheduler):
        capture.schedules = True
        return None
    parameters = [parameter for group in owner.param_groups for parameter in group["params"]]
    if name == "step":
        _changed(capture, parameters)
    elif not given or given == [True]:
        clear_gradients(capture, parameters)
    return None


def note_made(capture: Session, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Told of an optimizer that the function makes: the run makes one, of its own tensors. This one stands for it."""
    kind = type(optimizer)
    if not kind.__module__.startswith("torch.optim"):
        return
    others = {name: value for name, value in kwargs.items() if name != "params"}
    capture.before_risk()
    groups = [{**group, "params": [*group["params"]]} for group in optimizer.param_groups]
    node = capture.emit("call_function", invoke, (kind, (groups, *args[1:]), others), {})
    node.meta["val"] = ObjectType(kind)
    has_options(node, optimizer)
    capture.region.define(optimizer, node)


def _call_own_scheduler(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a scheduler that the function makes: it sets what the next step of the optimizer is given."""
    if capture.in_arm:
        what = f"{type(function.__self__).__name__}.{function.__name__}"
        message = f"{what}, of one that is made inside the function, is called in a branch or loop"
        raise refuse("SG305", message, location=here(), hint=_HINT)
    return function(*args, **kwargs)


def _of_own(capture: Session, optimizer: Any, name: str, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """What the program calls for a method of an optimizer that it has made, and with what."""
    if name == "zero_grad":
        return zeroed, (optimizer, *args)
    has_options(capture.region.node_of(optimizer), optimizer)
    optimizer._opt_called = True  # as a step says to schedulers
    return stepped, (optimizer, options_of(optimizer))


def _changed_by(owner: Any, name: str) -> list[Place]:
    """What torch changes in a step."""
    if isinstance(owner, LRScheduler):
        inner = [*getattr(owner, "_schedulers", ()), owner]
        own = [AttributePlace(each, n) for each in inner for n, value in vars(each).items() if _counts(n, value)]
        return [*own, *map(ContentsPlace, owner.optimizer.param_groups)]
    return [ContentsPlace(each) for each in (owner.state, *owner.state.values())] if name == "step" else []


def _counts(name: str, value: Any) -> bool:
    """Whether an attribute of a scheduler says how far it is; `_learning_rates` asks for the last rates itself."""
    return isinstance(value, (int, float)) and name not in ("last_epoch", "_last_lr")


def _learning_rates(capture: Session, function: Any, scheduler: LRScheduler) -> list[Any]:
    """``scheduler.get_last_lr()``: read by the program, which may have stepped the scheduler by then."""
    kinds = _kinds_of_rates(scheduler)
    capture.reads.settings.append((_kinds_of_rates, (scheduler,), kinds))
    capture.before_risk()
    rates = []
    for index in range(len(kinds)):
        with capture.calling_python([scheduler], "get_last_lr"):
            read = capture.emit("call_function", invoke, (learning_rate, (weak_method(function), index), {}), {})
        rates.append(capture.fresh_result(float, read))
    capture.identities.freeze(rates)  # the user gets the scheduler's own list
    return rates


def _kinds_of_rates(scheduler: LRScheduler) -> tuple[type, ...]:
    return tuple(map(type, scheduler._last_lr))


def _changed(capture: Session, parameters: list[torch.Tensor]) -> None:
    """Tell whoever relies on what the parameters hold that it is something else now."""
    fakes = [capture.to_fake(parameter) for parameter in parameters]
    with torch._C.DisableTorchFunction():
        torch.autograd.graph.increment_version(fakes)


def _zero_grad(module: torch.nn.Module, set_to_none: bool = True) -> None:
    """``module.zero_grad()``."""
    for parameter in module.parameters():
        if set_to_none:
            parameter.grad = None
        elif parameter.grad is not None:
            parameter.grad = torch.zeros_like(parameter.grad)


def _clip_norm(parameters: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """`torch.nn.utils.clip_grad_norm_`."""
    capture = capturing()
    tensors = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    capture.before_raise(RuntimeError)
    node = capture.emit("call_function", torch.nn.utils.clip_grad_norm_, (tensors, *args), kwargs)
    with_gradient = [t for t in tensors if read_gradient(capture, t) is not None]
    like = capture.to_fake(with_gradient[0]) if with_gradient else torch.empty(0)
    norm: torch.Tensor = capture.instantiate(TensorType(like.dtype, like.device, ()))
    node.meta["val"] = norm
    capture.region.define(norm, node)
    return norm


def _clip_value(parameters: Any, *args: Any, **kwargs: Any) -> None:
    """`torch.nn.utils.clip_grad_value_`."""
    capture = capturing()
    tensors = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    capture.before_risk()
    capture.emit("call_function", torch.nn.utils.clip_grad_value_, (tensors, *args), kwargs)


MEANINGS: dict[Any, Callable[..., Any]] = {
    torch.nn.Module.zero_grad: _zero_grad,
    torch.nn.utils.clip_grad_norm_: _clip_norm,
    torch.nn.utils.clip_grad_value_: _clip_value,
}
