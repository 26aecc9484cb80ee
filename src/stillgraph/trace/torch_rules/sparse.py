"""What is asked of sparse tensors: how many elements one holds, and whether it is coalesced, only the run knows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.facts.info import info, mark
from stillgraph.program.types import DENSE, JoinFailure
from stillgraph.trace.code.frames import here
from stillgraph.trace.torch_rules import layouts

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T = torch.Tensor


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether all elements of a tensor are in one memory by its strides."""
    with torch._C.DisableTorchFunction():
        return tensor.layout is torch.strided


def gives_sparse_gradient(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether a call asks for the gradient of one of its arguments to be sparse."""
    position, name = _SPARSE_GRADIENTS.get(func, (len(args), ""))
    return bool(args[position] if position < len(args) else kwargs.get(name))


_F = torch.nn.functional
_SPARSE_GRADIENTS: dict[Any, tuple[int, str]] = {
    _F.embedding: (6, "sparse"),
    _F.embedding_bag: (7, "sparse"),
    torch.embedding: (4, "sparse"),
    torch.gather: (3, "sparse_grad"),
    _T.gather: (3, "sparse_grad"),
}


def require_dense_gradient(recorder: Recorder, fake: torch.Tensor) -> None:
    """Refuse to look at a gradient of which the capture does not know whether it is sparse."""
    if recorder.gives_sparse_gradients or not is_dense(fake):
        hint = "Look at it outside the static function, or leave sparse=True out."
        raise refuse("SG304", "a gradient is looked at that may be sparse", location=here(), hint=hint)


def layout_of(tensor: torch.Tensor) -> torch.layout:
    """The layout of a tensor that is to be joined with another.

    Raises:
        JoinFailure: no fake tensor can be made that could stand for both.
    """
    layout = tensor.layout
    if layout is torch.strided:
        return layout
    hybrid = layout is torch.sparse_coo and tensor.dense_dim() > 0
    if layout not in _JOINED or hybrid or not all(isinstance(size, int) for size in tensor.shape):
        raise JoinFailure("SG203", f"a tensor of layout {layout} on one path", DENSE)
    return layout


_JOINED = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)


def _coo(recorder: Recorder, args: Any) -> Any:
    fake = recorder.to_fake(args[0]) if args else None
    return fake if isinstance(fake, torch.Tensor) and fake.layout is torch.sparse_coo else None


def _parts(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """Indices or values; ``indices()`` and ``values()`` raise in the run for what is not coalesced then."""
    fake = _coo(recorder, args)
    if fake is None:
        return _as_it_is(recorder, func, args, kwargs)
    recorder.before_raise(RuntimeError)
    result = recorder.run(func, (_coalesced(recorder, fake),), {})
    layouts.let_vary(result)
    return recorder.bind(result, recorder.emit("call_method", func.__name__, args, kwargs))


def _as_it_is(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    result = recorder.record(func, args, kwargs)
    layouts.let_vary(result)
    return result


def _coalesced(recorder: Recorder, fake: torch.Tensor) -> torch.Tensor:
    copy: torch.Tensor = recorder.run(_T.clone, (fake,), {})
    with torch.no_grad(), torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        return copy._coalesced_(True)


def _coalesce(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``coalesce``: the tensor itself, where it is coalesced already, which only the run knows."""
    fake = _coo(recorder, args)
    if fake is None:
        return recorder.record(func, args, kwargs)
    result: Any = recorder.bind(_coalesced(recorder, fake), recorder.emit("call_method", "coalesce", args, kwargs))
    mark(result, is_joined=True)  # it may be a tensor from before
    for each in (result, fake):
        mark(each, may_share=True)
    return result


def _in_the_run(kind: type, recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    fake = recorder.to_fake(args[0])
    if is_dense(fake):
        return recorder.record(func, args, kwargs)  # which says what is wrong
    return recorder.fresh_result(kind, recorder.emit("call_method", func.__name__, args, kwargs))


def require_apart(recorder: Recorder, func: Any, args: Any) -> None:
    """Refuse to write to a sparse tensor where only the run knows whether another is the same one."""
    tensor = args[0] if args else None
    if not isinstance(tensor, torch.Tensor) or not layouts.writes(func):
        return
    fake = recorder.to_fake(tensor)
    if info(fake).may_share:
        message = f"{func.__name__} writes to a sparse tensor, which is what coalesce() has given or another one"
        raise refuse("SG301", message, location=here(), hint="Use the operation that makes a new tensor.")


HANDLERS: dict[Any, Callable[..., Any]] = {
    **{getattr(_T, name): _parts for name in ("indices", "values")},
    **{getattr(_T, name): _as_it_is for name in ("_indices", "_values", "col_indices", "row_indices")},
    _T.coalesce: _coalesce,
    _T.is_coalesced: functools.partial(_in_the_run, bool),
    _T._nnz: functools.partial(_in_the_run, int),
}
