"""Operations that make tensors of a list of tensors whose sizes differ. Each runs as it stands."""

from __future__ import annotations

import torch


def values_of(
    items: list[torch.Tensor], lead: int, tail: tuple[int, ...], *, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """All elements of a list one behind another, the first ``lead`` dimensions of each as one.

    Args:
        items: the list.
        lead: at least 1.
        tail: the sizes behind the first ``lead``, which all elements have; with ``dtype`` and ``device`` they say what
            a list without elements gives.
    """
    blank = torch.zeros((0, *tail), dtype=dtype, device=device)
    return torch.cat([blank, *(item.flatten(0, lead - 1) for item in items)])


def sizes_of(items: list[torch.Tensor], lead: int) -> torch.Tensor:
    """The first ``lead`` sizes of each element of a list: an ``int64`` tensor with a row for each."""
    return torch.tensor([item.shape[:lead] for item in items], dtype=torch.int64).reshape(-1, lead)
