"""What torch refuses on one path, whatever the open sizes are, is raised by the program on that path."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

INPUTS = [(torch.tensor(each),) for each in ([1.0, 2.0, -1.0], [-1.0, -2.0, 1.0], [3.0, 3.0, 3.0])]


def masked_by_numbers(x: Tensor) -> Any:
    q = x[x > 0][None, :, None] * torch.arange(4.0)
    mask = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool)
    if x.sum() < 0:
        mask = mask.long()
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)


def of_another_type(x: Tensor) -> Any:
    kept = x[x > 0]
    if x.sum() < 0:
        return kept.long() @ torch.ones(kept.shape[0])
    return kept.sum()


def caught(x: Tensor) -> Any:
    kept = x[x > 0]
    try:
        if x.sum() < 0:
            return kept.long() @ torch.ones(kept.shape[0])
    except RuntimeError:
        return kept.sum() - 1
    return kept.sum()


@pytest.mark.parametrize("function", [masked_by_numbers, of_another_type, caught], ids=lambda each: each.__name__)
def test_the_program_raises_on_that_path(function: Any) -> None:
    agree(function, *INPUTS)


def of_sizes(x: Tensor) -> Any:
    kept = x[x > 0]
    if x.sum() < 0:
        return torch.ones(2, 3) @ torch.ones(4, kept.shape[0])
    return kept


def test_what_depends_on_sizes_is_refused() -> None:
    """Whether eager PyTorch raises for them, nobody can tell."""
    with pytest.warns(RuntimeWarning, match="matmul takes these sizes or not"):
        found = sg.to_static(of_sizes, backend="eager")(*INPUTS[0])
    assert torch.equal(found, of_sizes(*INPUTS[0]))
    with pytest.raises(sg.CaptureError, match="matmul takes these sizes or not"):
        sg.export(of_sizes, INPUTS[0])
