"""Module state: attributes, buffers, tied parameters, train and eval mode."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.case import case
from tests.cases.tensors import f, i64


class A53_buffer_in_forward(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = [0.0, 1.0, 1.0]

    def forward(self, x):
        mask = torch.tensor(self.mask)
        return x * mask


case(A53_buffer_in_forward, [(f([1, 2, 3]),), (f([4, 5, 6]),)])


class S08_store_attr(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0
        self.last = None

    def forward(self, x):
        self.step = self.step + 1
        self.last = x * 2
        return x + self.step


case(S08_store_attr, [(f([1, 2]),), (f([3, 4]),), (f([3, 4]),)], attrs=("step", "last"))


class S08b_store_attr_in_if(nn.Module):
    def __init__(self):
        super().__init__()
        self.flag_val = 0

    def forward(self, x):
        if x.sum() > 0:
            self.flag_val = 1
        else:
            self.flag_val = 2
        return x + self.flag_val


case(S08b_store_attr_in_if, [(f([1, 2]),), (f([-3, -4]),), (f([3, 4]),)], attrs=("flag_val",))


class S12_tied_weight(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 4)

    def forward(self, ids):
        h = self.emb(ids)
        return F.linear(h, self.emb.weight)


case(S12_tied_weight, [(i64([1, 2]),), (i64([3, 4]),)])


class S15_training_flag(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 3

    def forward(self, x):
        if self.training:
            return x * self.k
        return x


case(S15_training_flag, [(f([1, 2]),), (f([3, 4]),)], toggle_train=True)
