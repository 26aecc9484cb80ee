"""Numbers that operations on float64 take as arguments: torch's translations make them single precision first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.passes.regions.values import value_of
from stillgraph.program.graphs import arguments, regions

aten = torch.ops.aten


def spell_out_numbers(module: fx.GraphModule) -> None:
    """Make multiplications and tensors of such numbers, of which the translations keep all digits.

    ::

        torch.add(x, y, alpha=0.1)     →     x + y * 0.1
        x.masked_fill(mask, 0.1)       →     x.masked_fill(mask, torch.full((), 0.1, dtype=torch.float64))

    Args:
        module: of an exported program, changed in place.
    """
    for region in regions(module):
        for node in list(region.graph.nodes):
            form = _FORMS.get(node.target) if node.op == "call_function" else None
            value = node.meta.get("val")
            if form is not None and isinstance(value, torch.Tensor) and value.dtype == torch.float64:
                with region.graph.inserting_before(node):
                    form(_Spelling(node))
        region.recompile()


@dataclass(frozen=True)
class _Spelling:
    """Makes nodes before ``node``."""

    node: fx.Node

    def op(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        made = self.node.graph.call_function(target, args, kwargs)
        with self.node.meta["val"].fake_mode:
            value = target(*fx.map_arg(args, value_of), **kwargs)
        made.meta.update({k: v for k, v in self.node.meta.items() if k != "val"}, val=value)
        return made

    def number(self, value: Any) -> Any:
        """A number as a tensor; anything else as it is."""
        if isinstance(value, fx.Node):
            return value
        return self.op(aten.full.default, [], value, dtype=torch.float64)

    def times(self, value: Any, factor: Any) -> Any:
        return value if factor == 1 else self.op(aten.mul.Tensor, value, self.number(factor))

    def take(self, *names: str) -> list[Any]:
        """Keyword arguments, which the node then has no more; 1 for one that is not there."""
        found = [self.node.kwargs.get(name, 1) for name in names]
        self.node.kwargs = {name: value for name, value in self.node.kwargs.items() if name not in names}
        return found

    def become(self, target: Any, *args: Any) -> None:
        self.node.target, self.node.args, self.node.kwargs = target, args, {}


def _scaled(it: _Spelling) -> None:
    """``add`` and ``sub`` with ``alpha``."""
    left, right = arguments(it.node)
    (alpha,) = it.take("alpha")
    if isinstance(right, fx.Node):
        it.node.args = (left, it.times(right, alpha))


def _reversed(it: _Spelling) -> None:
    """``rsub``."""
    left, right = arguments(it.node)[:2]
    (alpha,) = it.take("alpha")
    it.become(aten.sub.Tensor, it.number(right), it.times(left, alpha))


def _fused(combine: Any, add: Any) -> Callable[[_Spelling], None]:
    """``addcmul`` and ``addcdiv``."""

    def form(it: _Spelling) -> None:
        first, left, right = arguments(it.node)
        (value,) = it.take("value")
        it.become(add, first, it.times(it.op(combine, left, right), value))

    return form


def _product(it: _Spelling) -> None:
    """``addmm`` with factors; with 0 for the first, NaN in it does not count."""
    first, left, right = arguments(it.node)
    beta, alpha = it.take("beta", "alpha")
    product = it.times(it.op(aten.mm.default, left, right), alpha)
    if beta == 0:
        it.become(aten.clone.default, product)
    else:
        it.become(aten.add.Tensor, it.times(first, beta), product)


def _filled(target: Any) -> Callable[[_Spelling], None]:
    """``masked_fill`` and ``fill``."""

    def form(it: _Spelling) -> None:
        *given, value = arguments(it.node)
        it.become(target, *given, it.number(value))

    return form


def _like(it: _Spelling) -> None:
    """``full_like``."""
    like, value = arguments(it.node)
    doubles = like if value_of(like).dtype == torch.float64 else it.op(aten.to.dtype, like, torch.float64)
    it.become(aten.fill.Tensor, doubles, it.number(value))


def _new(it: _Spelling) -> None:
    """``new_full``."""
    _, size, value = arguments(it.node)
    filled = it.op(aten.expand.default, it.number(value), size)
    it.become(aten.clone.default, filled)


def _power(it: _Spelling) -> None:
    """A number to the power of a tensor."""
    base, exponent = arguments(it.node)
    it.become(aten.pow.Tensor_Tensor, it.number(base), exponent)


_FORMS: dict[Any, Callable[[_Spelling], None]] = {
    **dict.fromkeys((aten.add.Tensor, aten.sub.Tensor, aten.add_.Tensor, aten.sub_.Tensor), _scaled),
    **dict.fromkeys((aten.rsub.Tensor, aten.rsub.Scalar), _reversed),
    aten.addcmul.default: _fused(aten.mul.Tensor, aten.add.Tensor),
    aten.addcmul_.default: _fused(aten.mul.Tensor, aten.add_.Tensor),
    aten.addcdiv.default: _fused(aten.div.Tensor, aten.add.Tensor),
    aten.addcdiv_.default: _fused(aten.div.Tensor, aten.add_.Tensor),
    aten.addmm.default: _product,
    aten.masked_fill.Scalar: _filled(aten.masked_fill.Tensor),
    aten.masked_fill_.Scalar: _filled(aten.masked_fill_.Tensor),
    aten.fill.Scalar: _filled(aten.fill.Tensor),
    aten.fill_.Scalar: _filled(aten.fill_.Tensor),
    aten.full_like.default: _like,
    aten.new_full.default: _new,
    aten.pow.Scalar: _power,
}
