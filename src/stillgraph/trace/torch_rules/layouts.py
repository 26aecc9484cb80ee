"""How tensors lie in memory, where paths leave one in different ways: only the run can answer who asks.

What a branch or loop gives is contiguous in the capture. Its memory in the run is that of the path taken, and what is
computed from it lies likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from stillgraph.core.diagnostics import Refusal
from stillgraph.program.facts.info import info, mark
from stillgraph.program.types import ListType
from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.torch_rules.autograd_graph import written_on_a_path
from stillgraph.trace.torch_rules.fake_execution import run_on_fakes

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T = torch.Tensor
_VIEWS = frozenset({_T.view, _T.view_as, torch.view_as_complex, torch.view_copy})
"""What some layouts have no view for."""

_BY_STRIDES = frozenset({torch.as_strided, _T.as_strided, _T.as_strided_, torch.as_strided_copy})
"""What takes memory as it lies, and may want more of it than there is."""

_CANNOT_VIEW = "Cannot view a tensor with"  # how fake tensors say what the next line says
_EAGER_SAYS = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
    "contiguous subspaces). Use .reshape(...) instead."
)


def let_vary(tensor: torch.Tensor) -> None:
    """Tell of a tensor that its memory depends on the path taken."""
    with torch._C.DisableTorchFunction():  # nothing is asked of it by the user
        has_dimensions = tensor.dim() > 0
    if has_dimensions:
        mark(tensor, layout_varies=True)


def hand_on(node: fx.Node, result: Any) -> None:
    """Let what a node gives vary where one of its inputs does."""
    if not any(map(_gives_varying, node.all_input_nodes)):
        return
    for each in result if isinstance(result, (tuple, list)) else (result,):
        if isinstance(each, torch.Tensor):
            let_vary(each)


def _gives_varying(node: fx.Node) -> bool:
    if "val" in node.meta:
        return _holds_varying(node.meta["val"])
    return any(map(_gives_varying, node.all_input_nodes))  # as of a list, which is made for the node that takes it


def _holds_varying(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(map(_holds_varying, value))
    return isinstance(value, ListType) or info(value).layout_varies


def varies(recorder: Recorder, tensor: Any) -> bool:
    """Whether a tensor's memory depends on the path taken."""
    if not isinstance(tensor, torch.Tensor):
        return False
    if not is_fake(tensor):  # one from before the call, which may have been given other memory since
        tensor = recorder.fakes.by_real.get(id(tensor), (tensor, tensor))[1]
    return info(tensor).layout_varies


# ---- what only some layouts allow
def may_fail(recorder: Recorder, func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a call may raise a ``RuntimeError`` for the memory of its arguments: fake tensors do not look.

    A write does so where elements of the tensor share memory, as those of an expanded one do, or where some share it
    with elements that are read. How much memory there is only the run knows.
    """
    if func in _BY_STRIDES:
        return True
    out = [each for each in tree_leaves(kwargs.get("out")) if isinstance(each, torch.Tensor)]
    if any(each is other for each in out for other in tree_leaves(args)):
        return True
    written = out
    if args and isinstance(args[0], torch.Tensor):
        if varies(recorder, args[0]) and (func in _VIEWS or writes(func)):
            return True
        written += [args[0]] if writes(func) else []
    return bool(written) and _may_overlap(recorder, written, [args, {**kwargs, "out": None}])


def _may_overlap(recorder: Recorder, written: list[torch.Tensor], given: Any) -> bool:
    """Whether an element that is written may share memory with another one, or with one of another tensor."""
    fakes = recorder.to_fake(written)
    read = [each for each in tree_leaves(recorder.to_fake(given)) if isinstance(each, torch.Tensor)]
    with torch._C.DisableTorchFunction():
        return any(_overlaps_itself(each) or any(_meets(each, other) for other in read) for each in fakes)


def _overlaps_itself(fake: torch.Tensor) -> bool:
    """Whether two elements of a tensor may be one in memory."""
    if fake.layout is not torch.strided:
        return True
    end = 0  # of the elements along the dimensions with shorter steps
    for stride, size in sorted(zip(fake.stride(), fake.shape), key=by_step):
        if type(stride) is not int or type(size) is not int:
            return True  # nobody knows
        if size != 1:
            if stride <= end:
                return True
            end += (size - 1) * stride
    return False


def by_step(dimension: tuple[Any, Any]) -> Any:
    """By what dimensions are sorted, those with shorter steps first."""
    return dimension[0] if type(dimension[0]) is int else 0


def _meets(written: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether a tensor shares memory with another one, and is not the same elements in the same order."""
    if other is written or other.layout is not torch.strided:
        return False
    if written.untyped_storage()._cdata != other.untyped_storage()._cdata:
        return False
    places = [str((each.shape, each.stride(), each.storage_offset())) for each in (written, other)]
    return places[0] != places[1]  # as text, which asks nothing of symbols


def writes(func: Any) -> bool:
    """Whether a call writes to its first argument."""
    name = getattr(func, "__name__", "")
    return func is _T.__setitem__ or name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))


_OPERATORS = ("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_IN_PLACE = frozenset(f"__i{name}__" for name in _OPERATORS)


def run(recorder: Recorder, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Run a call on fake tensors; a view of one whose memory varies is that of a contiguous one.

    Raises:
        RuntimeError: the memory, which is known, has no such view.
    """
    if func in _VIEWS and args and varies(recorder, args[0]):
        args = (_contiguous(args[0]), *args[1:])
    try:
        with written_on_a_path(recorder.region, args):
            return run_on_fakes(recorder.symbolic, func, args, kwargs)
    except ValueError as error:
        if not str(error).startswith(_CANNOT_VIEW):
            raise
        raise RuntimeError(_EAGER_SAYS) from None


def _contiguous(fake: torch.Tensor) -> torch.Tensor:
    """A fake tensor of the same memory whose elements lie in their order."""
    return fake.as_strided(fake.shape, fake.new_empty(fake.shape).stride())  # asks nothing of sizes only the run knows


# ---- what is asked of them
def asked(known: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A handler of a question about a tensor's memory.

    Args:
        known: the handler for a tensor whose memory does not vary, if it is not simply run.
    """

    def handler(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
        tensor, *more = args
        name: str = func.__name__
        if not varies(recorder, tensor):
            try:
                return recorder.record(func, args, kwargs) if known is None else known(recorder, func, args, kwargs)
            except Refusal:
                if name != "is_contiguous":
                    raise  # of a transposed matrix a size that only the run knows decides: one row is contiguous
        if name == "stride" and not more and not kwargs:
            return tuple(_in_the_run(recorder, name, int, (tensor, dim), {}) for dim in range(tensor.dim()))
        return _in_the_run(recorder, name, bool if name == "is_contiguous" else int, args, kwargs)

    return handler


def contiguous(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``contiguous``: where only the run knows whether that makes a copy, what it gives counts as another tensor."""
    plainly = kwargs.get("memory_format", torch.contiguous_format) is torch.contiguous_format
    if not (plainly and varies(recorder, args[0])):
        return recorder.record(func, args, kwargs)
    copy = recorder.run(torch.Tensor.clone, (args[0],), {"memory_format": torch.contiguous_format})
    mark(copy, is_joined=True)  # it may be a tensor from before
    node = recorder.emit("call_method", "contiguous", args, kwargs)
    node.meta["val"] = copy
    return recorder.bind_tensor(copy, node)


def _in_the_run(recorder: Recorder, name: str, kind: type, args: Any, kwargs: Any) -> Any:
    return recorder.fresh_result(kind, recorder.emit("call_method", name, args, kwargs))
