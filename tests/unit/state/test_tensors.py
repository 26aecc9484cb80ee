from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.unit.state.stories import BATCH, XS, Static, X, state, story


@story(programs=1)
def test_counter_tensor(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.tensor(0))
            self.k = torch.tensor(0.0)

        def forward(self, x):
            self.n += 1
            self.k = self.k + 2
            return x * self.n + self.k

    m = static(M())
    return ([m(X) for _ in range(5)], state(m))


@story(programs=1)
def test_buf_ema(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("buf", torch.zeros(3))
            self.register_buffer("np", torch.ones(3), persistent=False)
            self.plain = torch.zeros(3)

        def forward(self, x):
            self.buf = self.buf * 0.9 + x
            self.np.mul_(2)
            self.plain = self.plain + self.buf
            return self.buf + self.np + self.plain

    m = static(M())
    return ([m(X * i) for i in range(5)], state(m), m._non_persistent_buffers_set)


@story(programs=1)
def test_buffers_dict(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.zeros(3))

        def forward(self, x):
            self._buffers["b"] = self._buffers["b"] + x
            return self.b

    m = static(M())
    return ([m(x) for x in XS[:4]], m.b, list(m.state_dict()))


@story(programs=2)
def test_buf_none(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", None)

        def forward(self, x):
            self.b = x.clone() if self.b is None else self.b + x
            return self.b

    m = static(M())
    return ([m(x) for x in XS[:4]], m.b, list(m.state_dict()))


@story(programs=1)
def test_buf_swap_ptr(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(3))
            self.register_buffer("b", torch.ones(3))

        def forward(self, x):
            self.a, self.b = (self.b, self.a)
            self.a.add_(x)
            return self.a - self.b

    m = static(M())
    return ([m(x) for x in XS], m.a, m.b)


@story(programs=1)
def test_ident_kept(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(3))
            self.l = [1, 2]
            self.o = self.l

        def forward(self, x):
            self.a.add_(x)
            self.l[0] += 1
            return self.a

    m = static(M())
    a = m.a
    [m(x) for x in XS[:3]]
    return (m.a is a, m.o is m.l, m.o, a)


@story(programs=1)
def test_queue_moco(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("queue", torch.randn(3, 8))
            self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

        def forward(self, x):
            logits = x @ self.queue
            p = int(self.ptr)
            self.queue[:, p : p + 4] = x.T
            self.ptr[0] = (p + 4) % 8
            return logits

    m = static(M())
    return ([m(BATCH * k) for k in (1, 2, 3)], state(m))


@story(programs=1)
def test_vq_ema(static: Static) -> Any:

    class VQ(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("emb", torch.randn(4, 3))
            self.register_buffer("n", torch.zeros(4))
            self.register_buffer("avg", self.emb.clone())

        def forward(self, x):
            idx = (x[:, None] - self.emb[None]).pow(2).sum(-1).argmin(1)
            oh = F.one_hot(idx, 4).float()
            if self.training:
                self.n.mul_(0.9).add_(oh.sum(0), alpha=0.1)
                self.avg = self.avg * 0.9 + 0.1 * oh.T @ x
                self.emb.copy_(self.avg / (self.n[:, None] + 1e-05))
            return self.emb[idx]

    m = static(VQ())
    return ([m(BATCH * k) for k in (1, 2, 3)], state(m))


@story(programs=2)
def test_opt_state(static: Static) -> Any:
    net = nn.Linear(3, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def f(x):
        return net(x) * opt.param_groups[0]["lr"]

    g = static(f)
    o = [g(X)]
    opt.param_groups[0]["lr"] = 0.5
    o.append(g(X))
    return o


@story(programs=1)
def test_opt_state_mom(static: Static) -> Any:
    net = nn.Linear(3, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(X).sum().backward()
    opt.step()

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net
            self.opt = opt

        def forward(self, x):
            m = self.opt.state[self.net.weight]["momentum_buffer"]
            return self.net(x) + m.sum()

    m = static(M())
    o = [m(X)]
    opt.zero_grad()
    net(X * 5).sum().backward()
    opt.step()
    o.append(m(X))
    return o


@story(programs=1)
def test_adam_step_count(static: Static) -> Any:
    net = nn.Linear(3, 3)
    opt = torch.optim.Adam(net.parameters())
    net(X).sum().backward()
    opt.step()

    def f(x):
        st = opt.state[net.weight]
        return x * st["step"] + st["exp_avg"].sum()

    g = static(f)
    o = [g(X)]
    net(X).sum().backward()
    opt.step()
    o.append(g(X))
    return o
