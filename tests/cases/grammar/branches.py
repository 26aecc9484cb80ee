"""Branches on tensors and on constants: `if`, `elif`, ternary, what each arm leaves behind."""

from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

from tests.cases.case import case
from tests.cases.tensors import f, i32, i64, normal, ones

randn = normal(seed=0)


def A01_if_tensor(x):
    if torch.mean(x) > 5.0:
        out = x - 1
    else:
        out = x + 1
    return out


case(A01_if_tensor, [(f([1, 2]),), (f([10, 20]),), (f([5, 5]),)])


def A02_if_python(x, label: Optional[torch.Tensor] = None):
    out = x + 1
    if label is not None:
        out = F.cross_entropy(out, label)
    return out


case(A02_if_python, [(randn(2, 3),), (randn(2, 3), i64([0, 2]))])


def A03_elif(x):
    s = x.sum()
    if s > 10:
        out = x * 2
    elif s > 0:
        out = x + 100
    else:
        out = -x
    return out


case(A03_elif, [(f([1, 2]),), (f([10, 20]),), (f([-1, -2]),)])


def A04_if_shape_only(x):
    if x.shape[0] > 2:
        out = x * 2
    else:
        out = x * 3
    return out


case(A04_if_shape_only, [(ones(2, 3),), (ones(4, 3),)], shapes_vary=True)


def A34_assert(x):
    assert x.sum() > 0, "sum must be positive"
    return x + 1


case(A34_assert, [(f([1, 2]),), (f([-1, -2]),)])


def A36_dict_in_if(x):
    d = {"a": x}
    if x.sum() > 0:
        d["a"] = x * 2
        d["b"] = x
    else:
        d["a"] = x * 3
        d["b"] = -x
    return d["a"] + d["b"]


case(A36_dict_in_if, [(f([1, 2]),), (f([-1, -2]),)])


def A43_try_except(x):
    try:
        y = x + 1
        if x.sum() > 0:
            raise ValueError("pos")
    except ValueError:
        y = x - 1
    return y


case(A43_try_except, [(f([1, 2]),), (f([-1, -2]),)])


def A45_ternary(x):
    y = x * 2 if x.sum() > 0 else x * 3
    return y


case(A45_ternary, [(f([1, 2]),), (f([-1, -2]),)])


def A47_undef_both_guarded(x):
    if x.sum() > 0:
        y = x + 1
    if x.sum() > 0:
        x = y * 2
    return x


case(A47_undef_both_guarded, [(f([1, 2]),), (f([-1, -2]),)])


def A49_setitem_in_if(x):
    y = x + 0
    if x.sum() > 0:
        y[0] = x[1] * 10
    return y


case(A49_setitem_in_if, [(f([1, 2]),), (f([-1, -2]),)])


class M01_SingleIfNet(nn.Module):
    def forward(self, x, y, z):
        if x < y:
            out = x
        else:
            out = z
        out = out + 1
        return out


case(
    M01_SingleIfNet, [(i32(0), i32(1), i32([1, 2])), (i32(3), i32(1), i32([1, 2]))], export_refused="Shape Join Failed"
)


class M02_const_if(nn.Module):
    def forward(self, z):
        x = 0
        y = 1
        if x < y + 1:
            out = x
        else:
            out = z
        out = out + 1
        return out


case(M02_const_if, [(i32([0, 1]),), (i32([3, 1]),)])
