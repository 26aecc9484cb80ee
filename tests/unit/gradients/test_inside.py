"""Gradients that the captured function takes itself: `torch.autograd.grad`, ``backward``, ``.grad``."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.unit.gradients.scenarios import N, P, V, Wrap, as_in_eager


@as_in_eager
def test_grad_inside_simple(wrap: Wrap) -> Any:
    def f(x):
        y = (x * x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        if g.sum() > 0:
            return g * x
        return g

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


@as_in_eager
def test_grad_inside_nograph(wrap: Wrap) -> Any:
    def f(x):
        y = (x * x).sum()
        (g,) = torch.autograd.grad(y, x)
        if g.sum() > 0:
            return x - 0.1 * g
        return x + g

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


@as_in_eager
def test_grad_inside_after_if(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            y = (x * x).sum()
        else:
            y = x.exp().sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return g * x

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


@as_in_eager
def test_grad_inside_in_loop(wrap: Wrap) -> Any:
    def f(x, target):
        i = torch.tensor(0)
        while i < 5:
            x = x.detach().requires_grad_()
            loss = ((x - target) ** 2).sum()
            (g,) = torch.autograd.grad(loss, x)
            if g.norm() < 0.5:
                break
            x = x - 0.2 * g
            i = i + 1
        return x, i

    f = wrap(f)
    return [f(V(*a), V(*b, g=False)) for a in (P, N) for b in (P, N)]


@as_in_eager
def test_grad_inside_in_loop_unrolled(wrap: Wrap) -> Any:
    def f(x, target):
        for _i in range(5):
            x = x.detach().requires_grad_()
            loss = ((x - target) ** 2).sum()
            (g,) = torch.autograd.grad(loss, x)
            if g.norm() < 0.5:
                break
            x = x - 0.2 * g
        return x

    f = wrap(f)
    return [f(V(*a), V(*b, g=False)) for a in (P, N) for b in (P, N)]


@as_in_eager
def test_grad_in_arm(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        else:
            g = x * 1
        return g

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((y, x.grad))
    return out


@as_in_eager
def test_gradient_penalty(wrap: Wrap) -> Any:
    D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()

    def f(real, fake):
        eps = torch.rand(real.shape[0], 1, dtype=torch.float64)
        mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
        score = D(mix)
        g = torch.autograd.grad(score, mix, grad_outputs=torch.ones_like(score), create_graph=True, retain_graph=True)[
            0
        ]
        gp = ((g.norm(2, dim=1) - 1) ** 2).mean()
        loss = D(fake).mean() - D(real).mean() + 10 * gp
        if loss > 0:
            loss = loss * 2
        return loss

    f = wrap(f)
    out = []
    for k in range(3):
        torch.manual_seed(k)
        r = torch.randn(4, 3, dtype=torch.float64)
        k_ = torch.randn(4, 3, dtype=torch.float64)
        D.zero_grad()
        loss = f(r, k_)
        loss.backward()
        out.append((loss, [p.grad for p in D.parameters()]))
    return out


@as_in_eager
def test_maml(wrap: Wrap) -> Any:
    net = nn.Linear(3, 1).double()

    def f(xs, ys, xq, yq, steps):
        w, b = net.weight, net.bias
        for _i in range(steps):
            loss = nn.functional.mse_loss(nn.functional.linear(xs, w, b), ys)
            gw, gb = torch.autograd.grad(loss, (w, b), create_graph=True)
            w = w - 0.1 * gw
            b = b - 0.1 * gb
        q = nn.functional.mse_loss(nn.functional.linear(xq, w, b), yq)
        if q > 1:
            q = q * 0.5
        return q

    f = wrap(f)
    out = []
    for k in range(3):
        torch.manual_seed(k)
        t = [torch.randn(4, n, dtype=torch.float64) for n in (3, 1, 3, 1)]
        net.zero_grad()
        loss = f(*t, 3)
        loss.backward()
        out.append((loss, [p.grad for p in net.parameters()]))
    return out


@as_in_eager
def test_maml_dynamic(wrap: Wrap) -> Any:
    net = nn.Linear(3, 1).double()

    def f(xs, ys, xq, yq, steps):
        w, b = net.weight, net.bias
        for _i in range(steps):
            loss = nn.functional.mse_loss(nn.functional.linear(xs, w, b), ys)
            gw, gb = torch.autograd.grad(loss, (w, b), create_graph=True)
            w = w - 0.1 * gw
            b = b - 0.1 * gb
        return nn.functional.mse_loss(nn.functional.linear(xq, w, b), yq)

    f = wrap(f)
    out = []
    for k in range(3):
        torch.manual_seed(k)
        t = [torch.randn(4, n, dtype=torch.float64) for n in (3, 1, 3, 1)]
        net.zero_grad()
        loss = f(*t, torch.tensor(k))
        loss.backward()
        out.append((loss, [p.grad for p in net.parameters()]))
    return out


@as_in_eager
def test_pinn(wrap: Wrap) -> Any:
    net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)).double()

    def f(t):
        t = t.clone().requires_grad_(True)
        u = net(t)
        du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
        ddu = torch.autograd.grad(du, t, grad_outputs=torch.ones_like(du), create_graph=True)[0]
        res = (ddu + u).pow(2).mean()
        if res > 0.01:
            res = res + du.abs().mean()
        return res

    f = wrap(f)
    out = []
    opt = torch.optim.Adam(net.parameters(), 1e-2)
    for _k in range(4):
        opt.zero_grad()
        loss = f(torch.linspace(0, 1, 5, dtype=torch.float64)[:, None])
        loss.backward()
        opt.step()
        out.append((loss, [p.grad.clone() for p in net.parameters()]))
    return out


@as_in_eager
def test_backward_inside(wrap: Wrap) -> Any:
    w = V(1.0, 2.0, 3.0)

    def f(x):
        loss = (x * w).sum() ** 2
        loss.backward()
        if loss > 10:
            return loss.detach()
        return loss.detach() * 2

    f = wrap(f)
    out = []
    for a in (P, N, (0.1, 0.0, 0.0)):
        out.append((f(V(*a, g=False)), w.grad.clone()))
    return out


@as_in_eager
def test_backward_inside_read_grad(wrap: Wrap) -> Any:
    w = V(1.0, 2.0, 3.0)

    def f(x):
        loss = (x * w).sum() ** 2
        loss.backward()
        with torch.no_grad():
            w.sub_(0.01 * w.grad)
        w.grad = None
        return loss.detach()

    f = wrap(f)
    out = []
    for a in (P, N, (0.1, 0.0, 0.0)):
        out.append((f(V(*a, g=False)), w.detach().clone(), w.grad))
    return out


@as_in_eager
def test_backward_in_arm(wrap: Wrap) -> Any:
    w = V(1.0, 2.0, 3.0)

    def f(x):
        loss = (x * w).sum() ** 2
        if loss > 1:
            loss.backward()
        return loss.detach()

    f = wrap(f)
    out = []
    for a in (P, N, (0.1, 0.0, 0.0)):
        out.append((f(V(*a, g=False)), w.grad.clone()))
    return out


@as_in_eager
def test_read_grad(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x):
        if w.grad is None:
            return x
        return x * w.grad

    f = wrap(f)
    out = []
    for a in (P, N):
        out.append(f(V(*a)))
        (w * w).sum().backward()
    out.append(f(V(*a)))
    w.grad = None
    out.append(f(V(*a)))
    return out


@as_in_eager
def test_set_grad(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x):
        w.grad = x.detach() * 2
        if x.sum() > 0:
            return x
        return x * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        out.append((f(V(*a)), w.grad.clone()))
    return out


@as_in_eager
def test_set_grad_arm(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x):
        if x.sum() > 0:
            w.grad = None
        return x * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        w.grad = V(*P, g=False)
        out.append((f(V(*a)), w.grad))
    return out


@as_in_eager
def test_requires_grad_inside(wrap: Wrap) -> Any:
    def f(x):
        y = x.detach().clone().requires_grad_()
        z = (y * y).sum()
        if x.sum() > 0:
            z = z * 2
        return z, y

    f = wrap(f)
    out = []
    for a in (P, N):
        z, y = f(V(*a))
        z.backward()
        out.append((z, y, y.grad, y.is_leaf))
    return out


@as_in_eager
def test_new_param_inside(wrap: Wrap) -> Any:
    def f(x):
        w = nn.Parameter(torch.ones(3, dtype=torch.float64))
        z = (x * w).sum()
        if z > 0:
            z = z * 2
        return z, w

    f = wrap(f)
    out = []
    for a in (P, N):
        z, y = f(V(*a))
        z.backward()
        out.append((z, type(y).__name__, y.grad, y.is_leaf))
    return out


@as_in_eager
def test_input_mutation(wrap: Wrap) -> Any:
    def f(x, buf):
        buf.add_(x.detach())
        if x.sum() > 0:
            buf.mul_(2)
        return x * buf

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        b = V(*P, g=False)
        y = f(x, b)
        y.sum().backward()
        out.append((y, b, x.grad))
    return out


@as_in_eager
def test_input_mutation_grad(wrap: Wrap) -> Any:
    def f(x, buf):
        buf.add_(x * x)
        if x.sum() > 0:
            buf.mul_(x)
        return buf * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        b = V(*P, g=False)
        y = f(x, b)
        y.sum().backward()
        out.append((y, b, b.requires_grad, x.grad))
    return out


@as_in_eager
def test_input_mutation_grad_inarm(wrap: Wrap) -> Any:
    def f(x, buf):
        if x.sum() > 0:
            buf.mul_(x)
        return buf * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        b = V(*P, g=False)
        y = f(x, b)
        out.append((y, b.requires_grad, y.requires_grad))
        if y.requires_grad:
            y.sum().backward()
            out.append((b, x.grad))
    return out


@as_in_eager
def test_data_inplace(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            x.data.add_(1)
        return x * 2

    f = wrap(f)
    out = []
    for a in (P, N):
        x = V(*a)
        y = f(x)
        y.sum().backward()
        out.append((x, x.grad, y))
    return out


@as_in_eager
def test_while_fit_handwritten(wrap: Wrap) -> Any:
    def fit(w0, x, y):
        w = w0.detach().clone().requires_grad_()
        i = 0
        loss = ((x @ w - y) ** 2).mean()
        while loss > 1e-2 and i < 50:
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad.zero_()
            loss = ((x @ w - y) ** 2).mean()
            i += 1
        return w.detach(), i, w.grad

    fit = wrap(fit)
    torch.manual_seed(0)
    x = torch.randn(8, 3, dtype=torch.float64)
    y = x @ V(1.0, 2.0, 3.0, g=False)
    return [fit(V(*a), x, y) for a in (P, N)]


@as_in_eager
def test_grad_none_check_in_loop(wrap: Wrap) -> Any:
    w = V(*P)

    def f(x, n):
        seen = 0
        for _i in range(n):
            if w.grad is not None:
                seen += 1
            ((w * x).sum()).backward()
        return seen

    f = wrap(f)
    out = []
    for k in (0, 3, 0, 2):
        out.append((f(V(*P, g=False), torch.tensor(k)), w.grad is None or w.grad.clone()))
    w.grad = None
    out.append((f(V(*P, g=False), torch.tensor(2)), w.grad.clone()))
    return out


@as_in_eager
def test_arm_local_leaf(wrap: Wrap) -> Any:
    def f(x):
        if x.sum() > 0:
            y = x.detach().clone().requires_grad_()
            (y**3).sum().backward()
            g = y.grad
        else:
            g = x.detach() * 0
        return g * 2

    f = wrap(f)
    return [f(V(*a)) for a in (P, N)]


@as_in_eager
def test_backward_two_heads(wrap: Wrap) -> Any:
    a = nn.Linear(3, 1).double()
    b = nn.Linear(3, 1).double()

    def f(x):
        if x.sum() > 0:
            loss = a(x).sum()
        else:
            loss = b(x).sum()
        loss.backward()
        ga = a.weight.grad
        gb = b.weight.grad
        s = 0.0
        if ga is not None:
            s = s + ga.abs().sum()
        if gb is not None:
            s = s + 10 * gb.abs().sum()
        return s

    f = wrap(f)
    out = []
    for v in (P, N, P):
        for p in (*a.parameters(), *b.parameters()):
            p.grad = None
        out.append((f(V(*v)), [p.grad for p in (*a.parameters(), *b.parameters())]))
    return out


@as_in_eager
def test_backward_inputs_kw(wrap: Wrap) -> Any:
    a = V(*P)
    b = V(*N)

    def f(x):
        ((a * b * x).sum()).backward(inputs=[a])
        return a.grad * 1, b.grad

    f = wrap(f)
    return [f(V(*P, g=False)), f(V(*N, g=False))]


@as_in_eager
def test_autograd_backward_many(wrap: Wrap) -> Any:
    a = V(*P)
    b = V(*N)

    def f(x):
        torch.autograd.backward([(a * x).sum(), (b * a * x)], [None, torch.ones_like(x)])
        if a.grad.sum() > 0:
            return a.grad + 0
        return b.grad + 0

    f = wrap(f)
    return [f(V(*P, g=False)), f(V(*N, g=False)), a.grad, b.grad]


@as_in_eager
def test_retain_and_read(wrap: Wrap) -> Any:
    def f(x):
        h = x * 2
        h.retain_grad()
        loss = (h * h).sum()
        if loss > 1:
            loss = loss * 3
        loss.backward()
        return h.grad + 0, x.grad + 0

    f = wrap(f)
    return [f(V(*P)), f(V(0.1, 0.1, 0.1))]


@as_in_eager
def test_allow_unused_maybe(wrap: Wrap) -> Any:
    def f(x, w):
        if x.sum() > 0:
            y = (x * w).sum()
        else:
            y = x.sum()
        gx, gw = torch.autograd.grad(y, (x, w), allow_unused=True)
        if gw is None:
            return gx
        return gx + gw

    f = wrap(f)
    return [f(V(*a), V(*P)) for a in (P, N)]


@as_in_eager
def test_unused_error(wrap: Wrap) -> Any:
    def f(x, w):
        if x.sum() > 0:
            y = (x * w).sum()
        else:
            y = x.sum()
        try:
            gx, gw = torch.autograd.grad(y, (x, w))
        except RuntimeError:
            return x * 0
        return gx + gw

    f = wrap(f)
    return [f(V(*a), V(*P)) for a in (P, N)]


@as_in_eager
def test_input_optim_adversarial(wrap: Wrap) -> Any:
    net = nn.Linear(3, 2).double()

    def attack(x, eps):
        adv = x.clone().detach()
        for _i in range(4):
            adv.requires_grad_(True)
            loss = net(adv).logsumexp(-1).sum()
            g = torch.autograd.grad(loss, adv)[0]
            adv = adv.detach() + eps * g.sign()
            adv = torch.min(torch.max(adv, x - 0.3), x + 0.3)
            if net(adv).argmax() == 1:
                break
        return adv

    attack = wrap(attack)
    return [attack(V(*a, g=False), 0.1) for a in (P, N)]


@as_in_eager
def test_require_arm(wrap: Wrap) -> Any:
    def f(x):
        y = x.detach().clone()
        z = y
        if x.sum() > 0:
            y.requires_grad_()
        w = (y * 2).sum()
        return w, y, z

    f = wrap(f)
    out = []
    for a in (P, N):
        w, y, z = f(V(*a))
        out.append((w.requires_grad, y.requires_grad, y is z))
        if w.requires_grad:
            w.backward()
            out.append(y.grad)
    return out


@as_in_eager
def test_require_both(wrap: Wrap) -> Any:
    def f(x):
        y = x.detach().clone()
        if x.sum() > 0:
            y.requires_grad = True
        else:
            y.requires_grad_(True)
            y = y * 1
        return torch.autograd.grad((y * y).sum(), y)

    f = wrap(f)
    return [f(V(*a)) for a in (P, N)]


@as_in_eager
def test_require_param_freeze(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()

    def f(x):
        if x.sum() > 0:
            lin.weight.requires_grad_(False)
        return lin(x).sum()

    f = wrap(f)
    out = []
    for a in (N, P, N, P):
        loss = f(V(*a))
        loss.backward()
        out.append((lin.weight.requires_grad, lin.weight.grad is None or lin.weight.grad.clone()))
    return out


@as_in_eager
def test_frozen_toggle(wrap: Wrap) -> Any:
    lin = nn.Linear(3, 1).double()

    def f(x):
        lin.requires_grad_(False)
        a = lin(x).sum()
        lin.requires_grad_(True)
        if a > 0:
            a = a + lin(x * 2).sum()
        return a

    f = wrap(f)
    out = []
    for a in (N, P, N, P):
        lin.zero_grad()
        x = V(*a)
        loss = f(x)
        loss.backward()
        out.append((x.grad, lin.weight.requires_grad, lin.weight.grad))
    return out
