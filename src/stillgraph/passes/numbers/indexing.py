"""Indexing with numbers that only the run knows, without making sizes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

_ALL = slice(None)


@dataclass(frozen=True)
class Split:
    """An index in two steps: first ``basic``, then numbers at ``places`` of what that gives.

    ``basic`` is constants and slices; these may have numbers for bounds.
    """

    basic: tuple[Any, ...]
    places: tuple[tuple[int, fx.Node], ...]

    @property
    def indices(self) -> list[fx.Node | None]:
        """The second step as ``aten.index`` takes it."""
        last = self.places[-1][0]
        at = dict(self.places)
        return [at.get(dim) for dim in range(last + 1)]

    @property
    def is_trivial(self) -> bool:
        """Whether the first step is the identity."""
        return all(part == _ALL for part in self.basic)


def split_index(index: Any, dims: int, number: Any) -> Split | None:
    """Take an index apart.

    Args:
        index: as the node has it.
        dims: of the tensor.
        number: gives the 0-d tensor of a node that selects, or None for any other.

    Returns:
        None where the index also has tensors: the combination means something else.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    used = sum(1 for part in parts if part is not None and part is not ...)
    if any(part is ... for part in parts):
        at = next(i for i, part in enumerate(parts) if part is ...)
        parts[at : at + 1] = [_ALL] * (dims - used)
    basic: list[Any] = []
    places = []
    dim = 0
    for part in parts:
        if isinstance(part, fx.Node):
            tensor = number(part)
            if tensor is None:
                return None
            places.append((dim, tensor))
            basic.append(_ALL)
            dim += 1
        elif isinstance(part, slice):
            basic.append(part)
            dim += 1
        elif part is None:
            basic.append(None)
            dim += 1
        elif isinstance(part, int) and not isinstance(part, bool):
            basic.append(part)
        else:
            return None
    return Split(tuple(basic), tuple(places)) if places else None


GET = torch.ops.aten.index.Tensor
PUT = torch.ops.aten.index_put_.default
