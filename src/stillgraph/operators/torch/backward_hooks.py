"""The backward hooks of modules: the program puts them around each call of the module, as PyTorch does."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.nn.modules import module as internals
from torch.utils.hooks import BackwardHook

from stillgraph.core.diagnostics import refuse
from stillgraph.program.facts.info import info, mark
from stillgraph.program.operations import hooked_inputs, hooked_outputs, module_hooks
from stillgraph.program.types import ObjectType
from stillgraph.trace.capture.session import Session
from stillgraph.trace.code.frames import here


def has_backward_hooks(module: torch.nn.Module) -> bool:
    """Whether autograd is to call hooks for a call of this module."""
    return bool(
        module._backward_hooks
        or module._backward_pre_hooks
        or internals._global_backward_hooks
        or internals._global_backward_pre_hooks
    )


class BackwardHooks:
    """The hooks of a module around one call of it."""

    def __init__(self, capture: Session, module: torch.nn.Module) -> None:
        if module._is_full_backward_hook is False or internals._global_is_full_backward_hook is False:
            hint = "Use register_full_backward_hook."
            raise refuse("SG305", "a module has a backward hook of the old kind", location=here(), hint=hint)
        self._capture = capture
        self._node = capture.emit("call_function", module_hooks, (module,), {})
        self._node.meta["val"] = ObjectType(BackwardHook)
        self._region = capture.region

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments for the module's ``forward``."""
        return self._through(hooked_inputs, args)

    def outputs(self, result: Any) -> Any:
        """What the call gives."""
        if isinstance(result, torch.Tensor):
            return self._through(hooked_outputs, (result,))[0]
        return self._through(hooked_outputs, result) if type(result) is tuple else result

    def _through(self, function: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
        capture = self._capture
        tensors = [capture.to_fake(value) for value in values if isinstance(value, torch.Tensor)]
        node = capture.emit("call_function", function, (self._node, tuple(values)), {})
        if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
            return values
        results = tuple(
            self._part(node, index, value) if isinstance(value, torch.Tensor) else value
            for index, value in enumerate(values)
        )
        node.meta["val"] = capture.to_fake(results)
        return results

    def _part(self, node: torch.fx.Node, index: int, value: torch.Tensor) -> Any:
        part = self._capture.region.graph.call_function(operator.getitem, (node, index))
        part.meta.update(node.meta, bookkeeping=True)
        fresh = self._capture.run(torch.Tensor.view_as, (value, value), {})
        mark(fresh, grad_differs=info(self._capture.to_fake(value)).grad_differs)
        return self._capture.bind(fresh, part)
