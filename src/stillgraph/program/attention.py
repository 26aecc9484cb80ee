"""Attention over sequences of which only the run knows the length.

torch chooses a kernel by sizes (none of the fast ones takes an empty sequence), which shape inference cannot tell then.
The result has the same shape with each kernel; how it lies in memory is the kernel's affair.

The adapter to torch's code of multi-head attention.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols, statically_known_true
from torch.utils._python_dispatch import _disable_current_modes

ATTENTION: Any = F.scaled_dot_product_attention
MULTI_HEAD: Any = F.multi_head_attention_forward
_FIRST = 11  # it stands for an unknown size, and each further one has a greater number


def is_open(*values: Any) -> bool:
    """Whether there is a tensor among the values of which only the run knows a size."""
    return any(isinstance(each, Tensor) and any(map(_is_unknown, each.shape)) for each in values)


def _is_unknown(size: Any) -> bool:
    return isinstance(size, torch.SymInt) and bool(free_unbacked_symbols(size))


def in_parts(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    product: Callable[[Tensor, Tensor], Tensor] = torch.matmul,
    as_kernels: bool = True,
) -> Tensor:
    """`torch.nn.functional.scaled_dot_product_attention` by other operators, which take every length and ask for none.

    A query that may look at nothing gives zeros, as with torch's kernels.

    Args:
        query, key, value, attn_mask, is_causal, scale, enable_gqa: as there.
        dropout_p: not used: nothing is dropped. This is for inference, or tells a shape.
        product: of matrices.
        as_kernels: whether the result lies in memory as torch's kernel leaves it where no sequence is empty; otherwise
            it is contiguous.
    """
    order = list(range(query.dim()))
    if as_kernels:
        order = order_of(query, key, value, attn_mask, is_causal, scale=scale, enable_gqa=enable_gqa)
    if query.dim() == key.dim() == value.dim() == 3:  # onnxruntime (1.31) crashes on empty products of three dimensions
        options: dict[str, Any] = {"scale": scale, "enable_gqa": enable_gqa, "product": product}
        q, k, v = (each.unsqueeze(0) for each in (query, key, value))
        made = in_parts(q, k, v, attn_mask, 0.0, is_causal, **options, as_kernels=as_kernels)
        return laid_out(made.squeeze(0), order)
    if enable_gqa:
        key, value = (_for_each_head(each, query.shape[-3]) for each in (key, value))
    factor = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else abs(scale))
    scores = product(query * factor, (key * (factor if scale is None or scale >= 0 else -factor)).mT)
    if is_causal:
        places = (torch.arange(length, device=query.device) for length in scores.shape[-2:])
        attn_mask = next(places)[:, None] >= next(places)
    if attn_mask is not None:
        is_flag = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if is_flag else scores + attn_mask.to(scores.dtype)
    sees_nothing = (scores != -torch.inf).sum(-1, keepdim=True) == 0
    return laid_out(product(torch.softmax(scores, -1).masked_fill(sees_nothing, 0.0), value), order)


def on_fakes(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, *args: Any, **kwargs: Any
) -> Tensor:
    """What stands for the result of attention while a program is captured; by `in_parts` where more than sizes matters.

    Args:
        query, key, value, attn_mask, args, kwargs: as `torch.nn.functional.scaled_dot_product_attention` has them.
    """
    given = [each for each in (query, key, value, attn_mask) if each is not None]
    learns = torch.is_grad_enabled() and any(each.requires_grad for each in given)
    special = learns or torch.is_autocast_enabled(query.device.type)
    shares_heads = bool(kwargs.get("enable_gqa"))
    pairs = None if special else _to_be_equal(query, key, value, attn_mask, shares_heads)
    if pairs is None or any(statically_known_true(a != b) for a, b in pairs):
        return in_parts(query, key, value, attn_mask, *args, **kwargs)
    for a, b in pairs:
        if not statically_known_true(a == b):
            torch._check(a == b)
    is_causal = bool(kwargs.get("is_causal", args[1] if len(args) > 1 else False))
    order = order_of(query, key, value, attn_mask, is_causal, enable_gqa=shares_heads)
    sizes = [*query.shape[:-1], value.shape[-1]]
    return query.new_empty([sizes[dim] for dim in order]).permute(inverse(order))


def _to_be_equal(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, shares_heads: bool
) -> list[tuple[Any, Any]] | None:
    """The sizes that have to be the same where only the mask is broadcast; None where more than sizes matters."""
    dims = query.dim()
    if not dims == key.dim() == value.dim() >= 3 or not query.dtype == key.dtype == value.dtype:
        return None
    leading = range(dims - 3 if shares_heads else dims - 2)
    if shares_heads and not (dims == 4 and _may_be_shared(query.shape[1], key.shape[1], value.shape[1])):
        return None
    pairs = [(each.shape[dim], query.shape[dim]) for dim in leading for each in (key, value)]
    pairs += [(key.shape[-1], query.shape[-1]), (value.shape[-2], key.shape[-2])]
    if attn_mask is None:
        return pairs
    if attn_mask.dim() > dims or attn_mask.dtype not in (torch.bool, query.dtype):
        return None
    scores = [*query.shape[:-1], key.shape[-2]][dims - attn_mask.dim() :]
    of_mask = zip(attn_mask.shape, scores, strict=True)
    return [*pairs, *(pair for pair in of_mask if not statically_known_true(pair[0] == 1))]


def _may_be_shared(queries: Any, keys: Any, values: Any) -> bool:
    """Whether each head of the keys and values serves as many of the queries, or that is for the run to tell."""
    is_known = all(isinstance(each, int) for each in (queries, keys, values))
    return not is_known or keys == values > 0 == queries % keys


def _added_product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right``, for Inductor: where something is added it asks for no sizes (torch 2.13)."""
    leading = left.shape[:-2]
    same = len(leading) == right.dim() - 2 and all(map(statically_known_true, map(operator.eq, leading, right.shape)))
    if not leading or not same:
        return left @ right
    left, right = left.flatten(0, -3), right.flatten(0, -3)
    nothing = left.new_zeros(()).expand(left.shape[0], left.shape[1], right.shape[2])
    made: Tensor = torch.baddbmm(nothing, left, right, beta=0).unflatten(0, leading)
    return made


def _for_each_head(tensor: Tensor, heads: Any) -> Tensor:
    """The heads of keys or values, each as often as there are queries for it."""
    return tensor.index_select(-3, torch.arange(heads, device=tensor.device) // (heads // tensor.shape[-3]))


def laid_out(tensor: Tensor, order: Sequence[int]) -> Tensor:
    """A tensor whose dimensions lie in memory in an order, the one whose neighbours lie farthest apart first."""
    if list(order) == sorted(order):
        return tensor.contiguous()
    return tensor.permute(list(order)).contiguous().permute(inverse(order))


def inverse(order: Sequence[int]) -> list[int]:
    """The order that undoes one."""
    return [list(order).index(dim) for dim in range(len(order))]


def order_of(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False, **options: Any
) -> list[int]:
    """The order in which the dimensions of the result lie in memory where no sequence is empty.

    torch is asked for it, with a number in the place of every unknown size.
    """
    numbers: dict[Any, int] = {}
    with torch._C.DisableTorchFunction(), _disable_current_modes(), FakeTensorMode(), torch.no_grad():
        q, k, v = (_stand_in(each, numbers) for each in (query, key, value))
        mask = None if attn_mask is None else torch.empty(q.shape[-2], k.shape[-2], dtype=attn_mask.dtype)
        try:
            strides = ATTENTION(q, k, v, mask, 0.0, is_causal, **options).stride()
        except (RuntimeError, ValueError):  # the numbers are to be equal: of this torch is not sure before the run
            return list(range(query.dim()))
    return sorted(range(len(strides)), key=lambda dim: -strides[dim])


def _stand_in(tensor: Tensor, numbers: dict[Any, int]) -> Tensor:
    """A tensor like another, without unknown sizes."""
    sizes, strides = ([_number(each, numbers) for each in given] for given in (tensor.shape, tensor.stride()))
    made = torch.empty_strided(sizes, strides, dtype=tensor.dtype, device=tensor.device)
    return made.requires_grad_(tensor.requires_grad)


def _number(size: Any, numbers: dict[Any, int]) -> int:
    if not isinstance(size, torch.SymInt):
        return int(size)
    known = {symbol: numbers.setdefault(symbol, _FIRST + 2 * len(numbers)) for symbol in size.node.expr.free_symbols}
    return int(size.node.expr.xreplace(known))


def multi_head_with(attention: Callable[..., Tensor]) -> Callable[..., Any]:
    """torch's own code of ``multi_head_attention_forward``, with another function for the attention in it."""
    names = {**MULTI_HEAD.__globals__, ATTENTION.__name__: attention}
    ours = FunctionType(MULTI_HEAD.__code__, names, MULTI_HEAD.__name__, MULTI_HEAD.__defaults__)
    ours.__kwdefaults__ = MULTI_HEAD.__kwdefaults__
    names[MULTI_HEAD.__name__] = ours  # it names itself to modes that see torch's functions
    return ours


_MULTI_HEAD_IN_PARTS = multi_head_with(in_parts)


def multi_head_in_parts(*args: Any, **kwargs: Any) -> Any:
    """``multi_head_attention_forward`` with `in_parts`, and without dropout."""
    return _MULTI_HEAD_IN_PARTS(**_of_inference(args, kwargs))


_MULTI_HEAD_ON_FAKES = multi_head_with(on_fakes)


def multi_head_on_fakes(*args: Any, **kwargs: Any) -> Any:
    """``multi_head_attention_forward`` with `on_fakes`, and without dropout."""
    return _MULTI_HEAD_ON_FAKES(**_of_inference(args, kwargs))


def contiguous_in_parts(*args: Any, **kwargs: Any) -> Tensor:
    """`in_parts` for a program whose tensors have no memory: its branches give what is alike."""
    return in_parts(*args, **kwargs, as_kernels=False)


_CONTIGUOUS_MULTI_HEAD = multi_head_with(contiguous_in_parts)


def contiguous_multi_head(*args: Any, **kwargs: Any) -> Any:
    """``multi_head_attention_forward`` with `contiguous_in_parts`, and without dropout."""
    return _CONTIGUOUS_MULTI_HEAD(**_of_inference(args, kwargs))


def in_parts_for_inductor(*args: Any, **kwargs: Any) -> Tensor:
    """`in_parts` that Inductor can compile for every length."""
    return in_parts(*args, **kwargs, product=_added_product)


_MULTI_HEAD_FOR_INDUCTOR = multi_head_with(in_parts_for_inductor)


def multi_head_for_inductor(*args: Any, **kwargs: Any) -> Any:
    """``multi_head_attention_forward`` with `in_parts_for_inductor`, and without dropout."""
    return _MULTI_HEAD_FOR_INDUCTOR(**_of_inference(args, kwargs))


def _of_inference(args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**inspect.signature(MULTI_HEAD).bind(*args, **kwargs).arguments, "training": False}


IN_PARTS: dict[Any, Callable[..., Any]] = {ATTENTION: in_parts, MULTI_HEAD: multi_head_in_parts}
"""By torch's function one that takes the same and gives the same but for dropout, and asks for no length."""

ON_FAKES: dict[Any, Callable[..., Any]] = {ATTENTION: on_fakes, MULTI_HEAD: multi_head_on_fakes}
"""By torch's function one that takes the same and gives something of the same shape, and asks for no length."""

FOR_ONNX: dict[Any, Callable[..., Any]] = {ATTENTION: contiguous_in_parts, MULTI_HEAD: contiguous_multi_head}
"""The same, whose results are contiguous."""

FOR_INDUCTOR: dict[Any, Callable[..., Any]] = {ATTENTION: in_parts_for_inductor, MULTI_HEAD: multi_head_for_inductor}


def drops(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a call of one of the two drops weights at random."""
    if func is MULTI_HEAD:
        given = inspect.signature(MULTI_HEAD).bind(*args, **kwargs)
        given.apply_defaults()
        return bool(given.arguments["training"]) and given.arguments["dropout_p"] != 0
    return bool(kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0) != 0)
