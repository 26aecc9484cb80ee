"""Modules wrapped by torch.distributed: they are followed into, what their wrappers do is left to the run.

Nothing here talks to another process. What a wrapper does before and after a module's call becomes a step of the
program (`program.distributed`); the module itself is captured like any other. Where a wrapper gathers the parameters
first, the capture sees fresh tensors in their place, which are results of that step.

The one module that knows the inside of torch's wrappers: they have no public hooks.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.parallel import DataParallel, DistributedDataParallel

from stillgraph.operators.dispatch import call
from stillgraph.operators.torch import transformers
from stillgraph.program.distributed import EnterParallel, EnterSharded, LeaveParallel, LeaveSharded
from stillgraph.program.facts.info import like
from stillgraph.trace.capture.session import Session, capturing, session
from stillgraph.trace.torch_rules.collectives import COLLECTIVES, emit_step, refuse_distributed
from stillgraph.trace.values.containers import split
from stillgraph.trace.values.lists import StagedList, StagedSpread

Call = Callable[..., Any]


# ---- what passes through a step
def _fresh(
    capture: Session, value: Any, dtype: torch.dtype | None = None, device: torch.device | None = None
) -> Any:
    """Another tensor like ``value``, but for what is given."""
    fake = capture.to_fake(value)
    dtype, device = dtype or fake.dtype, device or fake.device
    with capture.symbolic.fake_mode, torch.enable_grad():
        made = torch.empty_strided(fake.shape, fake.stride(), dtype=dtype, device=device)
        made = made.requires_grad_().view_as(made) if fake.requires_grad else made
    like(made, value)
    return made


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value, containers taken apart."""
    if isinstance(value, torch.Tensor):
        yield value
        return
    if isinstance(value, (StagedSpread, StagedList)):
        refuse_distributed("a list of unknown length goes into or out of a module that torch.distributed wraps")
    parts = split(value)
    for child in () if parts is None else parts.children:
        yield from _tensors(child)


def _replaced(value: Any, by: dict[int, Any]) -> Any:
    """A value with other tensors in it; a container in which nothing is another stays itself."""
    if isinstance(value, torch.Tensor):
        return by.get(id(value), value)
    parts = split(value)
    if parts is None:
        return value
    children = [_replaced(child, by) for child in parts.children]
    same = all(new is old for new, old in zip(children, parts.children, strict=True))
    return value if same else parts.rebuild(children)


def _through(
    capture: Session, step: Any, value: Any, change: Callable[[Any], Any], more: tuple[Any, ...] = ()
) -> tuple[Any, tuple[Any, ...]]:
    """Hand the tensors of a value to a step.

    Args:
        capture: the capture.
        step: what becomes of them in the run.
        value: a tensor or a container.
        change: what the step makes of a tensor: the very same, or a fresh one.
        more: fresh tensors that the step gives besides.

    Returns:
        The value with what became of its tensors, and ``more``.
    """
    tensors = list({id(tensor): tensor for tensor in _tensors(value)}.values())
    with torch._C.DisableTorchFunction():  # what is asked of the tensors here is no part of the program
        changed = [change(tensor) for tensor in tensors]
        results = [_fresh(capture, old) if new is old else new for old, new in zip(tensors, changed, strict=True)]
    bound = emit_step(capture, step, tensors, (*results, *more))
    by = {id(old): new for old, new in zip(tensors, changed, strict=True)}
    return _replaced(value, by), bound[len(tensors) :]


# ---- DistributedDataParallel
def _parallel(module: DistributedDataParallel, *args: Any, **kwargs: Any) -> Any:
    """``DistributedDataParallel.forward``."""
    capture = capturing()
    if module.mixed_precision is not None or module._delay_all_reduce_all_params:
        refuse_distributed("a DistributedDataParallel with mixed_precision or delayed parameters is called")
    capture.wrapped[id(module)] = module
    reference, quiet = weakref.ref(module), id(module) in capture.without_sync
    device = torch.device(module.device_type, module.device_ids[0]) if module.device_ids else None

    def move(tensor: Any) -> Any:
        fake = capture.to_fake(tensor)
        return tensor if device in (None, fake.device) else _fresh(capture, tensor, device=device)

    (args, kwargs), _ = _through(capture, EnterParallel(reference, quiet), (args, kwargs), move)
    result = call(module.module, *args, **kwargs)
    copies = module.find_unused_parameters or module.static_graph

    def change(tensor: Any) -> Any:
        return _fresh(capture, tensor) if copies and capture.to_fake(tensor).grad_fn is not None else tensor

    return _through(capture, LeaveParallel(reference, quiet), result, change)[0]


class _NoSync(contextlib.nullcontext[None]):
    """``DistributedDataParallel.no_sync()``: what is called inside is told so by the program."""

    def __init__(self, module: DistributedDataParallel) -> None:
        super().__init__()
        self._capture, self._module = capturing(), module

    def __enter__(self) -> None:
        self._before = self._capture.without_sync
        self._capture.without_sync = self._before | {id(self._module)}

    def __exit__(self, *error: object) -> None:
        self._capture.without_sync = self._before


def _data_parallel(*args: Any, **kwargs: Any) -> Any:
    refuse_distributed("a DataParallel is called, which copies its module at every call")


# ---- fully_shard
def is_sharding(function: Any) -> bool:
    """Whether a hook or method is one of ``fully_shard``'s."""
    return (getattr(function, "__module__", None) or "").startswith("torch.distributed.fsdp._fully_shard")


def refuse_hook(hook: Any) -> None:
    """Refuse a hook of torch.distributed's that makes tensors which are spread over processes."""
    module = getattr(hook, "__module__", None) or ""
    if module.startswith("torch.distributed."):
        refuse_distributed(f"a module has a hook of {module}")


def refuse_unseen(function: Any) -> None:
    """Refuse a function that talks to other processes, or changes how a sharded module does, out of our sight."""
    if is_sharding(function) or function.__module__ == "torch.distributed.nn.functional":
        refuse_distributed(f"{function.__qualname__} is called")


def gather(
    key: int, module: Any, args: Any, kwargs: Any, leaving: contextlib.ExitStack
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The hook of ``fully_shard`` before a module's call.

    Args:
        key: the hook's.
        module: what is called.
        args, kwargs: of the call.
        leaving: what is closed when the call is over; the module gets its own parameters back then.

    Returns:
        The arguments as they go on.
    """
    capture = capturing()
    capture.wrapped[id(module)] = module
    state = module._get_fsdp_state()
    sharded = [(parameter, group) for group in _groups(state) for parameter in group.fsdp_params]
    homes = [_homes(parameter) for parameter, _ in sharded]
    step = EnterSharded(weakref.ref(module), key, tuple((weakref.ref(own[0][0]), own[0][1]) for own in homes))
    cast = state._mp_policy.param_dtype if state._mp_policy.cast_forward_inputs else None
    if acts_once(state) and (state._mp_policy.param_dtype or state._mp_policy.output_dtype):
        refuse_distributed("several modules are sharded at once, with a policy of dtypes")
    moves = state._device.type != "cpu" and not capture.sharding  # the outermost module's inputs, to an accelerator

    def change(tensor: Any) -> Any:
        fake = capture.to_fake(tensor)
        dtype = cast if cast is not None and fake.dtype.is_floating_point else fake.dtype
        device = state._device if moves else fake.device
        watched = fake.requires_grad and torch.is_grad_enabled()  # the wrapper is told when its gradient is there
        same = not watched and dtype == fake.dtype and device == fake.device
        return tensor if same else _fresh(capture, tensor, dtype, device)

    with torch._C.DisableTorchFunction():
        whole = tuple(_whole(capture, parameter, group) for parameter, group in sharded)
    (args, kwargs), gathered = _through(capture, step, (args, kwargs), change, whole)
    capture.sharding += 1
    leaving.callback(_left, capture)
    for places, tensor in zip(homes, gathered, strict=True):
        for owner, name in places:
            capture.sharded[id(owner._parameters[name])] = f"{type(owner).__name__}.{name}"
            leaving.callback(owner._parameters.__setitem__, name, owner._parameters[name])
            owner._parameters[name] = tensor
    return args, kwargs


def _left(capture: Session) -> None:
    capture.sharding -= 1


def _groups(state: Any) -> list[Any]:
    """The groups of parameters that a sharded module gathers; there was one at most before torch 2.12."""
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:
        return [] if state._fsdp_param_group is None else [state._fsdp_param_group]
    return list(groups)


def acts_once(state: Any) -> bool:
    """Whether modules that are sharded at once have hooks which act for one of them alone, as before torch 2.13.

    The one before acts for the module that is called first, the one after for the last. The others change nothing.
    """
    return len(state._modules) > 1 and torch.__version__ < "2.13"


def _homes(parameter: Any) -> list[tuple[Any, str]]:
    """The modules that hold a sharded parameter, and its names there."""
    info = parameter._module_info
    return [(info.module, info.param_name), *zip(info.shared_modules, info.shared_param_names, strict=True)]


def _whole(capture: Session, parameter: Any, group: Any) -> Any:
    """What stands for a sharded parameter while it is gathered."""
    if parameter.is_dtensor:
        refuse_distributed("sharded parameters are spread over processes in another way besides")
    own = parameter.sharded_param
    dtype = group.mp_policy.param_dtype or own.dtype
    made = capture.symbolic.empty(tuple(parameter._orig_size), dtype, group.device, own.requires_grad)
    made._is_param = True  # what isinstance(_, torch.nn.Parameter) looks at
    return made


def free(key: int, module: Any, result: Any) -> Any:
    """The hook of ``fully_shard`` after a module's call."""
    capture = capturing()
    cast = module._get_fsdp_state()._mp_policy.output_dtype

    def change(tensor: Any) -> Any:
        dtype = capture.to_fake(tensor).dtype
        return _fresh(capture, tensor, cast) if cast not in (None, dtype) and dtype.is_floating_point else tensor

    return _through(capture, LeaveSharded(weakref.ref(module), key), result, change)[0]


# ---- calls
def _step_of(function: Any) -> Call:
    return lambda *args, **kwargs: COLLECTIVES[function](session(), function, args, kwargs)


WRAPPERS: dict[Any, Call] = {
    DistributedDataParallel.forward: _parallel,
    DistributedDataParallel.no_sync: _NoSync,
    DataParallel.forward: _data_parallel,
    **{function: _step_of(function) for function in COLLECTIVES},
    **transformers.METHODS,
}
"""What functions of torch.distributed's, and methods of torch's modules, mean when rewritten code calls them."""
