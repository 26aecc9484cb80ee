"""How often a tensor has been written, as autograd counts it."""

from __future__ import annotations

from typing import Any

import torch


def writes_to(value: Any) -> int | None:
    """The count of a tensor, which each write to it or to a view of it makes larger; None of anything else.

    Tensors of inference mode have none.
    """
    if not isinstance(value, torch.Tensor):
        return None
    with torch._C.DisableTorchFunction():
        return None if value.is_inference() else value._version
