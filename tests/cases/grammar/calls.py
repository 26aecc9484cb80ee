"""Calls into other functions: lambdas, methods, closures, recursion, starred arguments, `super`."""

from torch import nn

from tests.cases.case import case
from tests.cases.tensors import f, normal, ones

randn = normal(seed=6)


def A26_lambda(x):
    t = lambda x: x * x
    z = t(x)
    return z


case(A26_lambda, [(f([2.0]),), (f([3.0]),)])


def _add_two(x, y):
    out = x + y
    return out


class A27_nested_calls(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(10, 3)

    def forward(self, x, y):
        out = self.my_fc(x)
        out = _add_two(out, y)
        return out

    def my_fc(self, x):
        out = self.linear(x)
        return out


case(A27_nested_calls, [(ones(2, 10), randn(3)), (randn(2, 10), randn(3))])


def A28_recur_tensor(x):
    if x > 10:
        return x
    return A28_recur_tensor(x * x)


case(A28_recur_tensor, [(f(2.0),), (f(11.0),), (f(1.5),)])


def A28b_recur_python(x, n: int):
    if n == 0:
        return x
    return A28b_recur_python(x * 2, n - 1)


case(A28b_recur_python, [(f([2.0]), 3), (f([3.0]), 5)])


def A62_starargs(x, *args, **kwargs):
    for a in args:
        x = x + a
    return x * kwargs["k"]


case(A62_starargs, [(f([1, 2]), f([3, 4]), f([5, 6])), (f([7, 2]), f([3, 4]), f([5, 6]))], kwargs={"k": 2})


class _Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


class S09_super(_Base):
    def forward(self, x):
        y = super().forward(x)
        return y + x


case(S09_super, [(randn(2, 4),), (randn(2, 4),)])


def _mk_closure():
    scale = 3.0
    k = [1, 2]

    def inner(x):
        def helper(v):
            return v * scale

        return helper(x) + k[1]

    return inner


case(_mk_closure, [(f([1, 2]),), (f([3, 4]),)], name="S10_closure_deref", fresh=True)


def _mk_nonlocal():
    count = 0

    def inner(x):
        nonlocal count
        count = count + 1
        return x + count

    return inner


case(_mk_nonlocal, [(f([1, 2]),), (f([3, 4]),), (f([3, 4]),)], name="S10b_nonlocal_write", fresh=True)
