from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.unit.state.stories import BATCH, XS, Static, Two, X, attempt, state, story, train


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
        self.register_buffer("n", torch.zeros(()))
        self.k = 0

    def forward(self, x):
        self.n += 1
        self.k += 1
        if x.sum() > 0:
            return self.l(x) * self.n
        return self.l(x) - self.k


@story(programs=7)
def test_replace_sub(static: Static) -> Any:
    m = static(Two())
    o = [m(BATCH)]
    m.a = nn.Linear(3, 3)
    o.append(m(BATCH))
    m.a = nn.Identity()
    o.append(m(BATCH))
    m.b = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 3))
    o.append(m(BATCH))
    del m.a
    m.a = nn.ReLU()
    o.append(m(BATCH))
    m.b[0] = nn.Linear(3, 5, bias=False)
    o.append(m(BATCH))
    m.b.append(nn.Tanh())
    o.append(m(BATCH))
    m.b = nn.Tanh()
    o.append(m(BATCH))
    return (o, state(m))


@story(programs=1)
def test_replace_same_kind(static: Static) -> Any:
    m = static(Two())
    o = [m(BATCH)]
    for _ in range(3):
        m.a = nn.Linear(3, 3)
        o.append(m(BATCH))
    return (o, state(m))


@story(programs=5)
def test_replace_param(static: Static) -> Any:
    m = static(Two())
    o = [m(BATCH)]
    m.a.weight = nn.Parameter(torch.ones(3, 3))
    o += train(m)
    m.a.bias = None
    o.append(m(BATCH))
    m.b.bias = m.a.weight[0] if False else nn.Parameter(torch.zeros(3), requires_grad=False)
    o += train(m)
    m.a.weight.data = torch.full((3, 3), 2.0)
    o.append(m(BATCH))
    m.a.weight.data.zero_()
    o.append(m(BATCH))
    with torch.no_grad():
        m.b.weight.copy_(torch.eye(3))
        o.append(m(BATCH))
    m.a.weight = nn.Parameter(torch.ones(5, 3))
    m.b = nn.Linear(5, 2)
    o.append(m(BATCH))
    return (o, state(m))


@story(programs=1)
def test_retie(static: Static) -> Any:
    m = static(Two())
    o = train(m)
    m.b.weight = m.a.weight
    o += train(m)
    m.b.weight = nn.Parameter(torch.ones(3, 3))
    o += train(m)
    return (o, state(m))


@story(programs=1)
def test_load_sd(static: Static) -> Any:
    m = static(Two())
    sds = [Two().state_dict() for _ in range(3)]
    o = [m(BATCH)]
    for sd in sds:
        m.load_state_dict(sd)
        o += train(m)
    for sd in sds:
        m.load_state_dict(sd, assign=True)
        o += train(m)
    return (o, state(m))


@story(programs=1)
def test_load_sd_buf(static: Static) -> Any:
    m = static(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
    o = [m(BATCH)]
    sd = copy.deepcopy(m.state_dict())
    o += train(m)
    m.load_state_dict(sd)
    o += train(m)
    sd2 = copy.deepcopy(m.state_dict())
    m.load_state_dict(sd2, assign=True)
    o += train(m)
    return (o, state(m))


@story(programs=1)
def test_meta(static: Static) -> Any:
    m = static(Plain())
    o = [m(X)]
    m.to("meta")
    y = attempt(lambda: m.l(X.to("meta")))
    o.append(y)
    return ([str(t) for t in o], [(n, p.device.type) for n, p in m.named_parameters()])


@story(programs=2)
def test_meta_call(static: Static) -> Any:
    m = static(Two())
    o = [m(BATCH)]
    m.to("meta")
    o.append(m(BATCH.to("meta")))
    m.to_empty(device="cpu")
    with torch.no_grad():
        for p in m.parameters():
            p.fill_(0.5)
    r = [o[0], o[1].device.type, o[1].shape, m(BATCH)]
    return r


@story(programs=4)
def test_req_grad(static: Static) -> Any:
    m = static(Two())
    o = train(m)
    m.a.weight.requires_grad_(False)
    o += train(m)
    m.requires_grad_(False)
    y = m(BATCH)
    o.append(y.requires_grad)
    m.requires_grad_(True)
    o += train(m)
    with torch.no_grad():
        o.append(m(BATCH).requires_grad)
    return (o, state(m))


@story(programs=2)
def test_func_call(static: Static) -> Any:
    m = static(Plain())
    p = {k: torch.ones_like(v) for k, v in m.named_parameters()}
    o = [m(X)]
    o.append(torch.func.functional_call(m, p, (X,)))
    o.append(m(X))
    o.append(torch.func.functional_call(m, {k: v * 2 for k, v in p.items()}, (-X,)))
    o.append(torch.func.functional_call(m, {**p, "n": torch.tensor(5.0)}, (X,)))
    return (o, state(m))


@story(programs=2)
def test_func_call_grad(static: Static) -> Any:
    m = static(Two())
    p = {k: v.detach().clone().requires_grad_() for k, v in m.named_parameters()}
    y = torch.func.functional_call(m, p, (BATCH,)).sum()
    g = torch.autograd.grad(y, list(p.values()))
    p2 = {k: v - 0.1 * d for (k, v), d in zip(p.items(), g)}
    y2 = torch.func.functional_call(m, p2, (BATCH,)).sum()
    g2 = torch.autograd.grad(y2, list(p2.values()))
    return (y, g, y2, g2, train(m))


@story(programs=2)
def test_stateless(static: Static) -> Any:
    m = static(Two())
    from torch.nn.utils import stateless as st

    p = {k: torch.ones_like(v) for k, v in m.named_parameters()}
    o = [
        m(BATCH),
        st._reparametrize_module and st.functional_call(m, p, (BATCH,)) if hasattr(st, "functional_call") else None,
        m(BATCH),
    ]
    return o


@story(programs=1)
def test_func_call_inside(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = Two()

        def forward(self, x):
            p = {k: v * 2 for k, v in self.t.named_parameters()}
            return torch.func.functional_call(self.t, p, (x,))

    m = static(M())
    return train(m)


@story(programs=1)
def test_func_call_inside_cond(static: Static) -> Any:

    class C(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))
            self.n = 0

        def forward(self, x):
            self.n += 1
            if x.sum() > 0:
                return x * self.w
            return x - self.w

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = C()

        def forward(self, x):
            p = {k: v * 2 for k, v in self.t.named_parameters()}
            return torch.func.functional_call(self.t, p, (x,)) + self.t(x)

    m = static(M())
    return (train(m), m(-BATCH), m.t.n)


@story(programs=1)
def test_maml(static: Static) -> Any:
    net = Two()

    def loss(p, x):
        return torch.func.functional_call(net, p, (x,)).pow(2).mean()

    def inner(p, x):
        g = torch.autograd.grad(loss(p, x), list(p.values()), create_graph=True)
        return {k: v - 0.1 * d for (k, v), d in zip(p.items(), g)}

    def step(p, x):
        return loss(inner(p, x), x)

    step = static(step)
    p = dict(net.named_parameters())
    value = step(p, BATCH)
    value.backward()
    return (value, [v.grad for v in p.values()])


@story(programs=3)
def test_swap(static: Static) -> Any:
    m = static(Two())
    m.requires_grad_(False)
    o = [m(BATCH)]
    torch.utils.swap_tensors(m.a.weight, m.b.weight)
    o.append(m(BATCH))
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        m.double()
        o.append(m(BATCH.double()))
        m.float()
        o.append(m(BATCH))
        m.load_state_dict(Two().state_dict())
        o.append(m(BATCH))
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    return (o, state(m))


@story(programs=5)
def test_train_eval(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = Two()
            self.d = nn.Dropout(0.5)

        def forward(self, x):
            if self.training:
                return self.d(self.t(x))
            return self.t(x) * 0

    m = static(M())
    o = [m(BATCH)]
    m.eval()
    o.append(m(BATCH))
    m.d.train()
    o.append(m(BATCH))
    m.train()
    m.d.eval()
    o.append(m(BATCH))
    m.d.p = 0.9
    m.d.train()
    o.append(m(BATCH))
    return o


@story(programs=1)
def test_apply_init(static: Static) -> Any:
    m = static(Two())
    o = [m(BATCH)]
    m.apply(lambda layer: nn.init.ones_(layer.weight) if isinstance(layer, nn.Linear) else None)
    o.append(m(BATCH))
    m.zero_grad()
    m.requires_grad_()
    m.share_memory()
    o.append(m(BATCH))
    return o


@story(programs=1)
def test_half_in_fwd(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.t = Two()

        def forward(self, x):
            return F.linear(x.double(), self.t.a.weight.double())

    m = static(M())
    return train(m)


@story(programs=1)
def test_extra_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0
            self.l = nn.Linear(3, 3)

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, st):
            self.n = st["n"]

        def forward(self, x):
            self.n += 1
            return self.l(x) * self.n

    m = static(M())
    o = [m(BATCH), m(BATCH)]
    sd = copy.deepcopy(m.state_dict())
    o.append(m(BATCH))
    m.load_state_dict(sd)
    o.append(m(BATCH))
    return (o, m.n, sd)


@story(programs=2)
def test_untie(static: Static) -> Any:
    model = Two()
    model.b.weight = model.a.weight
    module = static(model)
    told = train(module)
    module.b.weight = nn.Parameter(torch.ones(3, 3))
    return (told, train(module), state(module))


@story(programs=3)
def test_an_argument_that_was_kept(static: Static) -> Any:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = None

        def forward(self, x):
            before = self.last
            if x.sum() < 0:
                self.last = x
            return x if before is None else x - before

    module = static(Keeps())
    return [(module(x), module.last) for x in (-X, XS[1], XS[1], X, XS[3], X)]
