"""torch's operators of control flow: each is one operation to autograd, whichever path it takes."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch import fx
from torch._higher_order_ops.cond import cond_op
from torch.utils import _pytree as pytree

from stillgraph.polyfills.control_flow import POLYFILLS, depending
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.graph.region import Mark


def _one_operation(function: Callable[..., Any], polyfill: Callable[..., Any]) -> Callable[..., Any]:
    """The meaning of a function of torch's: its polyfill, with gradients for all that any of its paths uses."""
    chooses = function in (torch.cond, cond_op)

    def called(*args: Any, **kwargs: Any) -> Any:
        capture = session()
        assert capture is not None and isinstance(polyfill, FunctionType) and isinstance(depending, FunctionType)
        follow = capture.conversion.convert
        is_plain = chooses and not isinstance(args[0] if args else kwargs.get("pred"), torch.Tensor)
        if is_plain or not torch.is_grad_enabled():
            return follow(polyfill)(*args, **kwargs)
        mark = capture.region.mark()
        given = follow(polyfill)(*args, **kwargs)
        taken = [] if chooses else pytree.tree_leaves((args, kwargs))
        sources = _with_gradients(capture, [*_used_since(capture, mark, args[0] if chooses else None), *taken])
        return follow(depending)(given, sources) if sources else given

    return called


def _used_since(capture: Session, mark: Mark, predicate: Any) -> list[Any]:
    """The values from before ``mark`` that operations recorded since then use; not what a branch asks."""
    region = capture.region
    made = set(region.since(mark))
    values = {node: value for value, node in region.known.values()}
    used: dict[fx.Node, None] = {}
    for node in reversed(region.since(mark)):
        used.update(dict.fromkeys(each for each in node.all_input_nodes if each not in made))
    return [values[node] for node in used if node in values and values[node] is not predicate]


def _with_gradients(capture: Session, values: list[Any]) -> list[Any]:
    """The tensors among some values for which autograd would compute a gradient, each once."""
    tensors = {id(each): each for each in values if isinstance(each, torch.Tensor)}
    return [each for each in tensors.values() if capture.to_fake(each).requires_grad]


MEANINGS: dict[Any, Callable[..., Any]] = {
    function: _one_operation(function, polyfill) for function, polyfill in POLYFILLS.items()
}
