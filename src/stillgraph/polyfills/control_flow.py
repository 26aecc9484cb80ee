"""torch's operators of control flow: ``torch.cond``, ``while_loop``, ``map``, ``scan`` and ``associative_scan``.

What torch itself does with them when they are called in eager PyTorch, the tensors that they give included: new ones,
in one piece. What they refuse of their arguments is refused here in torch's words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.associative_scan import associative_scan as torch_associative_scan
from torch._higher_order_ops.associative_scan import associative_scan_op
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.map import map_impl
from torch._higher_order_ops.scan import scan as torch_scan
from torch._higher_order_ops.scan import scan_op
from torch._higher_order_ops.while_loop import while_loop as torch_while_loop
from torch._higher_order_ops.while_loop import while_loop_op
from torch.utils import _pytree as pytree

from stillgraph.polyfills.versions import COMBINES_ANYWHERE


# ---- cond
def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """``torch.cond``."""
    if isinstance(pred, torch.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not isinstance(pred, (bool, int, float, torch.Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    is_constant = isinstance(pred, (bool, int, float))
    if not is_constant and not (isinstance(operands, (tuple, list)) and _are_tensors(pytree.tree_leaves(operands))):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but "
            f"got {operands}."
        )
    if pred:
        return true_fn(*operands)
    return false_fn(*operands)


def _are_tensors(leaves: Any) -> bool:
    return all(isinstance(each, torch.Tensor) for each in leaves)


# ---- while_loop
def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    """``while_loop``."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    leaves, structure = pytree.tree_flatten(carried_inputs)
    if not all(isinstance(each, (torch.Tensor, int)) for each in leaves):
        raise RuntimeError(
            "Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that onlyconsists of tensor or int "
            f"leaves, but got {carried_inputs}."
        )
    carried = tuple(leaves)
    going = _is_going(cond_fn(*pytree.tree_unflatten(carried, structure)))
    if not going:
        carried = tuple([each.clone() if isinstance(each, torch.Tensor) else each for each in carried])
    while going:
        given = body_fn(*pytree.tree_unflatten(carried, structure))
        if not isinstance(given, (tuple, list)):
            raise RuntimeError(f"body_fn must return a tuple or list but got {type(given)}")
        after = tuple(pytree.tree_leaves(given))
        if len(after) != len(carried):
            raise RuntimeError("body_fn should return the same number of elements as carried_inputs")
        carried = after
        going = _is_going(cond_fn(*pytree.tree_unflatten(carried, structure)))
    return pytree.tree_unflatten(carried, structure)


def _is_going(pred: Any) -> Any:
    is_truth = isinstance(pred, torch.Tensor) and pred.dim() == 0 and pred.dtype == torch.bool
    if not is_truth and not isinstance(pred, bool):
        raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")
    return pred


def while_loop_of_operands(cond_fn: Any, body_fn: Any, carried_inputs: Any, additional_inputs: Any = ()) -> Any:
    """The operator itself, of leaves."""
    return while_loop(
        lambda *carried: cond_fn(*carried, *additional_inputs),
        lambda *carried: body_fn(*carried, *additional_inputs),
        carried_inputs,
    )


# ---- map
def map_(f: Any, xs: Any, *args: Any) -> Any:
    """``map``."""
    leaves, structure = pytree.tree_flatten(xs)
    if not _are_tensors(leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    length = leaves[0].shape[0]
    if length == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(each.shape[0] != length for each in leaves):
        shapes = [each.shape for each in leaves]
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    first = f(pytree.tree_unflatten([each[0] for each in leaves], structure), *args)
    collected = [[each] for each in pytree.tree_leaves(first)]
    for index in range(1, length):
        given = f(pytree.tree_unflatten([each[index] for each in leaves], structure), *args)
        for rows, each in zip(collected, pytree.tree_leaves(given)):
            rows.append(each)
    return pytree.tree_unflatten([_stacked(rows) for rows in collected], pytree.tree_structure(first))


def _stacked(rows: Any) -> Any:
    return torch.stack(rows) if isinstance(rows[0], torch.Tensor) else rows[0]


def map_of_leaves(f: Any, xs: Any, pos_args: Any) -> Any:
    """The operator itself, of leaves."""
    return map_(lambda row, *args: f(*row, *args), xs, *pos_args)


# ---- scan
def scan(combine_fn: Any, init: Any, xs: Any, *, dim: Any = 0, reverse: Any = False) -> Any:
    """``scan``."""
    leaves, structure = pytree.tree_flatten(xs)
    if len(leaves) == 0:
        return init, []
    dim = _dimension(leaves, dim)
    start, of_carry = pytree.tree_flatten(init)
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if len(start) == 0:
        raise RuntimeError("scan() operator requires init leaves.")
    if not _are_tensors(start):
        raise RuntimeError(f"All init leaves must be a Tensor but got {start}")
    if not _are_tensors(leaves):
        raise RuntimeError(f"All xs leaves must be a Tensor but got {leaves}")
    if any(each.dim() <= dim or each.shape[dim] == 0 for each in leaves):
        raise RuntimeError(_NO_DIMENSION)
    rows = [_to_front(each, dim, reverse) for each in leaves]
    carry, given = combine_fn(init, pytree.tree_unflatten([each[0] for each in rows], structure))
    kept = tuple(pytree.tree_leaves(carry))
    of_given = pytree.tree_structure(given)
    collected = [[each] for each in pytree.tree_leaves(given)]
    if len(kept) != len(start):
        raise RuntimeError(f"init and carry must have the same number of leaves, but got {len(start)} and {len(kept)}.")
    for index in range(1, rows[0].shape[0]):
        row = pytree.tree_unflatten([each[index] for each in rows], structure)
        carry, given = combine_fn(pytree.tree_unflatten(kept, of_carry), row)
        kept = tuple(pytree.tree_leaves(carry))
        for made, each in zip(collected, pytree.tree_leaves(given)):
            made.append(each)
    outputs = [_from_front(_stacked(made), dim, reverse) for made in collected]
    return pytree.tree_unflatten(kept, of_carry), pytree.tree_unflatten(outputs, of_given)


def scan_of_leaves(combine_fn: Any, init: Any, xs: Any, additional_inputs: Any = ()) -> Any:
    """The operator itself, of leaves."""

    def combined(carry: Any, row: Any) -> Any:
        given = combine_fn(*carry, *row, *additional_inputs)
        return list(given[: len(init)]), list(given[len(init) :])

    carry, outputs = scan(combined, list(init), list(xs))
    return (*carry, *outputs)


_NO_DIMENSION = "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"


def _dimension(leaves: Any, dim: Any) -> Any:
    most = leaves[0].dim()
    if not isinstance(dim, int):
        raise RuntimeError("Dim must be an int, but got " + str(type(dim)))
    if not -most <= dim < most:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {dim})")
    return dim + most if dim < 0 else dim


def _to_front(leaf: Any, dim: Any, reverse: Any) -> Any:
    moved = torch.movedim(leaf, dim, 0) if dim != 0 else leaf
    return torch.flip(moved, [0]) if reverse else moved


def _from_front(leaf: Any, dim: Any, reverse: Any) -> Any:
    turned = leaf.flip([0]) if reverse else leaf
    return torch.movedim(turned, 0, dim) if dim != 0 and dim < turned.dim() else turned


# ---- associative_scan
def associative_scan(
    combine_fn: Any, xs: Any, dim: Any, reverse: Any = False, combine_mode: Any = "pointwise"
) -> Any:
    """``associative_scan``, in the order in which torch combines: the last digits of sums depend on it."""
    leaves, structure = pytree.tree_flatten(xs)
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if len(leaves) == 0:
        raise ValueError("Expected at least 1 xs leaf")
    if not _are_tensors(leaves):
        raise ValueError("xs leaves must be a Tensor")
    on_others = any(each.device.type not in ("cuda", "xpu") for each in leaves)
    if not COMBINES_ANYWHERE and combine_mode == "pointwise" and on_others:
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    dim = _dimension(leaves, dim)
    if any(each.dim() <= dim or each.shape[dim] == 0 for each in leaves):
        raise ValueError(_NO_DIMENSION)
    rows = [_to_front(each, dim, reverse) for each in leaves]

    def combined(left: Any, right: Any) -> Any:
        return _combined(combine_fn, structure, left, right)

    outputs = [_from_front(each, dim, reverse) for each in _pairwise(combined, rows)]
    return pytree.tree_unflatten(outputs, structure)


def _combined(combine_fn: Any, structure: Any, left: Any, right: Any) -> Any:
    """What the function makes of each of several pairs, one below the other."""
    made = []
    for index in range(left[0].shape[0]):
        one = pytree.tree_unflatten([each[index] for each in left], structure)
        other = pytree.tree_unflatten([each[index] for each in right], structure)
        made.append(pytree.tree_leaves(combine_fn(one, other)))
    return [torch.stack([row[leaf] for row in made]) for leaf in range(len(left))]


def _pairwise(combined: Any, rows: Any) -> Any:
    """The scan: neighbours are combined, those are scanned, and what lies between is combined with them."""
    length = rows[0].shape[0]
    if length < 2:
        return rows
    odd = _pairwise(combined, combined([each[:-1:2] for each in rows], [each[1::2] for each in rows]))
    before = [each[:-1] for each in odd] if length % 2 == 0 else odd
    between = [each[2::2] for each in rows]
    even = [each[:1] for each in rows]
    if length > 2:
        made = combined(before, between)
        even = [torch.cat([first, rest]) for first, rest in zip(even, made)]
    return [_interleaved(*pair) for pair in zip(even, odd)]


def _interleaved(even: Any, odd: Any) -> Any:
    count = odd.shape[0]
    paired = torch.stack([even[:count], odd], dim=1).flatten(0, 1)
    return torch.cat([paired, even[count:]]) if even.shape[0] > count else paired


def associative_scan_of_leaves(combine_fn: Any, xs: Any, additional_inputs: Any = ()) -> Any:
    """The operator itself, of leaves."""

    def combined(left: Any, right: Any) -> Any:
        return list(combine_fn(*left, *right, *additional_inputs))

    return associative_scan(combined, list(xs), 0, combine_mode="generic")


# ---- gradients
def depending(given: Any, sources: Any) -> Any:
    """What an operator gives, as tensors that depend on all of ``sources``: their gradients are there, 0 if need be.

    To autograd an operator is one function of all that any of its paths uses.
    """
    return pytree.tree_map(lambda leaf: _depending(leaf, sources), given)


def _depending(leaf: Any, sources: Any) -> Any:
    if not isinstance(leaf, torch.Tensor) or not (leaf.is_floating_point() or leaf.is_complex()):
        return leaf
    for source in sources:
        parts = torch.view_as_real(source) if source.is_complex() else source
        leaf = leaf - parts.flatten()[:0].sum().to(leaf.dtype)  # x - 0.0 is x, its sign too
    return leaf


POLYFILLS: dict[Any, Callable[..., Any]] = {
    torch.cond: cond,
    cond_op: cond,
    torch_while_loop: while_loop,
    while_loop_op: while_loop_of_operands,
    torch_map: map_,
    map_impl: map_of_leaves,
    torch_scan: scan,
    scan_op: scan_of_leaves,
    torch_associative_scan: associative_scan,
    associative_scan_op: associative_scan_of_leaves,
}
"""By torch's own functions and operators."""
