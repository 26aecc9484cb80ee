"""Operators that fail where PyTorch raises: for an index, start, length or count out of its range.

ONNX counts a negative index from the end, cuts a slice at its ends, and makes a range that runs backwards empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch
from onnxscript import opset18
from onnxscript.function_libs.torch_lib.ops import core, nn

op: Any = opset18  # its stubs know no values under translation
_FLOAT, _INT64 = int(ir.DataType.FLOAT), int(ir.DataType.INT64)
_COUNTING = frozenset({"ArgMax", "ArgMin", "NonZero", "Shape", "Size"})


def _constant(value: Any) -> Any | None:
    """What a value is that the file holds, as an array or a number; None for one that the run computes."""
    if isinstance(value, (int, float)):
        return value
    known = ir.convenience.get_const_tensor(value)
    return None if known is None else known.numpy()


def _is_counted(value: Any) -> bool:
    """Whether whole numbers cannot be negative, for what they are computed by."""
    known, producer = _constant(value), getattr(value, "producer", lambda: None)()
    if known is not None:
        return bool((known >= 0) if isinstance(known, (int, float)) else (known >= 0).all())
    if producer is None:
        return False
    if producer.op_type in ("Cast", "Squeeze", "Unsqueeze", "Reshape", "Gather", "Identity"):
        return _is_counted(producer.inputs[0])
    return producer.op_type in _COUNTING or (producer.op_type == "TopK" and value is producer.outputs[1])


def _size(x: Any, dim: int) -> Any:
    size = x.shape[dim] if x.shape is not None else None
    if isinstance(size, int):
        return op.Constant(value_int=size)
    return op.Gather(op.Shape(x), op.Constant(value_int=dim))


def _below(index: Any, size: Any, allowed: int | None = None) -> Any:
    """Indices of which a negative one is past the end, where ONNX's operators fail; ``allowed`` stays."""
    if _is_counted(index):
        return index
    negative = op.Less(index, op.CastLike(op.Constant(value_int=0), index))
    if allowed is not None:
        negative = op.And(negative, op.Not(op.Equal(index, op.CastLike(op.Constant(value_int=allowed), index))))
    checked = op.Where(negative, op.CastLike(size, index), index)
    checked.shape, checked.type = index.shape, index.type  # torch's translations ask for them
    return checked


def _required(number: Any, count: Any) -> Any:
    """A whole number, where it is in ``range(count)``: onnxruntime fails for another."""
    return op.Gather(op.Range(op.Constant(value_int=0), count, op.Constant(value_int=1)), _below(number, count))


def _scalar(number: Any) -> Any:
    if isinstance(number, int):
        return op.Constant(value_int=number)
    return op.Squeeze(op.Reshape(op.Cast(number, to=_INT64), op.Constant(value_ints=[-1])))


def indexed(theirs: Callable[..., Any], x: Any, dim: int, index: Any, *others: Any, **named: Any) -> Any:
    """An operator ``(x, dim, index, …)`` whose index counts from the front."""
    checked = index if len(x.shape) == 0 else _below(index, _size(x, dim))
    return theirs(x, dim, checked, *others, **named)


def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """``torch.embedding``."""
    return op.Gather(weight, _below(indices, _size(weight, 0)))


def gather(x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    """``torch.gather``."""
    return indexed(core.aten_gather, x, dim, index)


def index_select(x: Any, dim: int, index: Any) -> Any:
    """``torch.index_select``."""
    return indexed(core.aten_index_select, x, dim, index)


def scatter_src(x: Any, dim: int, index: Any, src: Any) -> Any:
    """``torch.scatter`` of a tensor."""
    return indexed(core.aten_scatter_src, x, dim, index, src)


def scatter_value(x: Any, dim: int, index: Any, value: float) -> Any:
    """``torch.scatter`` of a number."""
    return indexed(core.aten_scatter_value, x, dim, index, value)


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    """``torch.scatter_add``."""
    return indexed(core.aten_scatter_add, x, dim, index, src)


def scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Any:
    """``torch.scatter_reduce``."""
    return indexed(core.aten_scatter_reduce, x, dim, index, src, reduce, include_self)


def _vector(x: Any) -> Any:
    """A tensor without dimensions as one of one element; anything else, a number say, as it is."""
    if not isinstance(x, ir.Value):
        return x
    made = op.Reshape(x, op.Constant(value_ints=[-1]))
    made.shape, made.type = ir.Shape([1]), x.type  # what is written out with it asks for them
    return made


def _spread(x: Any, dim: int, index: Any, source: Any) -> tuple[Any, Any]:
    """An index along one dimension, with the elements for it, as ``ScatterElements`` takes them."""
    dim, shape = dim % len(x.shape), [1] * len(x.shape)
    shape[dim] = -1
    rows = op.Reshape(_below(index, _size(x, dim)), op.Constant(value_ints=shape))
    count = op.Shape(op.Reshape(index, op.Constant(value_ints=[-1])))
    around = op.Shape(x)
    sizes = op.Concat(op.Slice(around, [0], [dim]), count, op.Slice(around, [dim + 1], [len(shape)]), axis=0)
    return op.Expand(rows, sizes), op.Expand(source, sizes)


def index_add(x: Any, dim: int, index: Any, source: Any, alpha: float = 1) -> Any:
    """``torch.index_add``."""
    if len(x.shape) == 0:
        return op.Squeeze(index_add(_vector(x), 0, index, _vector(source), alpha))
    source = source if alpha == 1 else op.Mul(source, op.CastLike(op.Constant(value_float=float(alpha)), source))
    return op.ScatterElements(x, *_spread(x, dim, index, source), axis=dim, reduction="add")


def index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    """``torch.index_copy``."""
    if len(x.shape) == 0:
        return op.Squeeze(index_copy(_vector(x), 0, index, _vector(source)))
    return op.ScatterElements(x, *_spread(x, dim, index, source), axis=dim)


def index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    """``torch.index_fill``, which counts a negative index from the end."""
    if len(x.shape) == 0:
        return op.Squeeze(index_fill(_vector(x), 0, index, value))
    shape, size = [1] * len(x.shape), _size(x, dim)
    shape[dim % len(shape)] = -1
    places = op.Range(op.Constant(value_int=0), size, op.Constant(value_int=1))
    chosen = op.Gather(places, op.Reshape(index, op.Constant(value_ints=[-1])))
    found = op.Equal(op.Unsqueeze(places, op.Constant(value_ints=[1])), op.Cast(chosen, to=_INT64))
    found = op.Greater(op.ReduceSum(op.Cast(found, to=_INT64), op.Constant(value_ints=[1]), keepdims=0), 0)
    filled = op.CastLike(op.Constant(value_float=value) if isinstance(value, float) else value, x)
    return op.Where(op.Reshape(found, op.Constant(value_ints=shape)), filled, x)


def one_hot(x: Any, num_classes: int = -1) -> Any:
    """``torch.nn.functional.one_hot``."""
    if isinstance(num_classes, int) and num_classes < 0:  # the save is refused with this text (SG402)
        raise NotImplementedError("torch.nn.functional.one_hot without the number of classes")
    count = _scalar(num_classes)
    values = op.Constant(value_ints=[0, 1])
    return op.OneHot(_required(x, count), op.Reshape(count, op.Constant(value_ints=[-1])), values)


def nll_loss(x: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Any:
    """``torch.nn.functional.nll_loss``."""
    return nn.aten_nll_loss(x, _class(x, target, ignore_index), weight, reduction, ignore_index)


def nll_loss_forward(x: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """What ``torch.nn.functional.nll_loss`` computes, with the sum of the weights."""
    return nn.aten_nll_loss_forward(x, _class(x, target, ignore_index), weight, reduction, ignore_index)


def cross_entropy_loss(
    x: Any,
    target: Any,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    """``torch.nn.functional.cross_entropy``."""
    if not target.dtype.is_floating_point():
        target = _class(x, target, ignore_index)
    return nn.aten_cross_entropy_loss(x, target, weight, reduction, ignore_index, label_smoothing)


def _class(x: Any, target: Any, ignored: int) -> Any:
    return _below(target, _size(x, 0 if len(x.shape) == 1 else 1), ignored)


def narrow(x: Any, dim: int, start: Any, length: Any) -> Any:
    """``torch.narrow``: the part is within the tensor."""
    size, begin, count = _size(x, dim), _scalar(start), _scalar(length)
    if not _is_counted(start):
        begin = op.Where(op.Less(begin, op.Constant(value_int=0)), op.Add(begin, size), begin)
    known = x.shape[dim], start, length
    if not all(isinstance(each, int) for each in known):
        past = op.Add(size, op.Constant(value_int=1))
        begin = _required(begin, past)
        count = _required(count, op.Sub(past, begin))
    flat = op.Constant(value_ints=[-1])
    begin, end = op.Reshape(begin, flat), op.Reshape(op.Add(begin, count), flat)
    return op.Slice(x, begin, end, op.Constant(value_ints=[dim]))


def _forward(start: Any, end: Any) -> Any:
    """The end of a range of whole numbers that does not lie before its start."""
    if _is_counted(end) and _constant(start) == 0:
        return end
    zero = op.Constant(value_ints=[0])
    backwards = op.Cast(op.Less(end, op.CastLike(start, end)), to=_INT64)
    return op.Add(end, op.CastLike(op.Gather(zero, backwards), end))


def arange(end: Any, dtype: int = -1, layout: str = "", device: str = "", pin_memory: bool = False) -> Any:
    """``torch.arange(end)``."""
    return core.aten_arange(end if _constant(end) is not None else _forward(0, end), dtype)


def arange_start(
    start: Any, end: Any, dtype: int = -1, layout: str = "", device: str = "", pin_memory: bool = False
) -> Any:
    """``torch.arange(start, end)``."""
    known = _constant(start) is not None and _constant(end) is not None
    return core.aten_arange_start(start, end if known else _forward(start, end), dtype)


def eye(n: Any, dtype: int = -1, layout: str = "", device: str = "", pin_memory: bool = False) -> Any:
    """``torch.eye(n)`` of a size that the run computes."""
    size = op.Reshape(_scalar(n), op.Constant(value_ints=[-1]))
    zeros = op.Expand(op.Constant(value_float=0.0), op.Concat(size, size, axis=0))
    return op.EyeLike(zeros, dtype=_FLOAT if dtype in (None, -1) else dtype)


def roll(x: Any, shifts: Any, dims: Sequence[int] = ()) -> Any:
    """``torch.roll``; torch's translation takes no shift that the run computes."""
    shifts, dims = ([each] if isinstance(each, int) else list(each) for each in (shifts, dims))
    if all(isinstance(each, int) for each in shifts):
        return core.aten_roll(x, shifts, dims)
    flat = x if dims else op.Reshape(x, op.Constant(value_ints=[-1]))
    for shift, dim in zip(shifts, dims or [0], strict=True):
        size = _size(flat, dim)
        places = op.Range(op.Constant(value_int=0), size, op.Constant(value_int=1))
        flat = op.Gather(flat, op.Mod(op.Sub(places, _scalar(shift)), size), axis=dim)
    return flat if dims else op.Reshape(flat, op.Shape(x))


def kthvalue(x: Any, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """``torch.kthvalue``: the last of the ``k`` smallest elements."""
    wanted = op.Reshape(_scalar(k), op.Constant(value_ints=[-1]))
    last = op.Sub(wanted, op.Constant(value_ints=[1]))
    found = op.TopK(x, wanted, axis=dim, largest=0, sorted=1)
    kept = [op.Gather(each, _below(last, wanted), axis=dim) for each in found]
    return tuple(kept) if keepdim else tuple(op.Squeeze(each, op.Constant(value_ints=[dim])) for each in kept)


_aten = torch.ops.aten
TABLE: dict[Any, Any] = {
    _aten.embedding.default: embedding,
    _aten.gather.default: gather,
    _aten.index_select.default: index_select,
    _aten.scatter.src: scatter_src,
    _aten.scatter.value: scatter_value,
    _aten.scatter_add.default: scatter_add,
    _aten.scatter_reduce.two: scatter_reduce,
    _aten.index_add.default: index_add,
    _aten.index_copy.default: index_copy,
    _aten.index_fill.int_Scalar: index_fill,
    _aten.index_fill.int_Tensor: index_fill,
    _aten.one_hot.default: one_hot,
    _aten.nll_loss.default: nll_loss,
    _aten.nll_loss_forward.default: nll_loss_forward,
    _aten.cross_entropy_loss.default: cross_entropy_loss,
    _aten.narrow.default: narrow,
    _aten.arange.default: arange,
    _aten.arange.start: arange_start,
    _aten.eye.default: eye,
    _aten.roll.default: roll,
    _aten.kthvalue.default: kthvalue,
}
