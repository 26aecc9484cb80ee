from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from tests.unit.state.stories import BATCH, Static, X, state, story, train


class Sym(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).T


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = nn.Parameter(torch.tensor(2.0))
        self.n = 0

    def forward(self, w):
        self.n += 1
        return w * self.k

    def right_inverse(self, w):
        return w / self.k


@story(programs=24)
def test_bn_all(static: Static) -> Any:
    out = []
    for mom in (0.1, None, 0.5):
        for affine in (True, False):
            for tr in (True, False):
                bn = nn.BatchNorm1d(3, momentum=mom, affine=affine, track_running_stats=tr)
                m = static(nn.Sequential(nn.Linear(3, 3), bn))
                for _ in range(3):
                    out.append(m(torch.randn(4, 3)))
                m.eval()
                out.append(m(torch.randn(4, 3)))
                m.train()
                out.append(m(torch.randn(4, 3)))
                out.append(state(m))
    return out


@story(programs=2)
def test_bn_programs(static: Static) -> Any:
    m = static(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3, momentum=None)))
    o = []
    for _ in range(4):
        o.append(m(torch.randn(4, 3)))
    m.eval()
    o.append(m(torch.randn(4, 3)))
    m.train()
    o.append(m(torch.randn(4, 3)))
    return (o, state(m))


@story(programs=2)
def test_in_dropout(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.i = nn.InstanceNorm1d(3, track_running_stats=True, affine=True)
            self.d = nn.Dropout(0.3)
            self.f = nn.Dropout1d(0.5)

        def forward(self, x):
            return self.f(self.d(self.i(x)))

    m = static(M())
    o = []
    for _ in range(3):
        o.append(m(torch.randn(2, 3, 5)))
    m.eval()
    o.append(m(torch.randn(2, 3, 5)))
    m.train()
    o.append(m(torch.randn(2, 3, 5)))
    return (o, state(m))


@story(programs=1)
def test_ema_params(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 3)
            self.shadow = copy.deepcopy(self.net)

        for_ = None

        def forward(self, x):
            y = self.net(x)
            with torch.no_grad():
                for p, q in zip(self.net.parameters(), self.shadow.parameters()):
                    q.mul_(0.9).add_(p, alpha=0.1)
            return (y, self.shadow(x))

    m = static(M())
    o = []
    opt = torch.optim.SGD(m.net.parameters(), 0.1)
    for _ in range(4):
        y, z = m(X)
        y.sum().backward()
        opt.step()
        opt.zero_grad()
        o.append((y.detach(), z.detach()))
    return (o, state(m))


@story(programs=1)
def test_tying(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(5, 3)
            self.h = nn.Linear(3, 5, bias=False)
            self.h.weight = self.e.weight

        def forward(self, i):
            return self.h(self.e(i))

    m = static(M())
    o = []
    opt = torch.optim.Adam(m.parameters(), 0.1)
    for k in range(4):
        loss = m(torch.tensor([0, 2, k])).sum()
        loss.backward()
        o.append((loss.detach(), m.e.weight.grad.clone()))
        opt.step()
        opt.zero_grad()
    return (o, state(m), m.h.weight is m.e.weight)


@story(programs=2)
def test_spectral_buf(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(3, 3))
            self.register_buffer("u", F.normalize(torch.randn(3), dim=0))

        def forward(self, x):
            if self.training:
                with torch.no_grad():
                    v = F.normalize(self.w.t() @ self.u, dim=0)
                    self.u.copy_(F.normalize(self.w @ v, dim=0))
            else:
                v = F.normalize(self.w.t() @ self.u, dim=0)
            sigma = self.u @ self.w @ v
            return x @ (self.w / sigma).t()

    m = static(M())
    o = []
    opt = torch.optim.SGD(m.parameters(), 0.1)
    for _ in range(3):
        y = m(BATCH).sum()
        y.backward()
        opt.step()
        opt.zero_grad()
        o.append(y.detach())
    m.eval()
    o.append(m(BATCH))
    return (o, state(m))


@story(programs=1)
def test_teacher_deepcopy(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.st = nn.Linear(3, 3)
            self.te = copy.deepcopy(self.st).requires_grad_(False)
            self.m = 0.9
            self.it = 0

        @torch.no_grad()
        def update(self):
            for p, q in zip(self.st.parameters(), self.te.parameters()):
                q.data = q.data * self.m + p.data * (1 - self.m)

        def forward(self, x):
            if self.training:
                self.update()
                self.it += 1
                self.m = 1 - (1 - 0.9) * 0.99**self.it
            return (self.st(x) - self.te(x)).pow(2).mean()

    m = static(M())
    o = []
    opt = torch.optim.SGD(m.st.parameters(), 0.1)
    for _ in range(3):
        y = m(X)
        y.backward()
        opt.step()
        opt.zero_grad()
        o.append(y.detach())
    return (o, state(m))


@story(programs=1)
def test_parametrize_sym(static: Static) -> Any:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Sym())
    m = static(nn.Sequential(layer))
    return (train(m), state(m))


@story(programs=1)
def test_parametrize_state(static: Static) -> Any:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Scale())
    m = static(nn.Sequential(layer))
    return (train(m), state(m), layer.parametrizations.weight[0].n)


@story(programs=1)
def test_parametrize_direct(static: Static) -> Any:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Scale())
    m = static(layer)
    return (train(m), state(m))


@story(programs=1)
def test_parametrize_cached(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3)
            parametrize.register_parametrization(self.l, "weight", Sym())

        def forward(self, x):
            with parametrize.cached():
                return self.l(self.l(x))

    m = static(M())
    return (train(m), state(m))


@story(programs=2)
def test_parametrize_between(static: Static) -> Any:
    layer = nn.Linear(3, 3)
    m = static(nn.Sequential(layer))
    o = train(m)
    parametrize.register_parametrization(layer, "weight", Sym())
    o += train(m)
    parametrize.remove_parametrizations(layer, "weight")
    o += train(m)
    return (o, state(m))


@story(programs=1)
def test_wn_new(static: Static) -> Any:
    layer = parametrizations.weight_norm(nn.Linear(3, 3))
    m = static(nn.Sequential(layer, nn.ReLU()))
    return (train(m), state(m))


@story(programs=2)
def test_sn_new(static: Static) -> Any:
    layer = parametrizations.spectral_norm(nn.Linear(3, 3))
    m = static(nn.Sequential(layer, nn.ReLU()))
    o = train(m)
    m.eval()
    o.append(m(BATCH))
    m.train()
    return (o, train(m), state(m))


@story(programs=1)
def test_orth(static: Static) -> Any:
    layer = parametrizations.orthogonal(nn.Linear(3, 3))
    m = static(nn.Sequential(layer, nn.ReLU()))
    return (train(m), state(m))


@story(programs=1)
def test_wn_old(static: Static) -> Any:
    layer = torch.nn.utils.weight_norm(nn.Linear(3, 3))
    m = static(nn.Sequential(layer, nn.ReLU()))
    return (train(m), state(m))


@story(programs=2)
def test_sn_old(static: Static) -> Any:
    layer = torch.nn.utils.spectral_norm(nn.Linear(3, 3))
    m = static(nn.Sequential(layer, nn.ReLU()))
    o = train(m)
    m.eval()
    o.append(m(BATCH))
    m.train()
    return (o, train(m), state(m))


@story(programs=1)
def test_wn_conv(static: Static) -> Any:
    layer = parametrizations.weight_norm(nn.Conv1d(3, 3, 1))
    m = static(nn.Sequential(layer, nn.ReLU()))
    return (train(m, x=BATCH.T[None]), state(m))


@story(programs=1)
def test_prune(static: Static) -> Any:
    import torch.nn.utils.prune as P

    layer = nn.Linear(3, 3)
    P.l1_unstructured(layer, "weight", 0.5)
    m = static(nn.Sequential(layer))
    return (train(m), state(m))
