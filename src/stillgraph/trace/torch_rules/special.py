"""Torch calls that need more than to be run on fake tensors and written down.

`HANDLERS` maps a torch function to its handler ``(recorder, func, args, kwargs) -> result``. The rest are pieces the
recorder is made of: how sequences of results are taken apart, what is asked of tensors.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.program.facts.info import info
from stillgraph.program.types import ListType, NumberType
from stillgraph.trace.code.frames import here, is_asked_by
from stillgraph.trace.fakes.node_naming import as_node
from stillgraph.trace.fakes.symbolic import is_fake, is_unknown
from stillgraph.trace.torch_rules import (
    composed,
    gradients,
    hooks,
    in_parts,
    layouts,
    packed,
    recurrent,
    sparse,
    tensor_queries,
)
from stillgraph.trace.torch_rules.collectives import COLLECTIVES
from stillgraph.trace.torch_rules.deep_copies import deep_copied
from stillgraph.trace.torch_rules.fake_execution import takes_no_such_size, wants_plain_sizes
from stillgraph.trace.torch_rules.gradients import read_gradient, write_gradient, write_require
from stillgraph.trace.torch_rules.number_results import refuse_mixed
from stillgraph.trace.torch_rules.tensor_classes import HANDLERS as CLASSES
from stillgraph.trace.values import complexes
from stillgraph.trace.values.arrays import StagedArray, is_array
from stillgraph.trace.values.lists import Leaf, StagedSpread
from stillgraph.trace.values.numbers import StagedNumber, is_mixed, is_number, kind_of

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T = torch.Tensor
_F = torch.nn.functional

_RELAYOUT = frozenset(
    {
        "resize_",
        "resize_as_",
        "unsqueeze_",
        "squeeze_",
        "t_",
        "transpose_",
        "swapaxes_",
        "swapdims_",
        "set_",
        "detach_",
        "as_strided_",
        "rename_",
    }
)


def refuse_relayout(recorder: Recorder, func: Any, args: tuple[Any, ...]) -> None:
    """Refuse an operation in an arm that changes the metadata of a tensor from outside: it could not be undone."""
    if recorder.region.parent is None or getattr(func, "__name__", "") not in _RELAYOUT or not args:
        return
    node = recorder.region.find(args[0])
    if node is None or node.op == "placeholder":
        raise refuse(
            "SG305", f"{func.__name__} in a staged branch or loop changes a tensor from outside it", location=here()
        )


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


def number_of_symbol(recorder: Recorder, symbol: Any) -> Any:
    """The staged number that the open region knows for one of torch's symbols."""
    region = recorder.region
    while region is not None:
        for value, _ in list(region.known.values()):
            if isinstance(value, StagedNumber) and value.node.expr == symbol.node.expr:
                return value
        region = region.parent  # type: ignore[assignment]  # one of them holds it
    raise refuse("SG301", "a symbolic size of unknown origin is used", location=here())


# ---- attributes of tensors
PLAIN_ATTRIBUTES = frozenset(
    {
        "dtype",
        "device",
        "layout",
        "ndim",
        "requires_grad",
        "is_leaf",
        "grad_fn",
        "names",
        "is_cuda",
        "is_cpu",
        "is_meta",
        "is_sparse",
        "is_quantized",
        "is_mkldnn",
        "is_nested",
        "is_xpu",
        "is_mps",
        "is_sparse_csr",
        "is_vulkan",
        "is_ipu",
        "is_xla",
        "is_hpu",
        "is_mtia",
        "is_maia",
        "itemsize",
        "output_nr",
        "_version",
        "_backward_hooks",
        "name",
        "_cdata",
        "is_inference",
        "retains_grad",
        "volatile",
        "_post_accumulate_grad_hooks",
        "grad_dtype",
    }
)


def read_attribute(recorder: Recorder, func: Any, tensor: Any) -> Any:
    """``tensor.name``: metadata as it is, sizes as staged numbers, views (``T``, ``mT``, ``data``, …) recorded."""
    name = func.__self__.__name__
    fake = recorder.to_fake(tensor)
    if name in ("requires_grad", "is_leaf", "grad_fn") and gradients.requirement_differs(fake):
        raise refuse("SG301", f"{name} differs from path to path here", location=here())
    if name in ("is_leaf", "grad_fn") and info(fake).is_joined and fake.requires_grad:
        raise refuse("SG301", f"{name} is asked of what a branch or loop leaves", location=here())  # it may be a leaf
    if name == "shape":
        return read_shape(recorder, tensor, fake)
    if name == "nbytes" and sparse.is_dense(fake):
        return functools.reduce(operator.mul, read_shape(recorder, tensor, fake), fake.element_size())
    if name in ("grad", "_grad"):
        gradient = read_gradient(recorder, tensor)
        if is_fake(gradient) and recorder.from_before(gradient) is None:
            sparse.require_dense_gradient(recorder, fake)
        return gradient
    if name in tensor_queries.ATTRIBUTES:
        result = tensor_queries.ask(recorder, name, tensor, func)
    else:
        result = _read_of_fake(recorder, func, fake)
    if name in PLAIN_ATTRIBUTES or not has_staged(result):
        return result
    if name == "_base":
        raise refuse("SG301", f"{name} of a tensor is read during capture", location=here())
    return recorder.bind(result, recorder.emit("call_function", getattr, (tensor, name), {}))


def _read_of_fake(recorder: Recorder, func: Any, fake: Any) -> Any:
    try:
        with recorder.symbolic.fake_mode:
            return func(fake)
    except RuntimeError as error:
        if wants_plain_sizes(error):
            raise takes_no_such_size(func) from error
        raise


def read_shape(recorder: Recorder, tensor: Any, fake: Any) -> torch.Size:
    """``tensor.shape``; each dimension that is not known becomes a staged number."""
    with torch._C.DisableTorchFunction():
        shape = fake.shape
    recorder.watch.size_read(recorder.locator.here(), shape)
    if all(type(d) is int for d in shape):
        return shape  # type: ignore[no-any-return]  # of Any
    return torch.Size([d if type(d) is int else size_of(recorder, tensor, d, i) for i, d in enumerate(shape)])


def size_of(recorder: Recorder, tensor: Any, size: torch.SymInt, dim: int) -> Any:
    """``tensor.size(dim)`` where that is a symbol."""
    if size.node.is_constant():
        return size.node.maybe_as_int()
    node = recorder.emit("call_method", "size", (tensor, dim), {})
    node.meta["bookkeeping"] = True
    return recorder.number(size, node)


# ---- handlers
def _size(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    shape = read_shape(recorder, args[0], recorder.to_fake(args[0]))
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if isinstance(dim, int) and not -max(len(shape), 1) <= dim < max(len(shape), 1):
        return recorder.run(func, args, kwargs)  # to raise what it raises
    return shape if dim is None else shape[dim]


def _squeeze(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``squeeze``: a size that only the run knows may be 1, and then the result has a dimension less."""
    tensor = args[0] if args else kwargs["input"]
    fake = recorder.to_fake(tensor)
    given = args[1] if len(args) > 1 else kwargs.get("dim")
    dims = range(fake.dim()) if given is None else [given] if isinstance(given, int) else []
    unsure = [dim for dim in dims if -fake.dim() <= dim < fake.dim() and is_unknown(fake.shape[dim])]
    if len(unsure) != 1:
        return recorder.record(func, args, kwargs)
    is_one = recorder.number_operation(operator.eq, (read_shape(recorder, tensor, fake)[unsure[0]], 1))

    def without() -> Any:
        rest = recorder.record(_T.select, (tensor, unsure[0], 0), {})
        return recorder.record(_T.squeeze, (rest,), {}) if given is None else rest

    return recorder.on_each_path(is_one, without, lambda: recorder.record(func, args, kwargs))


def _item(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    fake = recorder.to_fake(tensor)
    if isinstance(fake.numel(), int) and fake.numel() != 1:
        raise RuntimeError(f"a Tensor with {fake.numel()} elements cannot be converted to Scalar")
    if not isinstance(fake.numel(), int):
        recorder.before_raise(RuntimeError)
    if fake.dtype.is_complex:
        return complexes.item(recorder, tensor)
    return recorder.fresh_result(number_kind(fake.dtype), recorder.emit("call_method", "item", (tensor,), {}))


def number_kind(dtype: torch.dtype) -> type:
    """The Python type of the elements of a tensor."""
    if dtype.is_complex:
        hint = "Keep it a tensor: torch.view_as_real, .real and .imag are recorded."
        message = "a complex tensor is taken for a real number, or for a list as long as only the run knows"
        raise refuse("SG301", message, location=here(), hint=hint)
    return bool if dtype == torch.bool else float if dtype.is_floating_point else int


def _tolist(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    if args[1:] or kwargs:
        what = "keyword arguments" if kwargs else f"arguments ({len(args) - 1} given)"
        raise TypeError(f"TensorBase.tolist() takes no {what}")
    fake = recorder.to_fake(tensor)
    if fake.dim() == 0:
        return _item(recorder, func, args, kwargs)
    with torch._C.DisableTorchFunction():
        known = all(type(d) is int for d in fake.shape)
    if not known and fake.dim() == 1:
        column = recorder.instantiate(ListType(NumberType(number_kind(fake.dtype))))
        node = recorder.emit("call_method", "tolist", (tensor,), {})
        node.meta["val"] = column.type
        recorder.region.define(column, node)
        return [StagedSpread(Leaf(column.type.element), (column,))]
    if not known:
        raise refuse("SG301", "tolist() of a tensor whose size only the run knows", location=here())
    rows = recorder.record(_T.unbind, (tensor, 0), {}) if fake.shape[0] else ()
    return [_tolist(recorder, func, (row,), {}) for row in rows]


def _numpy(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``tensor.numpy()``; what eager refuses is refused with its words."""
    fake = recorder.to_fake(args[0])
    if gradients.requirement_differs(fake):
        raise refuse("SG301", "requires_grad differs from path to path here", location=here())
    if fake.requires_grad and not kwargs.get("force"):
        message = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        raise RuntimeError(message)
    return StagedArray(recorder.record(_T.detach, (args[0],), {}) if fake.requires_grad else args[0])


def _demand(what: str) -> Callable[..., Any]:
    def handler(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
        return recorder.tensor_demanded(args[0], what)

    return handler


def _truth(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """A torch function that gives a Python bool."""
    recorder.to_fake(args)
    return recorder.fresh_result(bool, recorder.emit(*as_node(func, args, kwargs), kwargs))


def _is_nonzero(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    fake = recorder.to_fake(args[0] if args else kwargs["input"])
    if isinstance(fake.numel(), int) and fake.numel() != 1:
        return recorder.run(func, args, kwargs)  # which says what is wrong
    if not isinstance(fake.numel(), int):
        recorder.before_raise(RuntimeError)
    return _truth(recorder, func, args, kwargs)


def _all_true(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``torch._is_all_true``, which does not run on fake tensors of unknown size."""
    result = recorder.run(_T.all, args, kwargs)
    return recorder.bind(result, recorder.emit(*as_node(func, args, kwargs), kwargs))


def _length(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    fake = recorder.to_fake(args[0])
    if fake.dim() == 0:
        raise TypeError("len() of a 0-d tensor")
    length = read_shape(recorder, args[0], fake)[0]
    return length if type(length) is int else recorder.number_demanded(length, "index")


def _unbind(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``tensor.unbind(dim)``; Python's own loop over a tensor is this too, and has to be a loop of the program."""
    fake = recorder.to_fake(args[0])
    if is_asked_by(_T.__iter__.__code__) and fake.dim() and recorder.symbolic.is_newer(fake.shape[0], -1):
        recorder.tensor_demanded(args[0], "rows")
    return in_parts.HANDLERS[func](recorder, func, args, kwargs)


def _run_only(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)


def _tensor(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``torch.tensor(data)`` and ``as_tensor``: staged elements are stacked, arrays become constants."""
    data = args[0] if args else kwargs.get("data")
    if isinstance(data, StagedArray):
        shares = func in (torch.from_numpy, torch.as_tensor, torch.asarray) and not kwargs
        return data.tensor if shares else recorder.record(torch.tensor, (data.tensor,), kwargs)
    if isinstance(data, torch.Tensor):
        return recorder.record(func, args, kwargs)
    if isinstance(data, (tuple, list)) and _holds_staged(data):
        return _stack(recorder, data, kwargs)
    if is_number(data) and isinstance(data, StagedNumber):
        return _scalar(recorder, data, kwargs)
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
        return of_array(recorder, func, data, args[1:], kwargs)
    return recorder.record(func, args, kwargs)


def of_array(recorder: Recorder, func: Any, array: Any, args: Any = (), kwargs: Any = None) -> Any:
    """A tensor made of a numpy array that is known: each run makes it, unless it is the memory of one from outside."""
    with torch._C.DisableTorchFunction():
        made = func(array, *args, **(kwargs or {}))
        needs_gradient, made = made.requires_grad, made.detach()
        shared = is_array(array) and made.numel() > 0 and made.data_ptr() == array.ctypes.data
        outside = shared and (recorder.is_outer(array) or recorder.memory.holds(array))
        constant = made if outside else made.clone()
    result = constant if outside else recorder.record(torch.clone, (constant,), {})
    if shared:
        recorder.memory.share(array, recorder.to_fake(result))
    return recorder.__torch_function__(_T.requires_grad_, (), (result,)) if needs_gradient else result


def _holds_staged(data: Any) -> bool:
    if isinstance(data, (tuple, list)):
        return any(_holds_staged(item) for item in data)
    return isinstance(data, (torch.Tensor, StagedNumber))


def _scalar(recorder: Recorder, number: Any, kwargs: dict[str, Any]) -> Any:
    defaults = {bool: torch.bool, int: torch.int64, float: torch.get_default_dtype()}
    dtype = kwargs.get("dtype")
    if dtype is None and is_mixed(number):
        raise refuse_mixed("decides the dtype of a tensor")
    dtype = dtype or defaults[kind_of(number)]
    device = kwargs.get("device")
    fake = recorder.symbolic.empty((), dtype, torch.device(device or "cpu"), bool(kwargs.get("requires_grad")))
    return recorder.bind(fake, recorder.emit("call_function", torch.tensor, (number,), kwargs))


def _stack(recorder: Recorder, data: Any, kwargs: dict[str, Any]) -> Any:
    """Nested lists with staged elements, as ``torch.tensor`` would read them: values only, no gradient."""

    def do(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return recorder.record(function, args, options)

    dtype = kwargs.get("dtype")
    rows = [_element(recorder, item, {} if dtype is None else {"dtype": dtype}) for item in data]
    if dtype is None:
        dtype = functools.reduce(torch.promote_types, (recorder.to_fake(row).dtype for row in rows))
    stacked = do(torch.stack, [do(_T.to, row, dtype) for row in rows])
    if kwargs.get("device") is not None:
        stacked = do(_T.to, stacked, kwargs["device"])
    return do(_T.requires_grad_, stacked) if kwargs.get("requires_grad") else stacked


def _element(recorder: Recorder, item: Any, wanted: dict[str, Any]) -> Any:
    """One element of a nested list as a tensor."""
    if isinstance(item, (tuple, list)):
        return _stack(recorder, item, wanted)
    if isinstance(item, torch.Tensor):
        return recorder.record(_T.reshape, (recorder.record(_T.detach, (item,), {}), ()), {})
    if isinstance(item, StagedNumber):
        return _scalar(recorder, item, wanted)
    return recorder.record(torch.tensor, (item,), {})


def set_attribute(recorder: Recorder, func: Any, args: Any) -> None:
    """``tensor.data = …``, ``tensor.requires_grad = …``: done to the fake, and recorded."""
    name = func.__self__.__name__
    if name in ("grad", "_grad"):
        write_gradient(recorder, args[0], args[1])
        return
    if name == "requires_grad":
        if not is_number(args[1]) or kind_of(args[1]) is not bool:
            raise RuntimeError("requires_grad must be a bool")
        write_require(recorder, args[0], args[1])
        recorder.emit("call_function", setattr, (args[0], name, args[1]), {})
        return
    if recorder.region.parent is not None:
        raise refuse("SG305", f"{name} of a tensor is set in a staged branch or loop", location=here())
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        func(*recorder.to_fake(args))
    node = recorder.emit("call_function", setattr, (args[0], name, args[1]), {})
    layouts.hand_on(node, recorder.to_fake(args[0]))


def _sized(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """A function that makes tensors of sizes, one of which may be a tensor: Python takes it for the number in it."""

    def size(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(size, value)) if is_exactly(value, (tuple, list)) else value
        return _item(recorder, _T.item, (value,), {}) if isinstance(value, torch.Tensor) else value

    if func is torch.full:
        return recorder.record(func, (size(args[0]), *args[1:]) if args else args, kwargs)
    return recorder.record(func, size(args), kwargs)


def _new(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``x.new(size)``: a `torch.Size` is a shape there, and any other sequence is data."""
    given = (*args[1:], *kwargs.values())
    if len(given) == 1 and isinstance(given[0], torch.Size) and kwargs.keys() <= {"size"}:
        return recorder.record(_T.new_empty, (args[0], tuple(given[0])), {})
    return recorder.record(func, args, kwargs)


def _cannot(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    raise refuse("SG304", f"{func.__name__} calls Python for each element of a tensor", location=here())


HANDLERS: dict[Any, Callable[..., Any]] = {
    **tensor_queries.HANDLERS,
    _T.__deepcopy__: deep_copied,
    **composed.HANDLERS,
    **gradients.HANDLERS,
    **hooks.HANDLERS,
    **in_parts.HANDLERS,
    _T.apply_: _cannot,
    _T.map_: _cannot,
    _T.map2_: _cannot,
    _T.new: _new,
    _T.size: _size,
    _T.squeeze: _squeeze,
    torch.squeeze: _squeeze,
    _T.item: _item,
    _T.tolist: _tolist,
    _T.__bool__: _demand("bool"),
    _T.__int__: _demand("int"),
    _T.__float__: _demand("float"),
    _T.__index__: _demand("index"),
    _T.__complex__: _demand("complex"),
    _T.__len__: _length,
    _T.unbind: _unbind,
    _T.__format__: _demand("text"),
    _T.__repr__: _demand("text"),
    _T.__contains__: lambda rec, func, args, kwargs: _truth(rec, func, args, kwargs),
    _T.numpy: _numpy,
    _T.__array__: _demand("numpy"),
    _T.equal: _truth,
    _T.allclose: _truth,
    torch.equal: _truth,
    torch.allclose: _truth,
    torch.is_nonzero: _is_nonzero,
    _T.is_nonzero: _is_nonzero,
    torch._is_all_true: _all_true,
    torch.tensor: _tensor,
    torch.as_tensor: _tensor,
    torch.from_numpy: _tensor,
    torch.asarray: _tensor,
    torch._C._set_grad_enabled: _run_only,
    **packed.HANDLERS,
    **recurrent.HANDLERS,
    **sparse.HANDLERS,
    **CLASSES,
    **dict.fromkeys((torch.zeros, torch.ones, torch.empty, torch.full, torch.rand, torch.randn), _sized),
    **COLLECTIVES,
}
