"""`and`, `or`, `not`, chained comparisons, `in`, `is`, and the truth of objects."""

from torch import nn

from tests.cases.case import case
from tests.cases.tensors import f, i32, i64, normal

randn = normal(seed=3)


def A18_and_or_not_pred(x, y):
    if x.sum() > 0 and not (y.sum() > 0) or y.sum() > 100:
        return x + y
    else:
        return x - y


case(A18_and_or_not_pred, [(f([1, 2]), f([-3, 2])), (f([1, 2]), f([3, 2])), (f([-1, -2]), f([300, 2]))])


def A18b_and_value(x, y):
    z = y and x
    return z


case(A18b_and_value, [(f(2.0), f(3.0)), (f(2.0), f(0.0)), (f(0.0), f(3.0))])


def A19_and_mixed(x, flag: bool):
    if flag and x.sum() > 0:
        return x + 1
    else:
        return x - 1


case(A19_and_mixed, [(f([1, 2]), True), (f([-1, -2]), True), (f([1, 2]), False)])


def A20_short_circuit(x, i):
    n = x.shape[0]
    if i < n and x[i] > 0:
        out = x + 1
    else:
        out = x - 1
    return out


case(A20_short_circuit, [(f([1, -2, 3]), i64(0)), (f([1, -2, 3]), i64(1)), (f([1, -2, 3]), i64(5))])


def A46_chained_compare(x):
    if 0 < x.sum() < 10:
        y = x + 1
    else:
        y = x - 1
    return y


case(A46_chained_compare, [(f([1, 2]),), (f([-1, -2]),), (f([10, 2]),)])


class M02b_tensor_in_list(nn.Module):
    def forward(self, x, a, b):
        if x in [a, b]:
            out = x + 1
        else:
            out = x - 1
        return out


case(M02b_tensor_in_list, [(i32(0), i32(1), i32(0)), (i32(5), i32(1), i32(0))])


def S02_is_compare(x, y):
    if x is y:
        return x + 1
    if y is not None:
        return x + y
    return x


case(S02_is_compare, [(f([1, 2]), f([3, 4])), (f([5, 2]), f([3, 4])), (f([5, 2]), None)])


class _Cfg:
    def __init__(self):
        self.items = [1, 2]


class _CfgLen:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


class S11_predicate_object(nn.Module):
    def __init__(self):
        super().__init__()
        self.cfg = _Cfg()

    def forward(self, x):
        if self.cfg:
            x = x + 1
        return x


case(S11_predicate_object, [(f([1, 2]),), (f([3, 4]),)])


class S11b_predicate_len_object(nn.Module):
    def __init__(self):
        super().__init__()
        self.cfg = _CfgLen(0)

    def forward(self, x):
        if self.cfg:
            x = x + 1
        else:
            x = x - 1
        return x


case(S11b_predicate_len_object, [(f([1, 2]),), (f([3, 4]),)])


class S11c_predicate_layerlist(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x):
        if self.blocks:
            for b in self.blocks:
                x = b(x)
        return x


case(S11c_predicate_layerlist, [(randn(2, 4),), (randn(2, 4),)])
