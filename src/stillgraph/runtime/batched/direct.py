"""Operations that are done on the tensors of all lanes as they are: the lanes are but one dimension more.

Where an operation has no rule here, torch's own batching rules do it, which cost more.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from stillgraph.runtime.batched.operations import ELEMENTWISE, Action, Operation, elementwise
from stillgraph.runtime.batched.values import Batch

Rule = Callable[[Operation, Any, Any], "Action | None"]


def direct(target: Any, function: Operation, args: Any, kwargs: Any) -> Action | None:
    """How to do an operation on the tensors of all lanes.

    Args:
        target: the operation, by which rules know it.
        function: what it calls.
        args, kwargs: an example of its arguments.

    Returns:
        What does it for all arguments of this kind, whatever their sizes and numbers are; None where there is no rule.
    """
    if target in ELEMENTWISE:
        found = elementwise(function, args, kwargs)
        if found is not None:
            return found
    rule = RULES.get(target)
    return None if rule is None else rule(function, args, kwargs)


# ---- whole tensors
def _extreme(of_rows: Callable[..., Tensor]) -> Rule:
    """The greatest or least element: torch's rule for a batch gives the gradient to one of several, eager to all."""

    def rule(function: Operation, args: Any, kwargs: Any) -> Action | None:
        if len(args) != 1 or kwargs:
            return None
        return lambda on: of_rows(on.flatten(1), 1)

    return rule


def _reduction(function: Operation, args: Any, kwargs: Any) -> Action | None:
    """A sum and the like, of all elements or of one dimension."""
    if kwargs or type(args[0]) is not Batch or args[0].tensor.dim() < 2:
        return None
    if len(args) == 1:
        return lambda on: function(on.flatten(1), 1)
    if len(args) == 2 and type(args[1]) is int:
        return lambda on, dim: function(on, _behind(dim))
    return None


def _behind(dim: int) -> int:
    """A dimension of a lane's tensor, as one of the tensor of all lanes."""
    return dim + 1 if dim >= 0 else dim


# ---- parts of tensors, and tensors of parts
def _item(function: Operation, args: Any, kwargs: Any) -> Action | None:
    """``tensor[index]``, by what is the same for all lanes, and views."""
    on, index = args
    if isinstance(on, Tensor) and type(index) is Batch:  # a row of a table that all lanes share
        numbers = index.tensor
        return operator.getitem if numbers.dim() == 1 and numbers.dtype in (torch.int64, torch.int32) else None
    if type(on) is not Batch or not _is_basic(index):
        return None
    if isinstance(index, tuple):
        return lambda on, index: on[(_ALL, *index)]
    return lambda on, index: on[_ALL, index]


_ALL = slice(None)


def _is_basic(index: Any) -> bool:
    if isinstance(index, tuple):
        return all(map(_is_basic, index))
    if type(index) is slice:
        return all(each is None or type(each) is int for each in (index.start, index.stop, index.step))
    return type(index) is int or index is None or index is ...


def _stack(function: Operation, args: Any, kwargs: Any) -> Action | None:
    """``stack`` and ``cat`` of tensors that all differ among the lanes."""
    if kwargs or len(args) > 2 or type(args[0]) not in (list, tuple) or not all(type(e) is Batch for e in args[0]):
        return None
    if len({(each.tensor.dtype, each.tensor.dim()) for each in args[0]}) > 1:
        return None
    if len(args) == 1:
        return lambda parts: function(parts, 1)
    if type(args[1]) is not int:
        return None
    return lambda parts, dim: function(parts, _behind(dim))


# ---- products
def _linear(function: Operation, args: Any, kwargs: Any) -> Action | None:
    """A linear layer whose weights all lanes share."""
    if kwargs or type(args[0]) is not Batch or args[0].tensor.dim() < 2 or any(type(e) is Batch for e in args[1:]):
        return None
    return function


def _matmul(function: Operation, args: Any, kwargs: Any) -> Action | None:
    """A product with a matrix that all lanes share, or of two matrices of each lane."""
    if kwargs or len(args) != 2 or type(args[0]) is not Batch or args[0].tensor.dim() < 2:
        return None
    left, right = args
    if isinstance(right, Tensor):
        return function if right.dim() == 2 else None
    if type(right) is not Batch or left.tensor.dim() != 3 or right.tensor.dim() != 3:
        return None
    return function


def _embedding(function: Operation, args: Any, kwargs: Any) -> Action | None:
    """Rows of a table that all lanes share."""
    if len(args) != 2 or type(args[0]) is not Batch or not isinstance(args[1], Tensor):
        return None
    return function if kwargs.get("max_norm") is None else None  # else the table is written to


_REDUCTIONS = ("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "all", "any", "logsumexp")
_PRODUCTS = ("matmul", "__matmul__")

RULES: dict[Any, Rule] = {
    **dict.fromkeys(("max", torch.max), _extreme(torch.amax)),
    **dict.fromkeys(("min", torch.min), _extreme(torch.amin)),
    **dict.fromkeys((*_REDUCTIONS, *(getattr(torch, name) for name in _REDUCTIONS)), _reduction),
    **dict.fromkeys((*_PRODUCTS, torch.matmul, operator.matmul), _matmul),
    operator.getitem: _item,
    F.linear: _linear,
    F.embedding: _embedding,
    torch.stack: _stack,
    torch.cat: _stack,
}
