"""A call of a static function while transforms of `torch.func` are at work: ``grad``, ``vmap``, ``jvp`` and so on.

The program is looked for without them. Then it runs on the tensors of the transforms: as it stands where no ``vmap``
tells lanes apart, else by groups of the lanes of all of them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch.utils._pytree as pytree
from torch import Tensor, nn

from stillgraph.core.diagnostics import refusal
from stillgraph.runtime.batched.calling import Callee, Given, call_for_lanes
from stillgraph.runtime.batched.levels import (
    Level,
    differs_in,
    into,
    is_within,
    is_wrapped,
    out_of,
    vmap_levels,
    without_transforms,
)
from stillgraph.runtime.batched.values import Batch

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


def call_transformed(
    callee: Callee, args: Args, kwargs: Kwargs, run: Callable[[Any, Sequence[Any], Args, Kwargs], Any]
) -> Any:
    """Call a static function under the transforms that are at work.

    Args:
        callee: it.
        args, kwargs: of the call.
        run: runs a program that was found, on inputs with tensors of the transforms.

    Returns:
        Its result, of tensors of the transforms.
    """
    state = _State((args, kwargs))
    given = (args, kwargs, state.values)
    levels = [each for each in vmap_levels() if _differ(given, each)]
    if not levels:
        held = Given((state.values, *args), kwargs, is_wrapped)
        with without_transforms():
            (values, *first), named = held.first()
            with state.holding(values):
                call, inputs = callee.captured(tuple(first), named)
        return run(call, [held.real(each) for each in inputs], args, kwargs)

    def batched(leaf: Any) -> Any:
        return Batch(out_of(leaf, levels)) if isinstance(leaf, Tensor) and is_within(leaf, levels[0]) else leaf

    lanes = math.prod(each.lanes for each in levels)
    with_lanes, named, values = pytree.tree_map(batched, given)

    def captured(args: Args, kwargs: Kwargs) -> Any:
        with state.holding(args[0]):
            call, inputs = callee.captured(args[1:], kwargs)
        if any(map(is_wrapped, inputs)):
            message = f"{callee.name} uses a tensor of a transform of torch.func that is none of its arguments"
            raise refusal("SG305", message, hint="Pass the tensor as an argument.")
        return call, inputs

    def alone(values: Any, *args: Any, **kwargs: Any) -> Any:
        with state.holding(values):
            return callee.alone(*args, **kwargs)

    hidden = Callee(callee.name, captured, alone)
    result = call_for_lanes(hidden, Given((values, *with_lanes), named, is_wrapped), lanes, "error")
    return pytree.tree_map(lambda leaf: into(leaf, levels) if isinstance(leaf, Tensor) else leaf, result)


def _differ(given: Any, level: Level) -> bool:
    return any(isinstance(leaf, Tensor) and differs_in(leaf, [level]) for leaf in pytree.tree_leaves(given))


class _State:
    """The tensors of transforms that stand in modules, where `torch.func.functional_call` puts them."""

    def __init__(self, given: Any) -> None:
        self._places: list[tuple[dict[str, Any], str]] = []
        for module in pytree.tree_leaves(given):
            if isinstance(module, nn.Module):
                for each in module.modules():
                    for table in (each._parameters, each._buffers):
                        self._places += [(table, name) for name, value in table.items() if is_wrapped(value)]
        self.values = [table[name] for table, name in self._places]

    @contextlib.contextmanager
    def holding(self, values: Sequence[Any]) -> Iterator[None]:
        """A block in which other tensors stand there."""
        try:
            for (table, name), value in zip(self._places, values, strict=True):
                table[name] = value
            yield
        finally:
            for (table, name), value in zip(self._places, self.values, strict=True):
                table[name] = value
