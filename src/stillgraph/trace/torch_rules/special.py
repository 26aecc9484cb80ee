"""Torch calls that need more than to be run on fake tensors and written down.

`HANDLERS` maps a torch function to its handler ``(recorder, func, args, kwargs) -> result``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.lookup import is_exactly
from stillgraph.program.facts.info import info
from stillgraph.program.types import ListType, NumberType
from stillgraph.trace.code.frames import here, is_asked_by
from stillgraph.trace.fakes.node_naming import as_node
from stillgraph.trace.fakes.symbolic import computed, is_unknown
from stillgraph.trace.torch_rules import composed, gradients, hooks, in_parts, packed, recurrent, sparse, tensor_queries
from stillgraph.trace.torch_rules.autograd_graph import requirement_differs
from stillgraph.trace.torch_rules.collectives import COLLECTIVES
from stillgraph.trace.torch_rules.deep_copies import deep_copied
from stillgraph.trace.torch_rules.fake_execution import require_fit
from stillgraph.trace.torch_rules.tensor_attributes import read_shape, size_of
from stillgraph.trace.torch_rules.tensor_classes import HANDLERS as CLASSES
from stillgraph.trace.torch_rules.tensor_construction import from_data
from stillgraph.trace.values import complexes
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.lists import Leaf, StagedSpread
from stillgraph.trace.values.numbers import StagedNumber

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_T = torch.Tensor

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


def number_of_symbol(recorder: Recorder, symbol: Any) -> Any:
    """The staged number for one of torch's symbols, or what is computed of these.

    It is one that the open region knows, a size of a tensor there, or computed of such.
    """
    wanted = symbol.node.expr
    found = _known_number(recorder, wanted)
    if found is None and not wanted.is_Symbol:
        parts = {part: _known_number(recorder, part) for part in wanted.free_symbols}
        if None not in parts.values():
            return computed(wanted, parts)
    if found is None:
        raise refuse("SG301", "a symbolic size of unknown origin is used", location=here())
    return found


def _known_number(recorder: Recorder, expression: Any) -> Any:
    """The number of the run that has a value in torch's terms; None where nothing has it.

    Where only a tensor has such a size, reading it is recorded.
    """
    region: Any = recorder.region
    while region is not None:
        known = [value for value, _ in region.known.values()]
        for value in known:
            if isinstance(value, StagedNumber) and value.node.expr == expression:
                return value
        for value in known:
            if not isinstance(value, torch.Tensor):
                continue
            fake = recorder.to_fake(value)
            for dim, size in enumerate(fake.shape):
                if isinstance(size, torch.SymInt) and size.node.expr == expression:
                    return size_of(recorder, value, size, dim)
        region = region.parent
    return None


def by_handler(recorder: Recorder, handler: Callable[..., Any], func: Any, args: Any, kwargs: Any) -> Any:
    """Do a call by its handler.

    Raises:
        CaptureError: what the handler runs takes no symbols for sizes.
    """
    try:
        with recorder.symbolic.of_any_size():
            return handler(recorder, func, args, kwargs)
    except RuntimeError as error:
        require_fit(recorder, error, func, args, kwargs)
        raise


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


def _resize(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """``resize_`` and ``resize_as_``: a tensor that has the size already stays what it is."""
    fake, wanted = recorder.to_fake(args[0]), recorder.to_fake(args[1:])
    size = wanted[0].shape if func is _T.resize_as_ and wanted else wanted[0] if _is_sequence(wanted[:1]) else wanted
    is_known = not kwargs and all(type(each) is int for each in (*fake.shape, *size))
    if is_known and not fake.requires_grad and tuple(fake.shape) == tuple(size):
        return args[0]
    return recorder.record(func, args, kwargs)


def _is_sequence(given: tuple[Any, ...]) -> bool:
    return bool(given) and isinstance(given[0], (tuple, list))


def _item(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    fake = recorder.to_fake(tensor)
    if isinstance(fake.numel(), int) and fake.numel() != 1:
        raise RuntimeError(f"a Tensor with {fake.numel()} elements cannot be converted to Scalar")
    if not isinstance(fake.numel(), int):
        recorder.before_raise(RuntimeError)
    if fake.dtype.is_complex:
        return complexes.item(recorder, tensor)
    kind = number_kind(fake.dtype)
    if info(tensor).may_be_number and kind is not float:  # where it is a size, say
        return recorder.fresh_result(kind, recorder.emit("call_function", kind, (tensor,), {}))
    return recorder.fresh_result(kind, recorder.emit("call_method", "item", (tensor,), {}))


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
    if requirement_differs(fake):
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
    **dict.fromkeys((_T.resize_, _T.resize_as_), _resize),
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
    torch.tensor: from_data,
    torch.as_tensor: from_data,
    torch.from_numpy: from_data,
    torch.asarray: from_data,
    torch._C._set_grad_enabled: _run_only,
    **packed.HANDLERS,
    **recurrent.HANDLERS,
    **sparse.HANDLERS,
    **CLASSES,
    **dict.fromkeys((torch.zeros, torch.ones, torch.empty, torch.full, torch.rand, torch.randn), _sized),
    **COLLECTIVES,
}
