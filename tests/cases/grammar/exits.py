"""Leaving early: `break`, `continue`, `return` anywhere, `else` of a loop."""

import torch

from tests.cases.case import case
from tests.cases.tensors import f


def A11_break_usage(x):
    tensor_idx = -1
    for idx, val in enumerate(x):
        if val == 2.0:
            tensor_idx = idx
            break
    return tensor_idx


case(A11_break_usage, [(f([1, 2, 3]),), (f([2, 1, 3]),), (f([1, 1, 1]),)])


def A11d_break_usage_dynshape(x):
    tensor_idx = -1
    for idx, val in enumerate(x):
        if val == 2.0:
            tensor_idx = idx
            break
    return tensor_idx


case(A11d_break_usage_dynshape, [(f([1, 2, 3]),), (f([2, 1, 3]),), (f([1, 1, 1]),)], input_dims=[[None]])


def A12_continue_for(x):
    s = x[0] * 0
    for v in x:
        if v < 0:
            continue
        s = s + v
    return s


case(A12_continue_for, [(f([1, -2, 3]),), (f([-2, 1, 3]),)])


def A13_while_true_break(x):
    while True:
        x = x * 2
        if x.sum() > 50:
            break
    return x


case(A13_while_true_break, [(f([1, 2, 3]),), (f([30, 1, 3]),)])


def A14_return_in_loop(x):
    for i in range(5):
        x = x + 1
        if x.sum() > 10:
            return x * 100
    return x


case(A14_return_in_loop, [(f([1, 2]),), (f([-20, -20]),), (f([9, 9]),)])


def A14b_return_in_tensor_while(x):
    while x.sum() < 100:
        x = x * 2
        if x[0] > 20:
            return x - 1
    return x + 1


case(A14b_return_in_tensor_while, [(f([1, 2]),), (f([15, 60]),), (f([60, 60]),)])


def A15_return_diff_len(x):
    if x.sum() > 0:
        return x, x + 1
    return x


case(A15_return_diff_len, [(f([1, 2]),), (f([-1, -2]),)], export_refused="outputs differ in structure")


def A15b_return_diff_dtype(x):
    if x.sum() > 0:
        return x.to(torch.int32)
    return x


case(A15b_return_diff_dtype, [(f([1, 2]),), (f([-1, -2]),)], export_refused="outputs differ in dtype")


def A16_early_return(x):
    if x.sum() > 0:
        return x + 1
    y = x * 2
    return y


case(A16_early_return, [(f([1, 2]),), (f([-1, -2]),)])


def A48_for_else(x):
    for v in x:
        if v > 5:
            r = x + 1
            break
    else:
        r = x - 1
    return r


case(A48_for_else, [(f([1, 2, 3]),), (f([1, 9, 3]),)])
