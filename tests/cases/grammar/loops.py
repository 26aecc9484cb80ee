"""Loops: `while` and `for` over tensors, ranges and Python's own sequences."""

from torch import nn

from tests.cases.case import case
from tests.cases.tensors import f, i32, i64, ones

I0 = i32(0)  # the same tensor for two arguments of one call: an alias that nothing depends on


def A05_while_tensor(x):
    while x.sum() < 100:
        x = x * 2
    return x


case(A05_while_tensor, [(f([1, 2, 3]),), (f([60, 50, 1]),), (f([0.5, 0.5, 0.5]),)])


def A06_while_python(x):
    a = 1
    while a < 10:
        x = x + 1
        a += 1
    return x


case(A06_while_python, [(f([1, 2]),), (f([3, 4]),)])


def A07_for_range_tensor(x, n):
    for i in range(n):
        x = x + i
    return x


case(A07_for_range_tensor, [(f([1, 2]), i64(3)), (f([1, 2]), i64(5)), (f([1, 2]), i64(0))])


def A07b_for_range_shape(x):
    bs = x.shape[0]
    for i in range(bs):
        x = x + 1
    return x


case(A07b_for_range_shape, [(ones(2, 3),), (ones(5, 3),)], shapes_vary=True)


def A08_for_in_tensor(x):
    s = x[0] * 0
    for i in x:
        print(i * i)
        s = s + i * i
    return s


case(A08_for_in_tensor, [(f([1, 2, 3]),), (f([4, 5, 6]),)])


def A09_for_enumerate(x):
    s = x[0] * 0
    for idx, val in enumerate(x):
        s = s + val * idx
    return s


case(A09_for_enumerate, [(f([1, 2, 3]),), (f([4, 5, 6]),)])


def A10_for_python_list(x, y):
    s = x * 0
    for v in [x, y, x]:
        s = s + v
    return s


case(A10_for_python_list, [(f([1, 2]), f([3, 4])), (f([5, 2]), f([3, 7]))])


def A41_nested_loops(x, n):
    s = x * 0
    i = n * 0
    while i < n:
        j = n * 0
        while j < n:
            j = j + 1
            if j == 2:
                continue
            if i + j > 4:
                break
            s = s + x * j
        i = i + 1
    return s


case(A41_nested_loops, [(f([1, 2]), i64(3)), (f([1, 2]), i64(4)), (f([1, 2]), i64(0))])


def A42_list_comp(x):
    rows = [r * 2 for r in x]
    return rows[0] + rows[-1]


case(A42_list_comp, [(f([1, 2, 3]),), (f([4, 5, 6]),)])


def A51_zip(x, y):
    s = x[0] * 0
    for a, b in zip(x, y):
        s = s + a * b
    return s


case(A51_zip, [(f([1, 2, 3]), f([4, 5, 6])), (f([1, 2, 3]), f([0, 5, 6]))])


def A56_py_counter_in_while(x):
    n = 0
    while x.sum() < 100:
        x = x * 2
        n += 1
    return x, n


case(A56_py_counter_in_while, [(f([1, 2, 3]),), (f([60, 50, 1]),)])


def A60_none_init(x, n):
    out = None
    for i in range(n):
        if out is None:
            out = x
        else:
            out = out + x * i
    return out


case(A60_none_init, [(f([1, 2, 3]), i64(3)), (f([6, 5, 1]), i64(5))])


class M03_IfInFor(nn.Module):
    def forward(self, x, y):
        out = 0
        for i in range(0, 3):
            if x + i < y:
                out = out + x
            else:
                out = out + y
            out = out + 1
        return out


case(M03_IfInFor, [(i32(0), i32(1)), (i32(-1), i32(4))])


class M04_IfUnrolled(nn.Module):
    def forward(self, x, y):
        out = 0
        if x + 0 < y:
            out = out + x
        else:
            out = out + y
        out = out + 1
        if x + 1 < y:
            out = out + x
        else:
            out = out + y
        out = out + 1
        if x + 2 < y:
            out = out + x
        else:
            out = out + y
        out = out + 1
        return out


case(M04_IfUnrolled, [(i32(0), i32(1)), (i32(-1), i32(4))])


class M05_IfInWhile_const(nn.Module):
    def forward(self, x, y):
        i = 0
        out = x
        while i < 3:
            if x + i < y:
                out = out + x
            else:
                out = out + y
            out = out + 1
            i = i + 1
        return out


case(M05_IfInWhile_const, [(i32(0), i32(1)), (i32(-1), i32(4))])


class M06_IfInWhile_var(nn.Module):
    def forward(self, x, y, i):
        out = x
        while i < 3:
            if x + i < y:
                out = out + x
            else:
                out = out + y
            out = out + 1
            i = i + 1
        return out


case(M06_IfInWhile_var, [(I0, i32(1), I0), (i32(-1), i32(4), i32(1))])


class M07_scalar_in_var_while(nn.Module):
    def __init__(self):
        super().__init__()
        self.nums = [1, 2, 3]

    def forward(self, x, y, i):
        j = 0
        out = x
        while i < 3:
            if x + i < y:
                out = out + x
            else:
                out = out + y
            out = out + self.nums[j]
            i = i + 1
            j = j + 1
        return out


case(M07_scalar_in_var_while, [(I0, i32(1), I0), (i32(-1), i32(4), i32(1))])
