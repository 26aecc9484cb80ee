"""Derivatives of first and second order through every construct that becomes part of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.unit.gradients.derivatives import d, differentiate, s

P, N, Z = d(1.0, 2.0, 3.0), d(-1.0, -2.0, -3.0), d(0.0, 0.0, 0.0)
CASES: list[Any] = []


def case(*calls: Any) -> Callable[[Any], Any]:
    """Declare a function that is differentiated at each of these calls."""

    def declare(function: Any) -> Any:
        CASES.append(pytest.param(function, calls, id=function.__name__))
        return function

    return declare


@case(P, N)
def if_one_arm(x):
    y = x * 2
    if x.sum() > 0:
        y = y * x
    return y


@case((P, d(1.0, 1.0, 4.0)), (N, d(1.0, 1.0, 4.0)))
def input_in_one_arm(x, w):
    if x.sum() > 0:
        return x * w
    return x * 3


@case((P, d(1.0, 1.0, 4.0)), (N, d(1.0, 1.0, 4.0)))
def output_detached_in_one_arm(x, w):
    if x.sum() > 0:
        y = (x * w).detach()
    else:
        y = x * w
    return y


@case((P, d(1.0, 1.0, 4.0)), (N, d(1.0, 1.0, 4.0)))
def constant_in_one_arm(x, w):
    if x.sum() > 0:
        y = torch.zeros(3, dtype=torch.float64)
    else:
        y = x * w
    return y, y.sum() * 2


@case((P, d(1.0, 1.0, 4.0)), (N, d(1.0, 1.0, 4.0)))
def arg_returned_in_one_arm(x, w):
    if x.sum() > 0:
        y = w
    else:
        y = x
    return y


@case((P, d(1.0, 1.0, 4.0)), (N, d(1.0, 1.0, 4.0)))
def arg_or_new(x, w):
    if x.sum() > 0:
        y = w
    else:
        y = x * w
    return y


@case((P,), (N,))
def view_of_arg(x):
    if x.sum() > 0:
        return x[1:]
    return x[:2]


@case((P,), (N,), (d(30.0, 20.0, 40.0),))
def while_loop(x):
    while x.sum() < 100:
        x = x * x + 1
    return x


@case((P, s(2.0)), (N, s(2.0)), (d(300.0, 20.0, 40.0), s(2.0)))
def while_zero_trips(x, k):
    y = x
    while y.sum() < 100:
        y = y * k + 5
    return y


@case((P, s(2.0)), (N, s(2.0)), (d(300.0, 20.0, 40.0), s(2.0)))
def while_zero_trips_sum(x, k):
    total = torch.zeros((), dtype=torch.float64)
    y = x
    while y.sum() < 100:
        y = y * k + 5
        total = total + y.sum()
    return total


@case((torch.tensor(0), P), (torch.tensor(3), P), (torch.tensor(5), N))
def for_range(n, x):
    y = x
    for i in range(n):
        y = y * x.sin() + i
    return y


@case((torch.tensor(0), P), (torch.tensor(3), P), (torch.tensor(5), N))
def for_range_loop_var_use(n, x):
    acc = 0
    for i in range(n):
        acc = acc + x * i
    return acc


@case((P, torch.tensor(2)), (P, torch.tensor(0)), (N, torch.tensor(9)))
def break_in_loop(x, n):
    y = x
    for v in x:
        if v > n:
            break
        y = y * v
    return y


@case(
    (torch.arange(200.0, dtype=torch.float64).requires_grad_(), torch.tensor(2)),
    (torch.arange(200.0, dtype=torch.float64).requires_grad_(), torch.tensor(20)),
)
def staged_rows(x, n):
    y = x.sum() * 0 + 1
    for v in x:
        if v > n:
            break
        if v == 3:
            continue
        y = y * (v + 0.5).sqrt()
    return y


@case((P, torch.tensor(2)), (P, torch.tensor(0)), (N, torch.tensor(9)))
def return_in_loop(x, n):
    i = 0
    while i < n:
        x = x * 1.5
        if x.sum() > 10:
            return x.sum() * i
        i += 1
    return x.prod()


@case((P, 3), (N, 3))
def tensor_list(x, n):
    out = []
    for v in x:
        if v > 0:
            out.append(v * x)
        elif v < -2:
            out.append(v * 2 * x)
    if not out:
        return x
    return torch.stack(out).sum(0)


@case((P,), (N,), (d(1.0, -1, 5.0),))
def list_pop(x):
    stack = [x]
    for v in x:
        if v > 0:
            stack.append(stack[-1] * v)
        elif len(stack) > 1:
            stack.pop()
    return torch.cat(stack)


@case((P,), (N,), (Z,))
def list_returned(x):
    out = []
    while x.sum() < 40 and len(out) < 5:
        x = x * 1.5 + 1
        out.append(x)
    return out


@case((P,), (N,), (Z,))
def dict_entries(x):
    h = {"a": x * 2}
    if x.sum() > 0:
        h["b"] = x.sin()
    if x[0] > -0.5:
        h["a"] = h["a"] * x
    return h, sum(h.values())


@case((P,), (N,), (Z,))
def maybe(x):
    best = None
    for v in x:
        if v > 0.5 and (best is None or v > best):
            best = v * v
    if best is None:
        return x.sum()
    return best * x.sum()


@case((P,), (N,), (Z,))
def maybe_returned(x):
    best = None
    if x.sum() > 0:
        best = x * x
    return best


@case((P,), (N,), (Z,))
def number_or_tensor(x):
    total = 0.0
    if x.sum() > 0:
        total = x.sum()
    return total * x, total


@case((P,), (N,), (Z,))
def number_or_tensor_ret(x):
    total = 0
    for v in x:
        if v > 0:
            total = total + v * v
    return total


@case((P, torch.tensor(0)), (N, torch.tensor(3)), (Z, torch.tensor(5)))
def growing(x, n):
    seq = x
    for i in range(n):
        seq = torch.cat([seq, seq[-1:] * x[0] + i])
    return seq


@case((P,), (N,), (d(3.0, -1.0, 2.0),))
def sorting(x):
    vals = sorted(x, key=lambda v: -v * v)
    out = 0
    for i, v in enumerate(vals):
        out = out + v ** (i + 1)
    return out, vals


@case((P,), (N,))
def inplace_in_arm(x):
    y = x * 1
    if x.sum() > 0:
        y.mul_(x)
    else:
        y += 2 * x
    return y


@case((P,), (N,), (d(1.0, -1.0, 3.0),))
def indexed_assignment(x):
    y = torch.zeros(3, dtype=torch.float64)
    for i in range(3):
        if x[i] > 0:
            y[i] = x[i] * x.sum()
    return y


@case((P, torch.tensor(2)), (N, torch.tensor(0)), (d(1.0, -1.0, 3.0), torch.tensor(3)))
def indexed_assignment_loop(x, n):
    y = torch.zeros(5, dtype=torch.float64)
    y[0] = x[0]
    for i in range(n):
        y[i + 1] = y[i] * x[i] + x.sum()
    return y


@case((P,), (N,))
def inplace_view_in_arm(x):
    y = x * 1
    v = y[1:]
    if x.sum() > 0:
        v.mul_(3)
    return y * y, v


@case((P,), (N,))
def inplace_error(x):
    y = x.exp()
    if x.sum() > 0:
        y.add_(1)
    return y


@case((P,), (N,), (Z,))
def recursion(x):
    def go(v, depth):
        if v.sum() > 50 or depth > 6:
            return v
        return go(v * v + 1, depth + 1) * 0.5

    return go(x, 0)


@case((P,), (N,), (Z,))
def recursion_tail(x):
    def go(v, depth):
        if v.sum() > 50 or depth > 6:
            return v
        return go(v * v + 1, depth + 1)

    return go(x, 0)


@case((P,), (N,), (Z,))
def try_except(x):
    y = x * 2
    try:
        if x.sum() > 0:
            raise ValueError("no")
        y = y * x
    except ValueError:
        y = y + x.sin()
    finally:
        y = y * 3
    return y


@case((P,), (N,), (Z,))
def nested(x):
    y = x
    i = torch.tensor(0)
    while y.norm() < 30 and i < 6:
        j = 0
        while j < i:
            if y.sum() > 5:
                y = y * 0.9
            else:
                y = y + x * x
            j += 1
        y = y * 1.5 + x
        i += 1
    return y


@case((P,), (N,))
def no_grad_piece(x):
    with torch.no_grad():
        k = x.abs().sum()
        if x.sum() > 0:
            k = k * 2
    if k > 7:
        y = x * k
    else:
        with torch.no_grad():
            y = x * k
    return y, k


@case((P,), (N,))
def detach_carry(x):
    h = x
    for _i in range(4):
        h = h * x
        if h.sum() > 5:
            h = h.detach()
    return h


@case((P,), (N,))
def detach_carry_dyn(x):
    h = x
    i = torch.tensor(0)
    while i < 5:
        h = h * x * 0.5
        if h.sum() > 5:
            h = h.detach()
        i = i + 1
    return h * x


@case((P,), (N,))
def loop_var_starts_without_grad(x):
    h = torch.ones(3, dtype=torch.float64)
    i = torch.tensor(0)
    while i < x.sum():
        h = h * x * 0.5
        i = i + 1
    return h


@case((P,), (N,))
def retain(x):
    y = x * 2
    y.retain_grad()
    if x.sum() > 0:
        z = y * y
        z.retain_grad()
    else:
        z = y * 3
    return y, z


@case((P,), (N,))
def hook(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    if x.sum() > 0:
        z = y * y
    else:
        z = y * 3
    return z


@case((P,), (N,))
def hook_on_input(x):
    x.register_hook(lambda g: g * 10)
    if x.sum() > 0:
        z = x * x
    else:
        z = x * 3
    return z


@case((P,), (N,))
def hook_in_arm(x):
    z = x * 3
    if x.sum() > 0:
        z = z * z
        z.register_hook(lambda g: g * 10)
    return z


@case((P,), (N,))
def hook_clip_closure(x):
    limit = x.abs().max().detach()
    z = x * 3
    z.register_hook(lambda g: g.clamp(-limit, limit))
    if x.sum() > 0:
        z = z * z
    return z


@case((P,), (N,))
def requires_grad_query(x):
    y = x * 2
    if x.sum() > 0:
        y = y.detach()
    if x.requires_grad:
        return y * 2
    return y


@case((P, d(1.0, 2.0, 3.0, grad=False)), (N, d(1.0, 2.0, 3.0, grad=False)))
def grad_differs(x, c):
    if x.sum() > 0:
        y = c
    else:
        y = x
    return y * 2, y


@case((d(1.0, 2.0, 3.0, grad=False), P), (d(-1.0, -2.0, -3.0, grad=False), P))
def no_grad_out(c, x):
    if c.sum() > 0:
        y = c * 2
    else:
        y = x * 2
    return y


@pytest.mark.parametrize(("function", "calls"), CASES)
def test_derivatives_are_eagers(function: Any, calls: tuple[Any, ...]) -> None:
    differentiate(lambda: function, *calls)
