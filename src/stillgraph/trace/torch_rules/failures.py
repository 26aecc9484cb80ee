"""Operations that raise in the run though they did not on fake tensors: all but those that are known not to.

What is wrong may be a value, which fake tensors do not have, or a kernel that is missing for a type of element. For
what is wrong with memory see `layouts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from stillgraph.trace.fakes.symbolic import is_fake
from stillgraph.trace.values.numbers import StagedFloat, StagedInt, is_number, kind_of

_T = torch.Tensor
_leaves = torch.utils._pytree.tree_leaves


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WHOLE = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})
_DIVIDING = frozenset({"floordiv", "ifloordiv", "rfloordiv", "floor_divide", "mod", "rmod", "remainder", "fmod"})
_OF_BITS = frozenset(
    {
        *("and", "or", "xor", "iand", "ior", "ixor", "rand", "ror", "rxor", "invert", "lshift", "rshift"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
    }
)
_ORDERING = frozenset({"lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal"})
_OF_SIZES = frozenset(
    {
        *("expand", "narrow", "new_empty", "new_full", "new_ones", "new_zeros", "repeat", "reshape", "resize"),
        *("roll", "tile", "topk", "unflatten", "view", "zeros", "ones", "empty", "full", "rand", "randn", "arange"),
    }
)
"""What takes sizes and positions behind its tensor, which may be tensors of whole numbers."""

_ALONG = frozenset({"softmax", "log_softmax", "softmin", "sort", "argsort", "cummax", "cummin"})
"""What takes a dimension that fake tensors do not look at."""

_OF_ANY_NUMBER = frozenset(
    {
        *("add", "sub", "mul", "div", "truediv", "true_divide", "pow", "radd", "rsub", "rmul", "rdiv", "rtruediv"),
        *("rpow", "iadd", "isub", "imul", "itruediv", "eq", "ne", "lt"),
        *("le", "gt", "ge", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "where", "masked_fill", "fill"),
        *("full_like", "as_tensor", "tensor", "scalar_tensor", "and", "or", "xor", "bitwise_and", "bitwise_or"),
    }
)
"""What takes a number as an operand, of which no value is wrong."""

_OF_ANY_TYPE = _words(
    """
    add alias all any as_tensor asarray atleast_1d atleast_2d atleast_3d bfloat16 block_diag bool
    broadcast_tensors broadcast_to byte cat char chunk clone column_stack concat concatenate conj contiguous
    copy cpu cuda data detach diag diag_embed diagflat diagonal div divide double dsplit dstack empty
    empty_like eq equal expand expand_as eye fill flatten flip fliplr flipud float full full_like get half
    hsplit hstack imag int is_complex is_floating_point is_same_size is_signed isub iadd imul itruediv
    logical_and logical_not logical_or logical_xor long masked_fill meshgrid mH moveaxis movedim mul
    multiply mT narrow ne neg negative new_empty new_full new_ones new_tensor new_zeros nonzero not_equal
    numel numpy ones ones_like permute positive radd ravel real repeat requires_grad reshape reshape_as
    resolve_conj resolve_neg rmul roll rot90 row_stack rsub select set short split split_with_sizes square
    squeeze stack sub subtract sum swapaxes swapdims t tensor tensor_split tile to transpose tril triu
    true_divide truediv type type_as unbind unflatten unsqueeze view view_as vsplit vstack where zero zeros
    zeros_like rdiv rtruediv masked_select T H arange linspace rand randn randn_like randint
    randperm item tolist scalar_tensor set_grad_enabled and or xor iand ior ixor invert rand ror rxor dim
    size stride repr format len iter contains hash bitwise_and bitwise_or bitwise_xor bitwise_not
    from_numpy view_as_real view_as_complex
    """
)
"""What has a kernel for every type of element, and fails at none."""

_OF_NUMBERS_AND_TRUTHS = _words(
    """
    amax amin aminmax count_nonzero cummax cummin diff floor_divide floordiv rfloordiv ifloordiv fmax fmin ge
    greater greater_equal gt isclose isfinite isinf isnan le less less_equal lt max maximum mean min minimum msort norm
    outer prod sgn sign signbit std_mean einsum unique unique_consecutive var_mean isin kron cross baddbmm
    addbmm addmv addr vdot allclose heaviside rsqrt sqrt exp log sin cos tan tanh sigmoid atan2 copysign lshift rshift
    nan_to_num ger ilshift irshift float_power logsumexp sort argsort
    """
)
"""What has a kernel for every type of real number and for truth values."""

_OF_NUMBERS = _words(
    """
    abs addcdiv addcmul argmax argmin ceil clamp clamp_max clamp_min clip cumprod cumsum fix floor fmod imod
    inner median mod pow relu remainder rmod round rpow ipow tensordot topk trace trunc
    """
)
"""What has a kernel for every type of real number."""

_OF_WHOLE_NUMBERS = _words("gcd lcm bitwise_left_shift bitwise_right_shift rlshift rrshift")
"""What has a kernel for whole numbers."""

_OF_FLOATS = _words(
    """
    acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d affine_grid alpha_dropout angle
    arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atanh avg_pool1d avg_pool2d
    batch_norm bilinear binary_cross_entropy_with_logits celu chain_matmul channel_shuffle
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d corrcoef cosh
    cosine_embedding_loss cosine_similarity cov cumulative_trapezoid deg2rad digamma dist elu erf erfc
    erfinv exp2 expm1 feature_alpha_dropout feature_dropout dropout1d dropout2d dropout3d fold frac frexp
    gaussian_nll_loss gelu glu grid_sample group_norm gru_cell gumbel_softmax hardshrink hardsigmoid
    hardswish hardtanh hinge_embedding_loss huber_loss hypot i0 igamma igammac instance_norm interpolate
    kl_div l1_loss layer_norm ldexp leaky_relu lgamma log10 log1p log2 logaddexp2
    logcumsumexp logit logsigmoid lp_pool1d lp_pool2d lstm_cell lu_unpack margin_ranking_loss max_pool1d
    max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices mish
    mse_loss nanmean nansum nextafter normalize pad pairwise_distance pixel_shuffle pixel_unshuffle
    poisson_nll_loss polygamma prelu rad2deg reciprocal relu6 renorm rms_norm rnn_relu_cell rnn_tanh_cell
    rrelu scaled_dot_product_attention selu silu sinc sinh smooth_l1_loss soft_margin_loss softmin softplus
    softshrink softsign tanhshrink threshold trapezoid trapz triplet_margin_loss xlogy constant_pad_nd
    arctan2 multi_head_attention_forward upsample dropout matmul mm bmm mv dot rmatmul addmm linear softmax
    log_softmax lerp logaddexp std var
    """
)
"""What has a kernel for numbers with a fraction."""

_OF_WIDE_FLOATS = _words("avg_pool3d cdist local_response_norm pdist")
"""What has a kernel for such numbers of 32 and 64 bits."""

_WIDE = frozenset({torch.float32, torch.float64})
_KERNELS = (
    (_OF_NUMBERS_AND_TRUTHS, _WIDE | _WHOLE | {torch.bool}),
    (_OF_NUMBERS, _WIDE | _WHOLE),
    (_OF_WHOLE_NUMBERS, _WHOLE),
    (_OF_FLOATS, _WIDE | {torch.bfloat16}),
    (_OF_WIDE_FLOATS, _WIDE),
)


def failures_of(func: Any, args: Any, kwargs: Any) -> tuple[type[Exception], ...]:
    """What a torch function may raise where its fake did not: for values, such as those of a matrix without an inverse.

    Every function may, but for those of which it is known that they do not.
    """
    name = getattr(func, "__name__", "")
    if func in (_T.__getitem__, _T.__setitem__):
        whole = args[1] if isinstance(args[1], tuple) else (args[1],)
        of_any_size = isinstance(args[0], torch.Tensor) and is_fake(args[0]) and _has_unknown_size(args[0])
        fixed = of_any_size and any(type(index) is int for index in whole)
        return (IndexError,) if fixed or any(map(_may_be_outside, whole)) else ()
    if _is_wrong_number(name, args, kwargs) or _subtracts_truth(name, args) or _is_wrong_for_truths(name, args, kwargs):
        return (RuntimeError, IndexError)
    if name.endswith("dropout") and any(isinstance(each, torch.Tensor) for each in (*args[1:2], kwargs.get("p"))):
        return (ValueError, RuntimeError)
    if name in _OF_SIZES and any(isinstance(each, torch.Tensor) for each in _leaves((args[1:], kwargs))):
        return (RuntimeError, IndexError)
    rounds = name in ("div", "divide") and kwargs.get("rounding_mode") is not None
    if (rounds or name.strip("_") in _DIVIDING) and _may_divide_by_zero(args, "__r" in name):
        return (RuntimeError,)
    if _has_no_kernel(name.strip("_"), args):
        return (RuntimeError,)
    if name in _ALONG and _has_no_dimension(args[0], kwargs.get("dim", args[1:2])):
        return (IndexError,)
    given = _leaves((args, kwargs))
    if not _has_kernel(name.strip("_"), given):
        return (RuntimeError, IndexError)
    if any(isinstance(a, torch.Tensor) and is_fake(a) and _has_unknown_size(a) for a in given):
        return (RuntimeError, IndexError)
    takes_number = any(isinstance(a, (torch.SymInt, StagedInt)) for a in given)
    return (RuntimeError, IndexError) if takes_number and name.strip("_") not in _OF_ANY_NUMBER else ()


def _has_kernel(name: str, given: Sequence[Any]) -> bool:
    """Whether it is known of a function that it computes whatever values it is given, for the types of its tensors."""
    if name in _OF_ANY_TYPE:
        return True
    with torch._C.DisableTorchFunction():
        types = {each.dtype for each in given if isinstance(each, torch.Tensor)}
    return any(name in names and types <= known for names, known in _KERNELS)


def _is_wrong_number(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a number has a value that no fake tensor looks at: a width of nothing, or one below."""
    if name == "smooth_l1_loss":
        return any(isinstance(each, StagedFloat) or each < 0 for each in _given(args[4:], kwargs, "beta"))
    if name == "celu":
        return any(isinstance(each, StagedFloat) or each == 0 for each in _given(args[1:2], kwargs, "alpha"))
    return False


def _given(positional: Sequence[Any], kwargs: dict[str, Any], name: str) -> list[Any]:
    """The number that a function has for a parameter, in a list; nothing where it has none."""
    return [each for each in (*positional, kwargs.get(name)) if is_number(each)]


def _subtracts_truth(name: str, operands: Sequence[Any]) -> bool:
    """Whether a truth value is subtracted or subtracted from, which may be Python's."""
    if name.strip("_") not in ("sub", "isub", "rsub", "subtract"):
        return False
    with torch._C.DisableTorchFunction():
        return any(_is_truth(each) for each in operands[:2])


def _is_wrong_for_truths(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a mask is not of truth values, or truth values are multiplied in place by a number that is none."""
    with torch._C.DisableTorchFunction():
        if name in ("masked_fill", "masked_fill_"):
            return not all(_is_truth(each) for each in (*args[1:2], *_leaves(kwargs.get("mask"))))
        in_place = name in ("mul_", "multiply_", "__imul__") and _is_truth(args[0])
        return in_place and not all(_is_truth(each) for each in args[1:2])


def _is_truth(value: Any) -> bool:
    return value.dtype == torch.bool if isinstance(value, torch.Tensor) else is_number(value) and kind_of(value) is bool


def _has_no_kernel(name: str, operands: Sequence[Any]) -> bool:
    """Whether an operation is of bits and a tensor has none, or asks for an order that complex numbers have not."""
    with torch._C.DisableTorchFunction():
        types = [each.dtype for each in operands if isinstance(each, torch.Tensor)]
    by_bits = name in _OF_BITS and any(each.is_floating_point or each.is_complex for each in types)
    return by_bits or (name in _ORDERING and any(each.is_complex for each in types))


def _has_no_dimension(tensor: Any, dim: Any) -> bool:
    number = dim[0] if isinstance(dim, tuple) and dim else dim
    if isinstance(number, torch.Tensor):
        return True  # as far as is known
    if type(number) is not int or not isinstance(tensor, torch.Tensor):
        return False
    with torch._C.DisableTorchFunction():
        most = max(tensor.dim(), 1)
    return not -most <= number < most


def _may_divide_by_zero(operands: Sequence[Any], reflected: bool) -> bool:
    """Whether whole numbers are divided by what may be zero: other numbers have an infinity.

    Args:
        operands: in the order of the method.
        reflected: whether the first is the divisor.
    """
    tensors = [each for each in operands if isinstance(each, torch.Tensor)]
    with torch._C.DisableTorchFunction():
        whole = all(each.dtype in _WHOLE for each in tensors) and not any(type(each) is float for each in operands)
    divides = not isinstance(operands[0], torch.Tensor) or len(tensors) > 1 or reflected
    return whole and (divides or not isinstance(operands[-1], int) or operands[-1] == 0)


def _may_be_outside(index: Any) -> bool:
    """Whether only the run knows if there is such an element."""
    if isinstance(index, torch.Tensor):
        return index.dtype in _WHOLE
    if isinstance(index, (tuple, list)):
        return any(type(each) is int or _may_be_outside(each) for each in index)  # which fake tensors do not look at
    return isinstance(index, (torch.SymInt, StagedInt))


def _has_unknown_size(fake: torch.Tensor) -> bool:
    with torch._C.DisableTorchFunction():
        return any(type(size) is not int for size in fake.shape)
