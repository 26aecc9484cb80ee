"""Operations that fail for some values of what they take, and how they are kept from it."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from stillgraph.passes.numbers.indexing import GET, PUT
from stillgraph.passes.regions.purity import is_local
from stillgraph.passes.regions.regions import COND, Branch, all_nodes, call, control_of
from stillgraph.passes.regions.values import Fakes, value_of
from stillgraph.program.facts.schemas import draws
from stillgraph.program.facts.writes import name_of
from stillgraph.program.graphs import arguments

_WHOLE = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})
_INDICES = (torch.int64, torch.int32)

_DIVISIONS = frozenset({"floordiv", "mod", "floor_divide", "remainder", "fmod", "div", "divide"})
"""They fail where both operands are whole numbers and the second is zero."""

ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "shape", "ndim", "real", "imag"})
"""Those of tensors that depend on no value."""

_BY_INDEX = {
    "index_select": (0, 1, 2),
    "gather": (0, 1, 2),
    "scatter": (0, 1, 2),
    "scatter_add": (0, 1, 2),
    "scatter_": (0, 1, 2),
    "scatter_add_": (0, 1, 2),
    "index_add": (0, 1, 2),
    "index_add_": (0, 1, 2),
    "index_copy": (0, 1, 2),
    "index_copy_": (0, 1, 2),
    "index_fill": (0, 1, 2),
    "index_fill_": (0, 1, 2),
}
"""Positions of the tensor, the dimension and the index."""

_NAMES = """
    truediv and_ or_ xor invert not_ lshift rshift iadd isub imul itruediv matmul
    mm bmm mv dot addmm baddbmm linear einsum outer conv1d conv2d conv3d layer_norm rms_norm group_norm
    scaled_dot_product_attention sum mean prod amax amin argmax argmin any all std var norm vector_norm cumsum cumprod
    cummax cummin softmax log_softmax logsumexp count_nonzero sort argsort topk
    to type float double half bfloat16 long bool contiguous detach copy_ fill_ zero_ type_as
    reshape view flatten ravel unflatten unsqueeze squeeze expand expand_as broadcast_to permute transpose t movedim
    swapaxes cat concat stack chunk split unbind tile repeat roll flip tril triu diagonal
    full zeros ones empty eye arange scalar_tensor tensor full_like zeros_like ones_like empty_like new_zeros new_ones
    new_full new_empty new_tensor size dim numel narrow select masked_fill_ dropout
    gru_cell lstm_cell rnn_tanh_cell rnn_relu_cell cdist mse_loss l1_loss smooth_l1_loss huber_loss
    binary_cross_entropy_with_logits kl_div cosine_similarity normalize cross meshgrid
"""
_NEVER = frozenset(_NAMES.split())
"""What torch does not tag as pointwise and depends on no value but by the numbers it gives."""


def may_fail(node: fx.Node) -> str | None:
    """The name of an operation that may raise for some values of its operands, if this is one.

    Shapes and dtypes are taken to be right: they are the same whatever the values. An operation that is not known here
    is taken to fail.
    """
    if node.op not in ("call_function", "call_method") or node.target is COND:
        return None
    name = name_of(node)
    if node.target is getattr:
        return None if arguments(node)[1] in ATTRIBUTES else "getattr"
    if node.target in (operator.getitem, operator.setitem, GET, PUT) or name in _BY_INDEX or name == "embedding":
        return None if _indexes_safely(node) or _indices(node) is not None else name
    if name in _DIVISIONS:
        return None if _divides_safely(node) or _divisor(node) is not None else name
    return None if name in _NEVER or is_pointwise(name) else name


def is_total(node: fx.Node) -> bool:
    """Whether an operation raises for no values of its operands, as it stands."""
    return may_fail(node) is None and not _needs_guard(node)


def has_effect(node: fx.Node) -> bool:
    """Whether running an operation once more leaves a trace: it draws, or does what only its author knows."""
    return node.op in ("call_function", "call_method") and node.target is not COND and not (
        is_local(node) and not draws(node)
    )


def guard_operands(module: fx.GraphModule, flag: fx.Node, fakes: Fakes) -> None:
    """Let no operation of a region fail while a flag is false, whatever the values are.

    An index becomes 0, a divisor 1. While the flag is true nothing changes.

    Args:
        module: the region, of operations for which `may_fail` gives None.
        flag: a truth value of the region's.
        fakes: makes stand-ins.
    """
    for node in list(module.graph.nodes):
        control = control_of(module, node)
        if isinstance(control, Branch):
            if any(_needs_guard(inner) for arm in control.arms for inner in all_nodes(arm)):
                for arm, inside in zip(control.arms, control.add_operand(flag)):
                    guard_operands(arm, inside, fakes)
        elif _needs_guard(node):
            _guard(node, flag, fakes)


def needs_guard(module: fx.GraphModule) -> bool:
    """Whether `guard_operands` would change anything."""
    return any(_needs_guard(node) for node in all_nodes(module))


def _needs_guard(node: fx.Node) -> bool:
    if node.op not in ("call_function", "call_method"):
        return False
    if name_of(node) in _DIVISIONS:
        return not _divides_safely(node)
    indexing = node.target in (operator.getitem, operator.setitem, GET, PUT)
    return (indexing or name_of(node) in _BY_INDEX or name_of(node) == "embedding") and not _indexes_safely(node)


def _guard(node: fx.Node, flag: fx.Node, fakes: Fakes) -> None:
    divides = name_of(node) in _DIVISIONS
    divisor = _divisor(node) if divides else None
    changed = _indices(node) or [] if divisor is None else [divisor]
    made: dict[fx.Node, fx.Node] = {}
    with node.graph.inserting_before(node):
        for each in changed:
            value = each.meta["val"]
            made[each] = call(node, torch.mul, (each, flag), fakes.like(value))
            if divides:
                wrong = call(node, torch.logical_not, (flag,), fakes.scalar(bool))
                made[each] = call(node, torch.add, (made[each], wrong), fakes.like(value))
    args, place = list(node.args), 1 if divides else _place(node)
    args[place] = fx.map_arg(args[place], lambda n: made.get(n, n))
    node.args = tuple(args)


# ---- division
def divides_safely(node: fx.Node, name: str) -> bool:
    """Whether an operation of a name does not divide whole numbers by what may be zero."""
    return name not in _DIVISIONS or _divides_safely(node)


def _divides_safely(node: fx.Node) -> bool:
    if name_of(node) in ("div", "divide") and node.kwargs.get("rounding_mode") is None and len(node.args) < 3:
        return True
    if len(node.args) < 2:
        return False
    left, right = (value_of(operand) for operand in arguments(node)[:2])
    whole = all(v.dtype in _WHOLE if isinstance(v, torch.Tensor) else isinstance(v, int) for v in (left, right))
    return not whole or (isinstance(right, int) and right != 0)


def _divisor(node: fx.Node) -> fx.Node | None:
    """The divisor, where it is a tensor."""
    right = arguments(node)[1] if len(node.args) > 1 else None
    return right if isinstance(right, fx.Node) and isinstance(value_of(right), torch.Tensor) else None


# ---- indexing
def _place(node: fx.Node) -> int:
    """Where the index stands among the arguments."""
    if name_of(node) == "embedding":
        return 0 if node.target is torch.nn.functional.embedding else 1
    return _BY_INDEX[name_of(node)][2] if name_of(node) in _BY_INDEX else 1


def _parts(node: fx.Node) -> list[Any]:
    index = arguments(node)[_place(node)]
    return list(index) if isinstance(index, (tuple, list)) else [index]


def _indexes_safely(node: fx.Node) -> bool:
    """Whether an index is made of constants, slices and masks alone, or takes a result out of several."""
    if not isinstance(value_of(arguments(node)[0]), torch.Tensor):
        return True
    return len(node.args) > _place(node) and not any(_selects(part) for part in _parts(node))


def _selects(part: Any) -> bool:
    """Whether a part of an index is a node that chooses elements by number."""
    value = value_of(part) if isinstance(part, fx.Node) else None
    return isinstance(part, fx.Node) and not (isinstance(value, torch.Tensor) and value.dtype == torch.bool)


def _indices(node: fx.Node) -> list[fx.Node] | None:
    """The tensors of indices of a node, where 0 is an index that there is in each of the dimensions."""
    if len(node.args) <= _place(node):
        return None
    found = [part for part in _parts(node) if _selects(part)]
    if not all(isinstance(value_of(part), torch.Tensor) and value_of(part).dtype in _INDICES for part in found):
        return None
    name = name_of(node)
    if name == "embedding":
        table = value_of(arguments(node)[1 - _place(node)])
        sizes: tuple[Any, ...] = table.shape[:1]
    elif name in _BY_INDEX:
        value, dim = value_of(arguments(node)[0]), arguments(node)[1]
        if not isinstance(dim, int):
            return None
        sizes = (value.shape[dim],) if value.dim() else ()
    else:
        sizes = value_of(arguments(node)[0]).shape
    return found if all(isinstance(size, int) and size > 0 for size in sizes) else None


def is_pointwise(name: str) -> bool:
    """Whether an operation computes each element from those in the same place."""
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and any(torch.Tag.pointwise in getattr(packet, o).tags for o in packet.overloads())
