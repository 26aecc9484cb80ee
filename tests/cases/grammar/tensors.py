"""What model code asks of a tensor or a module by attribute and index."""

from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.case import case
from tests.cases.tensors import f, i64, normal

randn = normal(seed=10)


def S01_dtype_compare(x, attn_mask: Optional[torch.Tensor] = None):
    if attn_mask is not None and attn_mask.dtype != x.dtype:
        attn_mask = (attn_mask.to(x.dtype) - 1.0) * 1e9
    if attn_mask is not None:
        x = x + attn_mask
    return x


case(S01_dtype_compare, [(f([1, 2]),), (f([1, 2]), i64([0, 1])), (f([1, 2]), f([0, 1]))])


class S03_getattr(nn.Module):
    def __init__(self):
        super().__init__()
        self.act_name = "relu"
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        act = getattr(F, self.act_name)
        lin = getattr(self, "linear")
        return act(lin(x)) + getattr(x, "mean")()


case(S03_getattr, [(randn(2, 4),), (randn(2, 4),)])


def S04_T(x):
    return x.T.matmul(x)


case(S04_T, [(randn(2, 4),), (randn(2, 4),)])


def S05_getitem(x):
    return x[:, 0] + x[:, -1]


case(S05_getitem, [(randn(2, 4),), (randn(2, 4),)])


class S06_gather_head(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform = nn.Linear(8, 8)
        self.layer_norm = nn.LayerNorm(8)

    def forward(self, hidden_states, masked_positions):
        hidden_states = hidden_states.reshape([-1, hidden_states.shape[-1]])
        hidden_states = torch.index_select(hidden_states, 0, masked_positions)
        h = self.layer_norm(F.gelu(self.transform(hidden_states)))
        return h


case(S06_gather_head, [(randn(2, 3, 8), i64([0, 2, 5])), (randn(2, 3, 8), i64([1, 3, 4]))])
