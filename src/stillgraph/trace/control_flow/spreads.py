"""From lists of unknown length to their columns in the program, and from a column to tensors."""

from __future__ import annotations

import collections
import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.types import JoinFailure, ListType, NumberType, TensorType, Type
from stillgraph.trace.code.frames import called, here, name_of
from stillgraph.trace.control_flow.joined.elements import freeze_elements, structure_of
from stillgraph.trace.control_flow.region_interface import leaf_node
from stillgraph.trace.control_flow.unknown import refuse_unknown
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.typed_values import define
from stillgraph.trace.values import list_columns, lists
from stillgraph.trace.values.list_columns import Items
from stillgraph.trace.values.list_contents import inner_spreads, mutable_parts
from stillgraph.trace.values.lists import StagedList, StagedSpread


def is_spread(value: Any) -> bool:
    """Whether a value is a list, tuple or deque whose length only the run knows."""
    return (type(value) is tuple or isinstance(value, (list, collections.deque))) and lists.has_spread(value)


# ---- making and reading columns
def as_spread(
    recorder: Recorder,
    value: Sequence[Any],
    more: Sequence[Any] = (),
    is_older: Callable[[Any], bool] = lambda each: True,
) -> StagedSpread:
    """All elements of a list as one spread, of a structure that covers the values ``more`` too.

    Args:
        recorder: the capture.
        value: the list.
        more: the other values.
        is_older: whether one of their objects stays the object that it is.

    Raises:
        CaptureError: the elements have no common structure.
    """
    if len(value) == 1 and type(value[0]) is StagedSpread and not more:
        return value[0]
    try:
        element = structure_of(recorder, [*value, *more], is_older)
        parts = list_columns.columns(element, value)
    except JoinFailure as failure:
        raise refuse(failure.code, failure.message, location=here(), hint=failure.hint) from failure
    types = lists.types(element)
    spread = StagedSpread(element, tuple(_column(recorder, part, type_) for part, type_ in zip(parts, types)))
    freeze_elements(recorder, spread, (value,), is_older=lambda kept: True)  # there is no path
    return spread


def have_structure(recorder: Recorder, values: Sequence[Any]) -> bool:
    """Whether values can be the elements of one list of unknown length."""
    try:
        structure_of(recorder, values, lambda each: True)
    except JoinFailure:
        return False
    return True


def _column(recorder: Recorder, items: Items, element: Type) -> StagedList:
    column: StagedList = define(recorder, ListType(element), leaf_node(recorder, items, ListType(element), "a list"))
    return column


def each(
    recorder: Recorder, spread: StagedSpread, function: Callable[..., Any], *args: Any, cells: Sequence[Any] = ()
) -> StagedSpread:
    """A spread whose columns are ``function(column, *args, cell)``."""
    made = []
    for index, column in enumerate(spread.columns):
        given = (*args, leaf_node(recorder, cells[index], column.type.element, "a list")) if cells else args
        kind = ListType(column.type.element)
        made.append(define(recorder, kind, recorder.emit("call_function", function, (column, *given), {})))
    result = StagedSpread(spread.element, tuple(made))
    recorder.identities.take_over(result, spread)
    return result


def only_if(recorder: Recorder, value: Any, flag: Any, path: Path = contextlib.nullcontext) -> StagedSpread:
    """What a list holds that has a value where a flag is true, and is empty elsewhere; ``path`` is where it is made."""
    with path():
        return each(recorder, as_spread(recorder, [value]), operator.getitem, slice(None, flag))


Path = Callable[[], contextlib.AbstractContextManager[None]]


def copied_into(recorder: Recorder, spread: StagedSpread) -> tuple[Any, ...]:
    """The containers of which a spread holds copies."""
    return tuple(recorder.identities.copies.get(id(spread), (None, {}))[1].values())


def element_at(recorder: Recorder, spread: StagedSpread, index: Any, originals: Sequence[Any] | None = None) -> Any:
    """The element at a position: the containers in it are made anew.

    Args:
        recorder: the capture.
        spread: the elements.
        index: which one.
        originals: what the containers in it may be; by default those that the spread goes on to hold.
    """
    row = []
    for column in spread.columns:
        node = recorder.emit("call_function", operator.getitem, (column, index), {})
        row.append(define(recorder, column.type.element, node))
    element = list_columns.rebuild(spread.element, row)
    identities = recorder.identities
    for inner in inner_spreads(spread.element, element):
        identities.families.relate_to_elements(inner, spread)
        identities.copied_into(inner, [spread])
    for part in mutable_parts(spread.element, element):
        identities.families.relate_to_elements(part, spread)
        identities.copy_of(part, [spread] if originals is None else originals)
        if type(index) is int:
            identities.read_at(part, spread, index)
    return element


# ---- tensors out of lists
def torch_call(recorder: Recorder, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A torch function whose first argument is a list of unknown length.

    Raises:
        CaptureError: the function has no meaning for one, or the elements do not fit.
    """
    if function in _JOINING and len(args) <= 2 and kwargs.keys() <= {"dim"}:
        dim = args[1] if len(args) == 2 else kwargs.get("dim", 0)
        if isinstance(dim, int):
            return _joined(recorder, function, args[0], dim, is_new=function is torch.stack)
    if function in (torch.tensor, torch.as_tensor) and len(args) == 1:
        return _tensor(recorder, function, args[0], kwargs)
    name = function.__name__
    message = f"torch.{name} is given {called(args[0])}, a list of unknown length, for which it has no meaning"
    variable = (name_of(args[0]) if args else None) or "values"
    hint = _EQUIVALENTS.get(name, _TENSOR_FIRST).format(variable)
    raise refuse_unknown("SG210", message, args[0], hint=hint)


_TENSOR_FIRST = (
    "Make a tensor of the list first, with torch.stack or torch.cat, and give it that; or loop over the list."
)
_OTHERS = "Of 1-d tensors, torch.{} gives the same, of those with more dimensions torch.{}."
_EQUIVALENTS = {
    "vstack": _OTHERS.format("stack({0})", "cat({0})"),
    "row_stack": _OTHERS.format("stack({0})", "cat({0})"),
    "hstack": _OTHERS.format("cat({0})", "cat({0}, dim=1)"),
    "column_stack": _OTHERS.format("stack({0}, dim=1)", "cat({0}, dim=1)"),
}
_JOINING = (torch.stack, torch.cat, torch.concat, torch.concatenate)


def _joined(recorder: Recorder, function: Any, tensors: Any, dim: int, is_new: bool) -> Any:
    recorder.before_risk()
    spread = as_spread(recorder, tensors)
    type_ = _joined_type(spread, dim, is_new)
    return define(recorder, type_, recorder.emit("call_function", function, (spread.columns[0], dim), {}))


def _joined_type(spread: StagedSpread, dim: int, is_new: bool) -> TensorType:
    element = spread.element
    if not isinstance(element, lists.Leaf) or not isinstance(element.type, TensorType):
        raise refuse("SG210", "a list that holds other things than tensors becomes a tensor", location=here())
    type_ = element.type
    if type_.may_be_none or type_.may_be_number or type_.may_be_unbound:
        raise refuse("SG210", "a list in which not all need be tensors becomes a tensor", location=here())
    shape = list(type_.shape)
    rank = len(shape) + is_new
    if rank == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    dim %= rank
    if is_new:
        shape.insert(dim, None)
    else:
        shape[dim] = None
    grad = type_.requires_grad and torch.is_grad_enabled()
    return TensorType(type_.dtype, type_.device, tuple(shape), grad, type_.grad_differs)


_DTYPES = {bool: torch.bool, int: torch.int64}


def _tensor(recorder: Recorder, function: Any, data: Any, options: dict[str, Any]) -> Any:
    """``torch.tensor`` of a list of numbers."""
    spread = as_spread(recorder, data)
    type_ = spread.element.type if isinstance(spread.element, lists.Leaf) else None
    if type(type_) is not NumberType or type_.mixed or type_.may_be_none:
        raise refuse("SG210", "a tensor is made of a list whose elements are not numbers of one kind", location=here())
    dtype = options.get("dtype") or _DTYPES.get(type_.kind) or torch.get_default_dtype()
    device = torch.device(options.get("device") or "cpu")
    node = recorder.emit("call_function", function, (spread.columns[0],), options)
    return define(recorder, TensorType(dtype, device, (None,), bool(options.get("requires_grad"))), node)
