"""Attention over sequences of which only the run knows the length, in forms that torch's shape inference takes.

Where the shapes of a graph are inferred once, an operator of our own tells them. Afterwards torch's is put back, with
its choice of a kernel in the run, or for ONNX what attention is made of. Where shapes are inferred anew, attention is
written out in other operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

from stillgraph.passes.regions.regions import all_regions, copied
from stillgraph.passes.regions.values import value_of
from stillgraph.program.attention import (
    ATTENTION,
    FOR_INDUCTOR,
    FOR_ONNX,
    IN_PARTS,
    MULTI_HEAD,
    contiguous_in_parts,
    drops,
    inverse,
    is_open,
    laid_out,
    multi_head_with,
    order_of,
)
from stillgraph.program.program import Program


@torch.library.custom_op("stillgraph::attention", mutates_args=())
def _operator(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    order: list[int],
) -> Tensor:
    made = ATTENTION(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
    return laid_out(made, order).clone()


@_operator.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *given: Any) -> Tensor:
    *_, order = given
    leading = map(_common, zip(*(each.shape[:-2] for each in (query, key, value)), strict=True))
    sizes = [*leading, query.shape[-2], value.shape[-1]]
    return query.new_empty([sizes[dim] for dim in order]).permute(inverse(order))


def _common(sizes: tuple[Any, ...]) -> Any:
    """The size of a dimension of what is made of several tensors: those of size 1 are stretched."""
    known = [size for size in sizes if isinstance(size, int)]
    if any(size != 1 for size in known):
        return max(known)
    unknown = [size for size in sizes if not isinstance(size, int)]
    if any(size.node.expr != unknown[0].node.expr for size in unknown):
        return torch.library.get_ctx().new_dynamic_size()
    return (*unknown, 1)[0]


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """`torch.nn.functional.scaled_dot_product_attention` as our operator where a size is unknown, without dropout."""
    if query.dim() != 4 or not is_open(query, key, value, attn_mask):
        return ATTENTION(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
    order = order_of(query, key, value, attn_mask, is_causal, scale=scale, enable_gqa=enable_gqa)
    return torch.ops.stillgraph.attention(query, key, value, attn_mask, is_causal, scale, enable_gqa, order)


_MULTI_HEAD = multi_head_with(attention)


def multi_head_attention(*args: Any, **kwargs: Any) -> Any:
    """``multi_head_attention_forward`` with `attention`."""
    return _MULTI_HEAD(*args, **kwargs)


_HIDDEN: dict[Any, Callable[..., Any]] = {ATTENTION: attention, MULTI_HEAD: multi_head_attention}


def hide_attention(program: Program) -> Program:
    """Put our operator in the place of attention over unknown lengths.

    ::

        F.scaled_dot_product_attention(q, k, v)     →     stillgraph.attention(q, k, v, …)
    """
    return _replaced(program, _HIDDEN, _is_open)


OPERATOR = torch.ops.stillgraph.attention.default


def in_parts_of_operator(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, *given: Any
) -> Tensor:
    """What our operator gives, by products and a softmax; its result is contiguous."""
    scale, enable_gqa, _ = given
    return contiguous_in_parts(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)


def write_out_attention(program: Program) -> Program:
    """Write the attention of a lowered program that is not hidden out in products and a softmax.

    Of a query that may look at nothing `torch.onnx` makes the mean of the values; it is to be zeros.
    """
    return _replaced(program, FOR_ONNX, lambda node: True)


def write_out_open_attention(program: Program) -> Program:
    """Write attention over unknown lengths out for Inductor."""
    return _replaced(program, FOR_INDUCTOR, _is_open)


def show_attention(module: fx.GraphModule) -> None:
    """Put torch's operator back, once torch's shape inference is done with a graph.

    Its result is given the layout that was inferred: the kernel of the run may leave another.

    Args:
        module: of an exported program, changed in place.
    """
    for region in all_regions(module):
        for node in region.graph.find_nodes(op="call_function", target=OPERATOR):
            _show(region.graph, node)
        region.recompile()


def _show(graph: fx.Graph, node: fx.Node) -> None:
    aten, value = torch.ops.aten, value_of(node)
    whole: Any = node.args
    *given, is_causal, scale, enable_gqa, order = whole
    with graph.inserting_before(node):
        options = {"scale": scale, "enable_gqa": enable_gqa}
        made = graph.call_function(aten.scaled_dot_product_attention.default, (*given, 0.0, is_causal), options)
        made.meta.update(node.meta)
        if list(order) == sorted(order):
            node.target, node.args = aten.contiguous.default, (made,)
            return
        made = graph.call_function(aten.permute.default, (made, list(order)))
        made.meta.update(node.meta, val=value.permute(*order))
        made = graph.call_function(aten.contiguous.default, (made,))
        made.meta.update(node.meta, val=value.permute(*order))
    node.target, node.args = aten.permute.default, (made, inverse(order))


def open_attention(program: Program) -> fx.Node | None:
    """The first operation of a program that is attention over unknown lengths."""
    nodes = (node for module in all_regions(program.graph) for node in module.graph.nodes)
    return next((node for node in nodes if node.target in IN_PARTS and _is_open(node)), None)


def _replaced(program: Program, table: dict[Any, Any], wanted: Callable[[fx.Node], bool]) -> Program:
    fresh = copied(program)
    for region in all_regions(fresh.graph):
        for node in region.graph.nodes:
            if node.target in table and wanted(node) and not drops(node.target, node.args, node.kwargs):
                node.target = table[node.target]
        region.recompile()
    return fresh


def _is_open(node: fx.Node) -> bool:
    return is_open(*map(value_of, node.all_input_nodes))
