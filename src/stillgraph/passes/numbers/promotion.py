"""Operations that take a 0-d tensor where they take a number, and how eager PyTorch promotes the two."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import fx

from stillgraph.passes.regions.values import Fakes, kind_of, value_of
from stillgraph.program.facts.writes import name_of
from stillgraph.program.graphs import arguments

_BOTH = frozenset({0, 1, "other", "input"})
_ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "truediv",
    "div",
    "true_divide",
    "divide",
    "floordiv",
    "floor_divide",
    "mod",
    "remainder",
    "fmod",
    "pow",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and_",
    "or_",
    "xor",
    "rsub",
    "multiply",
    "subtract",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "less",
    "greater",
    "less_equal",
    "greater_equal",
    "not_equal",
    "float_power",
    "__and__",
    "__or__",
    "__xor__",
    "__rsub__",
    "__radd__",
    "__rmul__",
)
# Per operation, the places where a 0-d tensor means the same as a number.
PROMOTING: dict[str, frozenset[Any]] = {
    **dict.fromkeys(_ARITHMETIC, _BOTH),
    **{f"{name}_": _BOTH for name in _ARITHMETIC if not name.endswith("_")},
    **{f"i{name}": _BOTH for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")},
    "where": frozenset({1, 2, "input", "other", "self"}),
    "masked_fill": frozenset({2, "value"}),
    "masked_fill_": frozenset({2, "value"}),
    "fill_": frozenset({1, "value"}),
    "lerp": frozenset({2, "weight"}),
    "lerp_": frozenset({2, "weight"}),
    "index_fill": frozenset({3, "value"}),
    "setitem": frozenset({2}),
}


class Lowered(Protocol):
    """A region whose numbers are being lowered (`passes.numbers`)."""

    made: dict[fx.Node, Any]  # what each of its nodes has become
    fakes: Fakes

    def emit(self, target: Any, *args: Any, kind: type | None = None, value: Any = None, **kwargs: Any) -> fx.Node:
        """A new node; ``kind`` says that it is the 0-d tensor of a number."""

    def symbol_of(self, node: fx.Node) -> Any:
        """What torch takes as a size for a node."""


def as_operand(region: Lowered, number: Any, tensors: list[Any]) -> fx.Node:
    """A number as a tensor that meets others, of the dtype eager PyTorch computes in.

    Args:
        region: where the operation stands.
        number: the number.
        tensors: what stands for the tensors it meets.
    """
    met = max((t for t in tensors if isinstance(t, torch.Tensor)), key=lambda t: (t.dim() > 0, _rank(t.dtype)))
    dtype = torch.result_type(torch.empty((1,) * min(met.dim(), 1), dtype=met.dtype, device="meta"), number.kind(1))
    if dtype in (torch.float16, torch.bfloat16) and met.dim() > 0:
        return number.tensor  # type: ignore[no-any-return]  # eager computes with the number itself
    tensor: fx.Node = number.tensor
    if tensor.meta["val"].dtype == dtype:
        return tensor
    with region.fakes.mode:
        value = torch.empty((), dtype=dtype)
    return region.emit("to", tensor, dtype, value=value)


def _rank(dtype: torch.dtype) -> int:
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype == torch.bool else 1


# ---- tensors made of a number
def _scalar(region: Lowered, node: fx.Node) -> fx.Node | None:
    """``torch.tensor(n)``, ``torch.as_tensor(n)``, ``torch.scalar_tensor(n)``."""
    given = arguments(node)[0] if arguments(node) else None
    number = region.made.get(given) if isinstance(given, fx.Node) else None
    if number is None or isinstance(number, fx.Node):
        return None
    value = node.meta["val"]
    moved = region.emit("to", number.tensor, device=value.device, dtype=value.dtype, value=value)
    return region.emit("clone", moved, value=value)


def joined(region: Lowered, node: fx.Node) -> fx.Node:
    """Our own ``as_tensor(n, dtype, device)``: where a number meets the tensor of another path."""
    value = node.meta["val"]
    given = region.made[arguments(node)[0]] if isinstance(arguments(node)[0], fx.Node) else arguments(node)[0]
    if isinstance(given, fx.Node):
        return given
    if kind_of(given) is not None:
        return region.emit(torch.full, (), given, dtype=value.dtype, device=value.device, value=value)
    return _scalar(region, node)  # type: ignore[return-value]  # given is a Number: there is a tensor


def _filled(region: Lowered, node: fx.Node) -> fx.Node | None:
    """``torch.full(size, n)``, ``full_like(x, n)``, ``x.new_full(size, n)``."""
    value = node.meta["val"]
    positions = {"full": 1, "full_like": 1, "new_full": 2}
    at = positions[name_of(node)]
    fill = arguments(node)[at] if len(arguments(node)) > at else node.kwargs.get("fill_value")
    number = region.made.get(fill) if isinstance(fill, fx.Node) else None
    if number is None or isinstance(number, fx.Node):
        return None
    zero = fx.map_arg(arguments(node), lambda n: 0 if n is fill else region.symbol_of(n))
    kwargs: dict[str, Any] = {k: 0 if a is fill else fx.map_arg(a, region.symbol_of) for k, a in node.kwargs.items()}
    kwargs["dtype"] = value.dtype
    empty = region.emit(node.target, *zero, value=value, **kwargs)
    return region.emit("fill_", empty, number.tensor, value=value)


def _clamped(region: Lowered, node: fx.Node) -> fx.Node | None:
    """``clamp(x, low, high)``: bounds are all numbers or all tensors."""
    low = arguments(node)[1] if len(arguments(node)) > 1 else node.kwargs.get("min")
    high = arguments(node)[2] if len(arguments(node)) > 2 else node.kwargs.get("max")
    source = value_of(arguments(node)[0] if arguments(node) else node.kwargs["input"])
    name = name_of(node)
    if name.endswith("_"):
        return None
    value = node.meta["val"]
    bounds = [_bound(region, bound, source, value.dtype) for bound in (low, high)]
    tensor = region.made[arguments(node)[0]]
    return region.emit(torch.clamp, tensor, *bounds, value=value)


def _bound(region: Lowered, bound: Any, source: Any, dtype: torch.dtype) -> Any:
    if bound is None:
        return None
    made = region.made[bound] if isinstance(bound, fx.Node) else bound
    if isinstance(made, fx.Node):
        return made
    like = region.fakes.tensor((), dtype)
    if kind_of(made) is not None:
        return region.emit(torch.full, (), made, dtype=dtype, value=like)
    return region.emit("to", made.tensor, dtype, value=like)


def _minimum(name: str) -> Any:
    def lower(region: Lowered, node: fx.Node) -> fx.Node | None:
        low = arguments(node)[1] if len(arguments(node)) > 1 else next(iter(node.kwargs.values()))
        source = value_of(arguments(node)[0])
        bound = _bound(region, low, source, node.meta["val"].dtype)
        return region.emit(torch.clamp, region.made[arguments(node)[0]], value=node.meta["val"], **{name: bound})

    return lower


FROM_NUMBER: dict[str, Any] = {
    "tensor": _scalar,
    "as_tensor": _scalar,
    "scalar_tensor": _scalar,
    "asarray": _scalar,
    "full": _filled,
    "full_like": _filled,
    "new_full": _filled,
    "clamp": _clamped,
    "clip": _clamped,
    "clamp_min": _minimum("min"),
    "clamp_max": _minimum("max"),
}


# ---- truth values that torch gives as Python's
def _equal(region: Lowered, args: list[Any], kwargs: dict[str, Any]) -> fx.Node:
    left, right = (value_of(a) for a in args[:2])
    if left.dim() != right.dim() or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(left.shape, right.shape)
    ):
        return region.emit(torch.full, (), False, dtype=torch.bool, kind=bool)
    same = region.emit(torch.eq, *args, value=torch.ones_like(left, dtype=torch.bool))
    return region.emit(torch.all, same, kind=bool)


def _close(region: Lowered, args: list[Any], kwargs: dict[str, Any]) -> fx.Node:
    close = region.emit(torch.isclose, *args, value=torch.ones_like(value_of(args[0]), dtype=torch.bool), **kwargs)
    return region.emit(torch.all, close, kind=bool)


def _contains(region: Lowered, args: list[Any], kwargs: dict[str, Any]) -> fx.Node:
    tensor, element = args
    if not isinstance(element, (fx.Node, int, float)):
        element = as_operand(region, element, [value_of(tensor)])
    same = region.emit(torch.eq, tensor, element, value=torch.ones_like(value_of(tensor), dtype=torch.bool))
    return region.emit(torch.any, same, kind=bool)


def _nonzero(region: Lowered, args: list[Any], kwargs: dict[str, Any]) -> fx.Node:
    value = value_of(args[0])
    flat = args[0] if value.dim() == 0 else region.emit("reshape", args[0], (), value=value.new_empty(()))
    return region.emit(torch.ne, flat, 0, kind=bool)


TRUTHS: dict[str, Any] = {
    "equal": _equal,
    "allclose": _close,
    "__contains__": _contains,
    "contains": _contains,
    "is_nonzero": _nonzero,
}
