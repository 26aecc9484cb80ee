"""Operators, Python's numbers from tensors, printing, and numpy."""

import numpy as np
import torch

from tests.cases.case import case
from tests.cases.tensors import f


def A17_operators(x, y):
    return x + y, x - y, x * y, x / y, x**2, x > y, x < y, x >= y, x <= y, x == y


case(A17_operators, [(f([1, 2]), f([3, 2])), (f([5, 2]), f([3, 7]))])


def A21_float(x):
    z = float(x)
    return z


case(A21_float, [(f(1.5),), (f(2.5),)])


def A21b_int_arith(x, y):
    k = int(x)
    return y * k


case(A21b_int_arith, [(f(2.7), f([1, 2])), (f(5.2), f([1, 2]))])


def A24_print(x):
    print(x)
    return x + 1


case(A24_print, [(f([1, 2]),), (f([7, 8]),)])


def A37_numpy_tensor(x):
    s = float(np.sum(x.detach().numpy()))
    return x + s


case(A37_numpy_tensor, [(f([1, 2]),), (f([-1, -2]),)])


def A37b_numpy_const(x):
    m = np.arange(3).astype("float32")
    return x + torch.from_numpy(m)


case(A37b_numpy_const, [(f([1, 2, 3]),), (f([-1, -2, 3]),)])


def S18_int_arg(x, k: int):
    return x * k


case(S18_int_arg, [(f([1, 2]), 2), (f([3, 4]), 3)])
