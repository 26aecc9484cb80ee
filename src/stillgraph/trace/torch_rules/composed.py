"""Torch functions that ask for sizes on which their results do not depend: recorded so that nothing asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import CaptureError, Refusal, refuse
from stillgraph.program.attention import ATTENTION, is_open
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.node_naming import as_node
from stillgraph.trace.torch_rules.layouts import let_vary
from stillgraph.trace.torch_rules.packed import zeros_from
from stillgraph.trace.values.numbers import StagedBool, StagedNumber, is_mixed, kinds_of
from stillgraph.trace.values.operands import require_one_kind

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder


_WHOLE = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})


def _diff(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``diff`` of neighbours along a dimension whose size is open: the later ones less the earlier ones."""
    tensor, n, dim, prepend, append = _arguments_of_diff(*args, **kwargs)
    parts = [each for each in (prepend, tensor, append) if each is not None]
    if n != 1 or all(type(size) is int for part in parts for size in _shape(part)):
        return recorder.record(func, args, kwargs)
    with recorder:
        whole = torch.cat(parts, dim=dim) if len(parts) > 1 else tensor
        before = (slice(None),) * (dim % whole.dim())
        later, earlier = whole[(*before, slice(1, None))], whole[(*before, slice(None, -1))]
        return later.logical_xor(earlier) if whole.dtype == torch.bool else later - earlier


def _arguments_of_diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, axis: int | None = None
) -> tuple[Any, int, int, Any, Any]:
    return input, n, dim if axis is None else axis, prepend, append


def _cdist(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``cdist``, of which torch chooses the kernel by the number of points: the result has the same form with each."""
    chosen = kwargs.get("compute_mode") != "use_mm_for_euclid_dist_if_necessary"  # torch.cdist names it itself
    given = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)]
    if chosen or all(type(size) is int for each in given for size in _shape(each)):
        return recorder.record(func, args, kwargs)
    result = recorder.run(func, args, {**kwargs, "compute_mode": "donot_use_mm_for_euclid_dist"})
    return recorder.bind(result, recorder.emit("call_function", func, args, kwargs))


def _unique(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``unique`` along a dimension: shape inference takes no negative one, and does not know how the result lies."""
    names = ("input", *(("sorted",) if func.__name__ == "unique" else ()), "return_inverse", "return_counts", "dim")
    given = {**dict(zip(names, args)), **kwargs}
    dim, tensor = given.pop("dim", None), given.pop("input", None)
    if type(dim) is not int or not isinstance(tensor, torch.Tensor):
        return recorder.record(func, args, kwargs)
    rank = len(_shape(tensor))
    result = recorder.record(func, (tensor,), {**given, "dim": dim + rank if -rank <= dim < 0 else dim})
    let_vary(result[0] if isinstance(result, tuple) else result)
    return result


def _reshaped(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``x.reshape(h * w, -1)``: where torch cannot tell the size that is left, only the run knows it."""
    try:
        return recorder.record(func, args, kwargs)
    except (Refusal, CaptureError) as refused:
        error = refused.error if isinstance(refused, Refusal) else refused
        sizes = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:]
        left = [place for place, size in enumerate(sizes) if type(size) is int and size == -1]
        if error.reason.code != "SG304" or kwargs or len(left) != 1 or any(isinstance(s, torch.Tensor) for s in sizes):
            raise
    recorder.before_raise(RuntimeError)
    made = [recorder.symbolic.fresh_size() if place in left else recorder.to_fake(s) for place, s in enumerate(sizes)]
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        result = zeros_from(recorder.to_fake(args[0]), tuple(made))
    let_vary(result)
    return recorder.bind(result, recorder.emit(*as_node(func, args, kwargs), kwargs))


def _with_number(*names: str) -> Callable[..., Any]:
    """A function that torch gives a number by a tensor, and asks it for that: the last of the first arguments."""

    def handler(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = {**dict(zip(names, args)), **kwargs}
        number = given.get(names[-1])
        if not isinstance(number, torch.Tensor) or len(_shape(number)) > 0 or number.dtype not in _WHOLE:
            return recorder.record(func, args, kwargs)
        with recorder:
            given[names[-1]] = number.item()
        first = [given.pop(name) for name in names]
        return recorder.record(func, (*first, *args[len(names) :]), given)

    return handler


def _grouped_product(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``grouped_mm``: torch's shape inference takes matrices of bfloat16 alone, its kernels for a CPU take others."""
    names = ("mat_a", "mat_b")
    given = {**dict(zip(names, args)), **kwargs}
    dtypes = {given[name].dtype for name in names if name in given}
    if len(dtypes) != 1 or dtypes == {torch.bfloat16}:
        return recorder.record(func, args, kwargs)
    (dtype,) = dtypes
    kept = {name: value for name, value in given.items() if name not in (*names, "out_dtype")}
    matrices = [recorder.run(torch.Tensor.to, (given[name], torch.bfloat16), {}) for name in names]
    result = recorder.run(func, (*matrices, *args[2:]), kept)
    result = recorder.run(torch.Tensor.to, (result, kwargs.get("out_dtype") or dtype), {})
    return recorder.bind(result, recorder.emit("call_function", func, args, kwargs))


def _attention(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``scaled_dot_product_attention``: with the kernel it is unknown how the result lies in memory."""
    result = recorder.record(func, args, kwargs)
    if is_open(*(recorder.to_fake(each) for each in (*args, *kwargs.values()))):
        let_vary(result)
    return result


def _shape(tensor: torch.Tensor) -> tuple[Any, ...]:
    with torch._C.DisableTorchFunction():
        return tuple(tensor.shape)


def _indexed(recorder: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``t[:n]`` with a tensor or truth ``n``, which Python asks for a number; ``t[mask]`` with a mask of bytes."""
    index = args[1]
    parts = index if isinstance(index, tuple) else (index,)
    if func is torch.Tensor.__setitem__ and any(map(_is_byte_mask, parts)):
        message = "a mask of uint8 is written through, which torch refuses where it picks one element"
        raise refuse("SG304", message, location=here(), hint="Write through mask.bool().")
    truths = [part for part in parts if isinstance(part, StagedBool)]
    optional = next(filter(recorder.may_be_none, (*truths, *_asked_bounds(parts))), None)
    if optional is not None:
        with recorder:
            return recorder.with_or_without(
                optional, lambda one: func(args[0], _exchanged(index, optional, one), *args[2:], **kwargs)
            )
    if any(_is_bounded(part) or _is_byte_mask(part) for part in parts):
        with recorder:
            plain = tuple(_plain_index(recorder, part) for part in parts)
        args = (args[0], plain if isinstance(index, tuple) else plain[0], *args[2:])
    return recorder.record(func, args, kwargs)


def _plain_index(recorder: Recorder, part: Any) -> Any:
    if _is_bounded(part):
        return slice(*(_number(recorder, bound) for bound in (part.start, part.stop, part.step)))
    return part.to(torch.bool) if _is_byte_mask(part) else part


def _is_byte_mask(part: Any) -> bool:
    """Whether an index is a mask as torch had them before it had truth values; its shape inference takes none."""
    return isinstance(part, torch.Tensor) and part.dtype is torch.uint8 and len(_shape(part)) > 0


def _is_bounded(part: Any) -> bool:
    """Whether a slice has a bound that Python asks for a number."""
    return bool(_asked_bounds((part,)))


def _asked_bounds(parts: tuple[Any, ...]) -> list[Any]:
    """The bounds of slices that Python asks for a number."""
    slices = [part for part in parts if isinstance(part, slice)]
    return [bound for part in slices for bound in (part.start, part.stop, part.step) if _is_asked(bound)]


def _exchanged(index: Any, old: Any, new: Any) -> Any:
    """An index with another value for a part of it, or for a bound of its slices."""
    if isinstance(index, tuple):
        return tuple(_exchanged(part, old, new) for part in index)
    if not isinstance(index, slice):
        return new if index is old else index
    return slice(*(new if bound is old else bound for bound in (index.start, index.stop, index.step)))


def _is_asked(bound: Any) -> bool:
    return _is_whole_number(bound) or isinstance(bound, StagedBool) or is_mixed(bound)


def _is_whole_number(bound: Any) -> bool:
    if not isinstance(bound, torch.Tensor) or bound.dtype not in _WHOLE:
        return False
    return all(type(size) is int and size == 1 for size in _shape(bound))


def _number(recorder: Recorder, bound: Any) -> Any:
    if isinstance(bound, StagedNumber):
        if float in kinds_of(bound):
            require_one_kind((bound,), "is a bound of a slice")
        return recorder.number_operation(int, (bound,))
    return bound.item() if _is_whole_number(bound) else bound


HANDLERS: dict[Any, Callable[..., Any]] = {
    ATTENTION: _attention,
    torch._grouped_mm: _grouped_product,
    **({torch.nn.functional.grouped_mm: _grouped_product} if hasattr(torch.nn.functional, "grouped_mm") else {}),
    **dict.fromkeys((torch.reshape, torch.Tensor.reshape, torch.Tensor.view), _reshaped),
    torch.nn.functional.one_hot: _with_number("tensor", "num_classes"),
    torch.narrow: _with_number("input", "dim", "start"),
    torch.Tensor.narrow: _with_number("input", "dim", "start"),
    **dict.fromkeys((torch.unique, torch.unique_consecutive), _unique),
    **dict.fromkeys((torch.Tensor.unique, torch.Tensor.unique_consecutive), _unique),
    torch.cdist: _cdist,
    torch.diff: _diff,
    torch.Tensor.diff: _diff,
    torch.Tensor.__getitem__: _indexed,
    torch.Tensor.__setitem__: _indexed,
}
