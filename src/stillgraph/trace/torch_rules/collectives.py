"""Collectives of torch.distributed's in a capture: steps of the program, for only the run talks to other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import distributed
from torch.utils import _pytree as pytree

from stillgraph.core.diagnostics import refuse
from stillgraph.program import operations
from stillgraph.program.distributed import Collective
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.numbers import Staged

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

Handler = Callable[..., Any]


def emit_step(recorder: Recorder, step: Any, values: list[Any], results: tuple[Any, ...]) -> tuple[Any, ...]:
    """Record a step of `program.distributed`'s; ``results``, fresh tensors, stand for what the run will have."""
    node = recorder.emit("call_function", operations.outside, (step, tuple(values)), {})
    return tuple(recorder.bind(results, node))


def refuse_distributed(what: str) -> NoReturn:
    """Refuse what torch.distributed does."""
    raise refuse("SG309", what, location=here())


def _collective(recorder: Recorder, function: Any, args: Any, kwargs: Any) -> None:
    """A collective that writes to tensors in place."""
    if kwargs.get("async_op") or any(value is True for value in args):
        refuse_distributed(f"{function.__name__} is called with async_op=True")
    leaves, spec = pytree.tree_flatten((args, kwargs))
    places = tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, (torch.Tensor, Staged)))
    values = [leaves[place] for place in places]
    kept = tuple(None if i in places else leaf for i, leaf in enumerate(leaves))
    for value in values:
        if isinstance(value, torch.Tensor):
            torch.autograd.graph.increment_version(recorder.to_fake(value))  # what was known of its contents is not
    emit_step(recorder, Collective(function, spec, kept, places), values, ())


def _refused(recorder: Recorder, function: Any, args: Any, kwargs: Any) -> NoReturn:
    refuse_distributed(f"{function.__name__} is called")


_IN_PLACE = (
    "all_reduce",
    "broadcast",
    "reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
    "_all_gather_base",
    "gather",
    "scatter",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_single",
    "_reduce_scatter_base",
    "all_to_all",
    "all_to_all_single",
    "barrier",
)
_NOT_IN_PLACE = (  # they return a handle, or exchange Python objects
    "send",
    "recv",
    "isend",
    "irecv",
    "batch_isend_irecv",
    "send_object_list",
    "recv_object_list",
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "scatter_object_list",
    "all_gather_coalesced",
    "all_reduce_coalesced",
    "monitored_barrier",
)

COLLECTIVES: dict[Any, Handler] = {
    getattr(distributed, name): handler
    for handler, names in ((_collective, _IN_PLACE), (_refused, _NOT_IN_PLACE))
    for name in names
    if hasattr(distributed, name)  # a build of torch may be without
}
"""What a recorder does with each function of torch.distributed's that talks to other processes."""
