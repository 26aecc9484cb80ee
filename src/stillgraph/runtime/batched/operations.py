"""One operation of a program, for all lanes of a group."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from stillgraph.runtime.batched.values import (
    Batch,
    Lanes,
    Resists,
    Truths,
    gathered,
    lane,
    leaves,
    merged,
    selected,
)

Operation = Callable[..., Any]
NUMBERS = (bool, int, float)
Action = Callable[..., Any]
"""Does an operation on the tensors of all lanes, which stand for the batches among its arguments."""


# ---- whatever the operation
def lane_by_lane(function: Operation, args: Any, kwargs: Any, lanes: int, stack: bool = True) -> Any:
    """An operation done once for each lane; ``stack``: whether the results may be copied."""
    if not kwargs and all(type(each) is Lanes or type(each) in NUMBERS for each in args):
        columns = [each.values if type(each) is Lanes else [each] * lanes for each in args]
        return gathered([*map(function, *columns)])
    return gathered([function(*lane(args, each), **lane(kwargs, each)) for each in range(lanes)], stack)


def by_groups(apply: Callable[[Any, Any, int], Any], args: Any, kwargs: Any, lanes: int) -> Any:
    """An operation done once for all lanes whose `Lanes` agree: ``apply(args, kwargs, lanes)``."""
    differing = [each for each in leaves((args, kwargs)) if type(each) is Lanes]
    groups: dict[Any, list[int]] = {}
    for position in range(lanes):
        key = tuple([_key(each.values[position], position) for each in differing])
        groups.setdefault(key, []).append(position)
    pieces = []
    for positions in groups.values():
        if len(positions) == 1:
            some = lane((args, kwargs), positions[0])
        else:
            some = selected((args, kwargs), positions)
            if any(type(each) is Lanes for each in leaves(some)):
                raise Resists("values that are neither tensors nor numbers differ among the lanes")
        some_args, some_kwargs = some
        pieces.append((positions, apply(some_args, some_kwargs, len(positions))))
    return merged(pieces)


def _key(value: Any, position: int) -> Any:
    """What values have in common for which an operation can be done at once."""
    if isinstance(value, Tensor):
        return value.shape, value.dtype, value.device
    kind = type(value)
    if kind in (bool, int, float, str, torch.dtype, torch.device):
        return kind, value, str(value) if kind is float else None
    if kind in (list, tuple):
        return kind, tuple([_key(each, position) for each in value])
    return None if value is None else position  # of what is not known, each for itself


# ---- operations on elements
def _names(text: str) -> list[str]:
    return text.split()


_ELEMENTWISE_NAMES = _names(
    """sin cos tan asin acos atan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal abs
    neg positive sign floor ceil trunc round frac sigmoid relu erf erfc isnan isinf isfinite logical_not bitwise_not
    add sub mul div true_divide multiply subtract divide maximum minimum fmax fmin pow eq ne lt le gt ge atan2 hypot
    logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor clamp clamp_min clamp_max where nan_to_num
    float double int long bool clone detach __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__
    __pow__ __rpow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __neg__ __and__ __or__ __xor__ __invert__ __abs__"""
)
_OF_TORCH = set(dir(torch)) - {*_names("float double int long bool"), *dir(object())}
_PYTHONS = _names("add sub mul truediv pow neg pos abs eq ne lt le gt ge and_ or_ xor invert")
_ACTIVATIONS = _names("relu silu gelu softplus elu leaky_relu hardtanh relu6 sigmoid tanh logsigmoid")

ELEMENTWISE: frozenset[Any] = (
    frozenset(_ELEMENTWISE_NAMES)
    | {getattr(torch, name) for name in _ELEMENTWISE_NAMES if name in _OF_TORCH}
    | {getattr(operator, name) for name in _PYTHONS}
    | {getattr(torch.nn.functional, name) for name in _ACTIVATIONS}
)
"""Functions, and names of methods, that give for each element of their tensors one of the result."""

_WITH_NUMBERS = _names("add sub mul div true_divide eq ne lt le gt ge where multiply subtract divide")
WITH_NUMBERS: frozenset[Any] = frozenset(
    [
        *_WITH_NUMBERS,
        *(getattr(torch, name) for name in _WITH_NUMBERS),
        *(operator.add, operator.sub, operator.mul, operator.truediv),
        *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
        *(f"__{name}__" for name in _names("add radd sub rsub mul rmul truediv rtruediv eq ne lt le gt ge")),
    ]
)
"""Those of them that take a tensor with no dimensions for a number, and give the same."""

_PROMOTED = (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool)
"""Of these dtypes, a number that meets a tensor is first converted to the dtype of the result."""


def elementwise(function: Operation, args: Sequence[Any], kwargs: Any) -> Action | None:
    """How to do an operation on elements on the tensors of all lanes as they are.

    Returns:
        What does it for all arguments of this kind; None where that is not the same: for tensors of two dtypes, say.
    """
    rank, kind = 0, None
    for each in args:
        if type(each) is Batch:
            rank, found = max(rank, each.tensor.dim() - 1), each.tensor
        elif isinstance(each, Tensor):
            rank, found = max(rank, each.dim()), each
        elif type(each) in NUMBERS:
            continue
        else:
            return None
        now = found.dtype, found.device
        if kind is None or (function is torch.where and each is args[1]):  # of the first, it is whether they hold
            kind = now
        elif kind != now:
            return None
    if any(type(each) not in (*NUMBERS, str, type(None)) for each in kwargs.values()):
        return None
    missing = [rank + 1 - each.tensor.dim() if type(each) is Batch else 0 for each in args]
    if not any(missing):
        return function
    return lambda *args, **kwargs: function(*map(_aligned, args, missing), **kwargs)


def _aligned(value: Any, missing: int) -> Any:
    """A tensor of all lanes, with as many dimensions as the one that has most."""
    if missing == 1:
        return value.unsqueeze(1)
    return value.reshape(value.shape[0], *(1,) * missing, *value.shape[1:]) if missing else value


def with_tensors_for_numbers(args: Sequence[Any]) -> Sequence[Any] | None:
    """Arguments in which numbers that differ among the lanes are tensors with no dimensions.

    Returns:
        None where a tensor would not do in the place of a number.
    """
    tensors: list[Tensor] = [each for each in args if isinstance(each, Tensor)]
    tensors += [each.tensor for each in args if type(each) is Batch]
    if not tensors or any(each.dtype not in _PROMOTED for each in tensors):
        return None
    numbers = [each for each in args if type(each) is Lanes]
    for each in numbers:
        if len({type(value) for value in each.values}) > 1 or type(each.values[0]) not in NUMBERS:
            return None
    if len({each.dtype for each in tensors}) > 1:
        return None
    like = tensors[0]

    def of(leaf: Any) -> Any:
        if type(leaf) is not Lanes:
            return leaf
        dtype = torch.result_type(like, leaf.values[0])
        return Batch(torch.tensor(leaf.values, dtype=dtype, device=like.device))

    return [of(each) for each in args]


# ---- what Python asks a tensor for
AS_NUMBERS: dict[Any, Callable[[Any], Any]] = {
    "item": lambda number: number,
    "__int__": int,
    "__float__": float,
    builtins.int: int,
    builtins.float: float,
}
"""What gives a number of Python's for a tensor of one element: what is done with the element."""


def numbers_of(value: Batch) -> list[Any]:
    """The element of each lane of a tensor of one element, as Python's number."""
    tensor = value.tensor
    if tensor.numel() != tensor.shape[0]:
        raise Resists("the truth or number of a tensor of more than one element")
    found: list[Any] = tensor.detach().reshape(-1).tolist()
    return found


AS_TRUTHS: dict[Any, bool] = {
    **dict.fromkeys((builtins.bool, operator.truth, "__bool__", torch.is_nonzero), True),
    operator.not_: False,
}
"""What gives a truth value: whether it is that of its argument, or the other one."""


def truths_of(target: Any, value: Batch | Truths) -> Truths:
    """What such an operation gives for a tensor of one element, or a truth value, of each lane."""
    tensor = value.tensor
    if tensor.numel() != tensor.shape[0]:
        raise Resists("the truth of a tensor of more than one element")
    tensor = tensor.detach().reshape(-1)
    holds = tensor if tensor.dtype is torch.bool else tensor != 0
    return Truths(holds if AS_TRUTHS[target] else ~holds)


def truths(value: Any) -> bool | list[bool]:
    """Whether a condition holds: for all lanes, or for each."""
    if type(value) is Truths:
        each = value.tensor.tolist()
    elif type(value) is Batch:
        each = [bool(number) for number in numbers_of(value)]
    elif type(value) is Lanes:
        each = [bool(one) for one in value.values]
    else:
        return bool(value)
    return each[0] if all(each) or not any(each) else each


# ---- elements at places that differ
def item_at(args: Sequence[Any]) -> Any:
    """``tensor[index]``, where the index is a whole number that differs among the lanes.

    Returns:
        None where it is anything else.

    Raises:
        IndexError: there is no such element in some lane.
    """
    on, index = args
    if type(on) is not Batch or type(index) is not Lanes or on.tensor.dim() < 2:
        return None
    if any(type(each) is not int for each in index.values):
        return None
    tensor = on.tensor
    where = _places(index, tensor)
    return Batch(tensor[torch.arange(tensor.shape[0], device=tensor.device), where])


def _places(index: Lanes, tensor: Tensor) -> Tensor:
    size = tensor.shape[1]
    if any(not -size <= each < size for each in index.values):
        raise IndexError("index out of range")
    return torch.tensor(index.values, device=tensor.device)


def set_item_at(args: Sequence[Any]) -> bool:
    """``tensor[index] = value``, where the index is a whole number that differs among the lanes.

    Returns:
        Whether it was done.
    """
    on, index, value = args
    if type(on) is not Batch or type(index) is not Lanes or any(type(each) is not int for each in index.values):
        return False
    tensor = on.tensor
    if tensor.dim() < 2:
        return False
    if type(value) is Lanes:
        if any(type(each) not in NUMBERS for each in value.values):
            return False
        given: Any = torch.tensor(value.values, dtype=tensor.dtype, device=tensor.device)
        given = given.reshape(-1, *(1,) * (tensor.dim() - 2))
    elif type(value) is Batch:
        given = value.tensor
        if given.shape[1:] != tensor.shape[2:]:
            return False
    else:
        given = value
    tensor[torch.arange(tensor.shape[0], device=tensor.device), _places(index, tensor)] = given
    return True


def plain_only(args: Any, kwargs: Any) -> bool:
    """Whether no tensor is among the arguments, in any lane."""
    for leaf in leaves((args, kwargs)):
        if type(leaf) is Batch or isinstance(leaf, Tensor):
            return False
        if type(leaf) is Lanes and any(isinstance(each, Tensor) for value in leaf.values for each in leaves(value)):
            return False
    return True
