"""Calling a module: its ``forward`` with the hooks around it, as ``torch.nn.Module.__call__`` does it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.modules import module as internals
from torch.nn.parameter import is_lazy

from stillgraph.core.diagnostics import refuse
from stillgraph.core.files import is_torch
from stillgraph.operators.conditions.branches import if_exp
from stillgraph.operators.dispatch import call
from stillgraph.operators.objects.identity import is_none
from stillgraph.operators.torch.backward_hooks import BackwardHooks, has_backward_hooks
from stillgraph.operators.torch.wrappers import WRAPPERS, free, gather, is_sharding, refuse_hook
from stillgraph.program.facts.module_tables import entries
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here, surrounds_with_mode
from stillgraph.trace.code.signals import Restart
from stillgraph.trace.control_flow.joined.unjoined import Unjoined


def call_module(capture: Session, module: torch.nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
    """``torch.nn.Module.__call__(module, *args, **kwargs)``, whatever ``__call__`` its class may have."""
    if any(is_lazy(each) for each in (*module._parameters.values(), *module._buffers.values()) if each is not None):
        raise refuse("SG308", f"a {type(module).__name__} learns its sizes", location=here())
    forward = module.forward
    sharded = any(is_sharding(hook) for _, hook, _ in _hooks_before(module))
    if (module._forward_hooks_always_called and not sharded) or internals._global_forward_hooks_always_called:
        return capture.conversion.convert(torch.nn.Module._call_impl)(module, *args, **kwargs)  # type: ignore[arg-type]  # a function
    wrapper = getattr(forward, "__func__", None) in WRAPPERS
    hooked = wrapper or any(_hooks_before(module)) or any(_hooks_after(module)) or has_backward_hooks(module)
    if _is_torch_function(forward) and not hooked and not isinstance(module, torch.nn.Sequential):
        follow_parametrizations(capture, module)
        if capture.conversion.is_wanted(forward):
            return call(forward, *args, **kwargs)
        return torch.nn.Module.__call__(module, *args, **kwargs)
    with contextlib.ExitStack() as leaving:
        args, kwargs = _run_hooks_before(module, args, kwargs, leaving)
        behind = BackwardHooks(capture, module) if torch.is_grad_enabled() and has_backward_hooks(module) else None
        args = args if behind is None else behind.inputs(args)
        result = _run_hooks_after(module, args, kwargs, call(forward, *args, **kwargs))
        return result if behind is None else behind.outputs(result)


def call_in_turn(module: Any, input: Any) -> Any:
    """``torch.nn.Sequential.forward``."""
    for inner in module:
        input = call(inner, input)
    return input


def _is_torch_function(function: Any) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and is_torch(code.co_filename) and not surrounds_with_mode(code)


def follow_parametrizations(capture: Session, module: torch.nn.Module) -> None:
    """Follow into parametrizations where something writes to modules on its own: they may be what does."""
    lists = entries(module, "_modules").get("parametrizations")
    if lists is None or not capture.knowledge.convert_libraries:
        return
    names = {*lists._modules, "get_parametrized"}
    getters = {descriptor.fget.__code__ for descriptor in map(vars(type(module)).get, names) if descriptor is not None}
    forwards = {type(each).forward.__code__ for each in (module, *lists.children())}
    if not (getters | forwards) <= capture.knowledge.convert:
        raise Restart("convert", (getters | forwards, names))


# ---- hooks
Hook = tuple[int, Any, bool]  # its key, and whether it takes the keyword arguments


def _hooks_before(module: torch.nn.Module) -> Iterator[Hook]:
    for key, hook in [*internals._global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()]:
        yield key, hook, key in module._forward_pre_hooks_with_kwargs


def takes_hooks_with_keywords(module: torch.nn.Module) -> bool:
    """Whether code of the user's gets the keywords of a call of a module, beside its ``forward``."""
    return any(with_keywords for _, _, with_keywords in (*_hooks_before(module), *_hooks_after(module)))


def _hooks_after(module: torch.nn.Module) -> Iterator[Hook]:
    for key, hook in [*internals._global_forward_hooks.items(), *module._forward_hooks.items()]:
        with_kwargs = key in module._forward_hooks_with_kwargs or key in internals._global_forward_hooks_with_kwargs
        yield key, hook, with_kwargs


def _run_hooks_before(
    module: torch.nn.Module, args: Any, kwargs: Any, leaving: contextlib.ExitStack
) -> tuple[Any, Any]:
    for key, hook, with_kwargs in _hooks_before(module):
        if is_sharding(hook):
            args, kwargs = gather(key, module, args, kwargs, leaving)
            continue
        refuse_hook(hook)
        if with_kwargs:
            args, kwargs = _unless_none(call(hook, module, args, kwargs), (args, kwargs))
        else:
            args = _unless_none(call(hook, module, args), args, _as_arguments)
    return args, kwargs


def _run_hooks_after(module: torch.nn.Module, args: Any, kwargs: Any, result: Any) -> Any:
    for key, hook, with_kwargs in _hooks_after(module):
        if is_sharding(hook):
            result = free(key, module, result)
            continue
        refuse_hook(hook)
        changed = call(hook, module, args, kwargs, result) if with_kwargs else call(hook, module, args, result)
        result = _unless_none(changed, result)
    return result


def _as_arguments(changed: Any) -> tuple[Any, ...]:
    return changed if isinstance(changed, tuple) else (changed,)


def _unless_none(changed: Any, otherwise: Any, taken: Callable[[Any], Any] = lambda changed: changed) -> Any:
    """What a hook returned, or what there was before if it returned None, be that known now or only in the run."""
    if isinstance(changed, Unjoined):
        return changed.either(lambda each: _unless_none(each, otherwise, taken))
    return if_exp(is_none(changed), lambda: otherwise, lambda: taken(changed))
