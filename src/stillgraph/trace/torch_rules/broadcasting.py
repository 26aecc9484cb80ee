"""Operations on tensors of which only the run knows whether one is stretched to the size of the other.

Of ``x + y`` torch learns that the two have one size. One of them may have the size 1 as well, and then the other's size
is the result's: what torch has learned is forgotten, and the result's size is known to the run alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from stillgraph.program.facts.size_facts import Equalities
from stillgraph.trace.fakes.symbolic import Symbolic
from stillgraph.trace.torch_rules.fake_execution import run_on_fakes
from stillgraph.trace.torch_rules.given import leaves_given
from stillgraph.trace.torch_rules.packed import zeros_from


def run(symbolic: Symbolic, func: Callable[..., Any], args: Any, kwargs: Any, call: Callable[[], Any]) -> Any:
    """Run an operation on fake tensors.

    Args:
        symbolic: of the capture.
        func, args, kwargs: the operation.
        call: runs it.
    """
    tensors = [leaf for leaf in leaves_given(args, kwargs) if isinstance(leaf, torch.Tensor)]
    open_dims = {id(tensor): _symbols_of(tensor) for tensor in tensors}
    if not any(open_dims.values()):
        return call()
    with symbolic.unremembered():
        if len(tensors) < 2 and getattr(func, "__name__", "") not in _STRETCHING:
            return call()
        return _run_open(symbolic, func, args, kwargs, call, tensors, open_dims)


_STRETCHING = frozenset({"expand", "broadcast_to"})
"""The functions that stretch one tensor alone, to sizes that they are given."""


def _run_open(
    symbolic: Symbolic,
    func: Callable[..., Any],
    args: Any,
    kwargs: Any,
    call: Callable[[], Any],
    tensors: list[torch.Tensor],
    open_dims: dict[int, dict[int, frozenset[Any]]],
) -> Any:
    """Run an operation on tensors, of which some have sizes that are symbols: these by tensor and dimension."""
    learning = Equalities.before(symbolic.shape_env)
    result = call()
    equal = learning.symbols()
    if not equal:
        return result
    unsure = {key: [dim for dim, used in dims.items() if used & equal] for key, dims in open_dims.items()}
    if not any(_takes_ones(symbolic, func, args, kwargs, tensor, unsure[id(tensor)]) for tensor in tensors):
        return result
    shapes = {id(made): list(_sizes(made)) for made in tree_leaves(result) if isinstance(made, torch.Tensor)}
    learning.forget()
    asked_for = _sizes_given(args, kwargs)  # by ``expand``, say: it gives them, or fails

    def stretched(made: Any) -> Any:
        if not isinstance(made, torch.Tensor) or (_is_in_place(func) and made is tensors[0]):
            return made  # it has the size it had
        sizes = (
            symbolic.fresh_size() if _uses(size, equal) and size.node.expr not in asked_for else size
            for _, size in shapes[id(made)]
        )
        return zeros_from(made, tuple(sizes))

    return tree_map(stretched, result)


def _sizes_given(args: Any, kwargs: Any) -> frozenset[Any]:
    """What an operation is given as sizes that are symbols."""
    leaves = tree_leaves((args, kwargs), is_leaf=lambda leaf: isinstance(leaf, torch.Size))
    given = [each for leaf in leaves for each in (leaf if isinstance(leaf, torch.Size) else (leaf,))]
    return frozenset(each.node.expr for each in given if isinstance(each, torch.SymInt))


def _is_in_place(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    return name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


def _uses(size: Any, symbols: frozenset[Any]) -> bool:
    return not isinstance(size, int) and not symbols.isdisjoint(size.node.expr.free_symbols)


def _symbols_of(tensor: torch.Tensor) -> dict[int, frozenset[Any]]:
    """By dimension the symbols in its size, where there are any."""
    sizes = ((dim, size) for dim, size in _sizes(tensor) if not isinstance(size, int))
    return {dim: frozenset(size.node.expr.free_symbols) for dim, size in sizes}


def _sizes(tensor: torch.Tensor) -> Iterator[tuple[int, Any]]:
    """The dimensions of a tensor with their sizes, these as plain numbers where they are known."""
    size: Any
    for dim, size in enumerate(tensor.shape):
        known = not isinstance(size, int) and size.node.expr.is_number
        yield dim, int(size.node.expr) if known else size


def _takes_ones(
    symbolic: Symbolic, func: Any, args: Any, kwargs: Any, tensor: torch.Tensor, dims: Sequence[int]
) -> bool:
    """Whether an operation takes a tensor also where the size is 1 that it has taken for another's."""
    if not dims:
        return False
    of_one = tensor.new_zeros([1 if dim in dims else size for dim, size in enumerate(tensor.shape)])
    args, kwargs = tree_map(lambda value: of_one if value is tensor else value, (args, kwargs))
    with symbolic.learned_inside():
        try:
            run_on_fakes(symbolic, func, args, kwargs)
        except Exception:  # of any kind: then it wants the sizes to be equal, as torch has taken it
            return False
    return True
