"""Whether tensors share memory: what is compiled for tensors apart is wrong for others, once something is written."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from stillgraph.passes.regions.values import storage_of

_PLAIN = (torch.Tensor, torch.nn.Parameter)  # other subclasses need not have memory of their own


def overlap(values: Sequence[Any], *, gradients: bool = False) -> bool:
    """Whether a write to one of the tensors among some values may be noticed by another.

    Judged by the stretch of memory from a tensor's first element to its last: the even and the odd columns of a matrix
    count as overlapping.

    Args:
        values: tensors, and what is none.
        gradients: whether autograd is on. Views of one tensor count their versions together, so what it saved of one
            is spoilt by a write to any other.
    """
    tensors = [value for value in values if type(value) in _PLAIN]
    storages = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    if len({*storages}) == len(storages):
        return False
    filled = [(tensor, storage) for tensor, storage in zip(tensors, storages, strict=True) if tensor.numel()]
    if gradients:
        return len({storage for _, storage in filled}) < len(filled)
    stretches = sorted(_stretch(tensor) for tensor, _ in filled)
    return any(start < end for (_, end), (start, _) in itertools.pairwise(stretches))


def _stretch(tensor: torch.Tensor) -> tuple[int, int]:
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (steps + 1) * tensor.element_size()


def own_memory(run: Callable[..., Sequence[Any]], graph_module: fx.GraphModule) -> Callable[..., Sequence[Any]]:
    """A compiled graph whose results share no memory with its inputs where the graph's own results do not.

    Inductor takes a product with ones, or a sum with zeros, for the other operand itself. What is compiled gives the
    same results of its inputs in every call, so the first call tells.

    Args:
        run: the compiled graph.
        graph_module: the graph, whose nodes tell what shares memory.
    """
    inputs = {storage_of(node.meta.get("val")) for node in graph_module.graph.find_nodes(op="placeholder")}
    results: Any = graph_module.graph.output_node().args[0]
    results = results if isinstance(results, (tuple, list)) else (results,)
    values = [each.meta.get("val") if isinstance(each, fx.Node) else None for each in results]
    own = [index for index, each in enumerate(values) if storage_of(each) not in (None, *inputs)]
    if not own:
        return run
    shared: list[int] | None = None

    def call(*given: Any) -> Sequence[Any]:
        nonlocal shared
        found = run(*given)
        if shared is None:
            taken = {storage_of(each) for each in given}
            shared = [index for index in own if storage_of(found[index]) in taken - {None}]
        if not shared:
            return found
        together: dict[Any, list[int]] = {}  # by the memory that results share in the graph
        for index in shared:
            together.setdefault(storage_of(values[index]), []).append(index)
        made = [*found]
        for group in together.values():
            for index, copied in zip(group, _copied([found[index] for index in group]), strict=True):
                made[index] = copied
        return made

    return call


def _copied(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of tensors of one memory, of one memory themselves."""
    if len(tensors) == 1:
        return [tensors[0].clone()]
    first = tensors[0]
    whole = first.as_strided((first.untyped_storage().nbytes() // first.element_size(),), (1,), 0).clone()
    return [whole.view(t.dtype).as_strided(t.size(), t.stride(), t.storage_offset()) for t in tensors]
