"""Lists, dicts, tuples, named tuples and dataclasses."""

import collections
from dataclasses import dataclass

import torch
from torch import nn

from tests.cases.case import case
from tests.cases.tensors import f, i32, i64


def A29_list_example(x, y):
    a = [x]
    a.append(x)
    a[1] = y
    return a[0] + a[1] * 2


case(A29_list_example, [(f([2.0]), f([5.0])), (f([3.0]), f([7.0]))])


def A30_list_append_while(x):
    a = []
    while x.sum() < 100:
        x = x * 2
        a.append(x)
    return torch.stack(a)


case(A30_list_append_while, [(f([1, 2, 3]),), (f([30, 20, 10]),)])


def A30b_list_append_return(x, n):
    a = []
    for i in range(n):
        a.append(x + i)
    return a


case(A30b_list_append_return, [(f([1, 2, 3]), i64(3)), (f([30, 20, 10]), i64(5))], rows=True)


def A31_list_pop_in_if(x, y):
    a = [x, y]
    if x.sum() > 0:
        a.pop()
    return a[-1]


case(A31_list_pop_in_if, [(f([1, 2]), f([3, 4])), (f([-1, 2]), f([3, 4])), (f([-1, -2]), f([3, 4]))])


def A31b_list_pop_index(x, y):
    a = [x, y]
    b = a.pop()
    return b - a[0]


case(A31b_list_pop_index, [(f([1, 2]), f([3, 4])), (f([-1, 2]), f([3, 4]))])


def A32_nested_list(x, y):
    l = [[x, y], [y, x * 2]]
    return l[0][1] + l[1][1]


case(A32_nested_list, [(f([1, 2]), f([3, 4])), (f([-1, 2]), f([3, 4]))])


def A32b_nested_list_loop(x, n):
    l = [[x], [x]]
    for i in range(n):
        l[0].append(x + i)
    return l[0][-1] + l[1][0]


case(A32b_nested_list_loop, [(f([1, 2]), i64(2)), (f([-1, 2]), i64(4))])


def A33_list_sort(x, y):
    a = [x, y]
    a.sort()
    return a[0], a[1]


case(A33_list_sort, [(f(3.0), f(1.0)), (f(1.0), f(3.0))])


def A33b_sorted(x, y):
    a = sorted([x, y])
    return a[0], a[1]


case(A33b_sorted, [(f(3.0), f(1.0)), (f(1.0), f(3.0))])


def A35_dict(x, y):
    d = {"x": x}
    d["y"] = y
    d["z"] = d["x"] + d["y"]
    return d


case(A35_dict, [(f([1, 2]), f([3, 4])), (f([-1, 2]), f([3, 4]))])


class M02c_len_of_list(nn.Module):
    def forward(self, x, y):
        my_list = [x, y]
        if len(my_list) < 10:
            out = x + y
        else:
            out = x - y
        return out


case(M02c_len_of_list, [(i32(0), i32(1)), (i32(5), i32(1))])


_Pair = collections.namedtuple("_Pair", ["a", "b"])


def S16_namedtuple(x):
    return _Pair(x + 1, x * 2)


case(S16_namedtuple, [(f([1, 2]),), (f([3, 4]),)])


@dataclass
class _DC:
    a: object
    b: int


def S17_dataclass(x):
    d = _DC(x * 2, 3)
    return d.a + d.b


case(S17_dataclass, [(f([1, 2]),), (f([3, 4]),)])
