"""Gradients through converted control flow."""

from torch import nn

from tests.cases.case import case
from tests.cases.tensors import f, ones


def G01_grad_if(x):
    if x.sum() > 0:
        y = x * x
    else:
        y = x * 3
    return y


case(G01_grad_if, [(f([1, 2]),), (f([-3, -4]),)], grad=True)


def G02_grad_while(x):
    y = x * 1
    while y.sum() < 100:
        y = y * y + 1
    return y


case(G02_grad_while, [(f([1, 2]),), (f([3, 4]),), (f([60, 60]),)], grad=True)


def G03_grad_for_tensor(x):
    s = x[0] * 0
    for v in x:
        s = s + v * v
    return s


case(G03_grad_for_tensor, [(f([1, 2, 3]),), (f([3, 4, 5]),)], grad=True)


class G04_grad_params_in_branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            y = self.a(x)
        else:
            y = self.b(x)
        return y


case(G04_grad_params_in_branches, [(ones(2, 4),), (-ones(2, 4),)], grad=True, pgrad=True)
