"""Arguments and results of torch calls: sequences taken apart and rebuilt, indices for the run on fake tensors."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from stillgraph.trace.fakes.symbolic import is_fake

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T = torch.Tensor


# ---- arguments and results
def rebuild_sequence(like: Any, items: list[Any]) -> Any:
    """A tuple or list of ``like``'s type; sizes become plain tuples, because they may hold nodes or symbols."""
    if isinstance(like, torch.Size) or type(like) is tuple:
        return tuple(items)
    if type(like) is list:
        return items
    if hasattr(like, "_fields"):
        return type(like)(*items)
    return type(like)(items)


def fake_arguments(recorder: Recorder, func: Any, args: Any) -> Any:
    """Arguments for the run on fakes: torch takes no symbolic integer as an index, any other has the same shape."""
    if func not in (_T.__getitem__, _T.__setitem__):
        return args
    index = args[1]
    whole = index if isinstance(index, tuple) else (index,)
    if not any(_is_position(i) for i in whole):
        return args
    swapped = tuple(0 if _is_position(i) else i for i in whole)
    return (args[0], swapped if isinstance(index, tuple) else swapped[0], *args[2:])


def _is_position(index: Any) -> bool:
    if isinstance(index, torch.Tensor):
        return index.dim() == 0 and index.dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
    return isinstance(index, torch.SymInt)


def has_staged(result: Any) -> bool:
    """Whether a result holds a tensor or a symbol."""
    if isinstance(result, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return True
    return isinstance(result, (tuple, list)) and any(has_staged(item) for item in result)


def bind_sequence(recorder: Recorder, result: Any, node: fx.Node) -> Any:
    """Give each element of a tuple or list its own node."""
    items = []
    for index, item in enumerate(result):
        if has_staged(item):
            part = recorder.region.graph.call_function(operator.getitem, (node, index))
            part.meta.update(node.meta, bookkeeping=True)
            items.append(recorder.bind(item, part))
        else:
            items.append(item)
    if isinstance(result, torch.Size):
        return torch.Size(items)
    if all(new is old for new, old in zip(items, result)):
        return result
    return rebuild_sequence(result, items)


def forget_constant(result: torch.Tensor) -> None:
    """Fake tensors remember small constants; what an arm then does to them could not be undone."""
    if is_fake(result) and result.constant is not None:  # type: ignore[attr-defined]  # not in the stubs
        result.constant = None  # type: ignore[attr-defined]  # not in the stubs
