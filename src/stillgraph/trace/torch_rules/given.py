"""What a torch call is given."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

_PLAIN = frozenset(
    id(kind)
    for kind in (torch.Tensor, torch.nn.Parameter, FakeTensor, bool, int, float, str, type(None), torch.dtype)
)
"""By id, for a class may be of a metaclass that says what it is equal to: classes that hold nothing else."""


def leaves_given(args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """As torch's `tree_leaves`, which asks of each what it may be: most calls have tensors and numbers alone."""
    if not kwargs and all(id(type(each)) in _PLAIN for each in args):
        return [*args]
    return tree_leaves((args, kwargs))
