"""Everyday functions: gradients, optimizers, hooks, buffers, random states and modes, with Python in the middle."""

from __future__ import annotations

import collections
import contextlib
import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.unit.bytecode.everyday.program import everyday, random_tensor


def linear(*shape):
    torch.manual_seed(0)
    return nn.Linear(*shape)


@everyday((random_tensor(0, 6, 3), 0.5), (random_tensor(1, 6, 3), 100.0))
def clipped(x, most):
    net = nn.Sequential(linear(3, 4), nn.Tanh(), linear(4, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.01)
    norms = []
    for step in range(3):
        loss = net(x).pow(2).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), most).item()
        norms.append(norm)
        if norm > most:
            print("clipped", step, round(norm, 3))
        optimizer.step()
    return norms, net[0].weight.detach(), net[2].bias.grad.clone()


@everyday((random_tensor(0, 6, 3), 2), (random_tensor(1, 6, 3), 3))
def accumulated(x, every):
    net = linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scale = 0
    for i, row in enumerate(x.split(1), 1):
        loss = net(row).abs().mean() / every
        loss.backward()
        if i % every == 0 or i == len(x):
            print(i, net.weight.grad.abs().max().item())
            optimizer.step()
            optimizer.zero_grad()
            scale += 1
    return net.weight.detach(), scale, net.weight.grad is None


class Ema:
    def __init__(s, module, decay):
        s.shadow = {n: p.detach().clone() for n, p in module.named_parameters()}
        s.decay = decay
        s.updates = 0

    @torch.no_grad()
    def update(s, module):
        s.updates += 1
        decay = min(s.decay, (1 + s.updates) / (10 + s.updates))
        for n, p in module.named_parameters():
            s.shadow[n].mul_(decay).add_(p, alpha=1 - decay)

    @contextlib.contextmanager
    def applied(s, module):
        kept = copy.deepcopy(module.state_dict())
        module.load_state_dict(s.shadow)
        try:
            yield module
        finally:
            module.load_state_dict(kept)


@everyday((random_tensor(0, 4, 3),), (random_tensor(1, 4, 3),))
def ema(x):
    net = linear(3, 2)
    average = Ema(net, 0.9)
    for _ in range(2):
        with torch.no_grad():
            for p in net.parameters():
                p.sub_(0.1 * p.sign())
        average.update(net)
    with average.applied(net) as smooth:
        y = smooth(x)
        print("smooth", y.mean().item(), average.updates)
    return y.detach(), net(x).detach(), average.shadow


class Norm(nn.Module):
    def __init__(s):
        super().__init__()
        s.norm = nn.BatchNorm1d(3)
        s.drop = nn.Dropout(0.5)
        s.register_buffer("seen", torch.zeros((), dtype=torch.long))
        s.times = 0

    def forward(s, x):
        s.times += 1
        s.seen += len(x)
        y = s.norm(x)
        print(s.times, s.seen.item(), s.norm.running_mean.abs().sum().item())
        s.last = y.mean().item()
        return s.drop(y) * s.norm.running_var


NORM = Norm()


@everyday((random_tensor(0, 4, 3), True), (random_tensor(1, 5, 3), False), (random_tensor(2, 4, 3), True))
def running(x, training):
    NORM.train(training)
    y = NORM(x)
    return y, NORM.last, NORM.times, NORM.norm.num_batches_tracked.clone()


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def leaf(x):
    w = x.clone().requires_grad_()
    y = (w * w).sum()
    print(w.grad, w.is_leaf)
    y.backward()
    print(w.grad.tolist())
    w.grad.zero_()
    (w * 3).sum().backward()
    with torch.no_grad():
        w -= w.grad
    print(w.requires_grad)
    w.requires_grad_(False)
    return w, w.grad, (w * 2).requires_grad


@everyday((random_tensor(0, 3, 3),), (random_tensor(1, 3, 3),))
def hooks_of_tensors(x):
    log = []
    x = x.requires_grad_()
    h = x * 2
    h.retain_grad()
    handle = h.register_hook(lambda g: (log.append(g.sum().item()), g * 2)[1])
    y = (h @ h).sum()
    print("loss", y.item())
    y.backward(retain_graph=True)
    handle.remove()
    first = x.grad.clone()
    x.grad = None
    y.backward()
    return first, x.grad, h.grad, log


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def seeds(x):
    torch.manual_seed(5)
    a = F.dropout(x, 0.5)
    print(a.tolist())
    state = torch.get_rng_state()
    b = torch.randn(2)
    torch.set_rng_state(state)
    c = torch.randn(2)
    generator = torch.Generator().manual_seed(7)
    d = torch.randint(0, 9, (3,), generator=generator)
    print(d.tolist())
    e = torch.randperm(4, generator=generator)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        f = torch.rand(1)
    return a, torch.equal(b, c), d, x[e], f, torch.rand(1)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def modes(x):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    a = torch.ones(2) * x[0].item()
    print(a.dtype)
    torch.set_default_dtype(before)
    b = torch.ones(2)
    torch.set_grad_enabled(False)
    c = x.clone().requires_grad_() * 2
    print(c.requires_grad)
    torch.set_grad_enabled(True)
    d = x.clone().requires_grad_() * 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        e = x[None] @ x[:, None]
        print(e.dtype, torch.is_autocast_enabled("cpu"))
        f = e + 1
    return a, b, c, d.detach(), d.requires_grad, f.float()


@torch.no_grad()
def evaluated(net, x):
    print("grad", torch.is_grad_enabled())
    return net(x)


@torch.inference_mode()
def inferred(net, x):
    y = net(x)
    print("inference", y.is_inference())
    return y.clone()


@everyday((random_tensor(0, 2, 3),), (random_tensor(1, 2, 3),))
def decorated(x):
    net = linear(3, 2)
    a = evaluated(net, x)
    print(torch.is_grad_enabled())
    with torch.enable_grad():
        b = net(x)
    with torch.no_grad(), torch.enable_grad():
        c = net(x)
        print(c.requires_grad, a.requires_grad)
    return a, b.detach(), c.sum().item(), inferred(net, x).tolist()


class Mixed(nn.Module):
    def __init__(s):
        super().__init__()
        s.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 1)})
        s.gains = nn.ParameterList([nn.Parameter(torch.full((), float(i + 1))) for i in range(2)])
        s.extra = nn.ParameterDict({"bias": nn.Parameter(torch.zeros(1))})
        s.stages = [nn.Identity(), torch.tanh]

    def forward(s, x, only=None):
        out = collections.OrderedDict()
        for (name, head), gain in zip(s.heads.items(), s.gains):
            if only is not None and name not in only:
                continue
            y = head(x) * gain + s.extra["bias"]
            for stage in s.stages:
                y = stage(y)
            out[name] = y
            print(name, tuple(y.shape), round(y.sum().item(), 4))
        s.widths = {k: v.shape[-1] for k, v in out.items()}
        return out


torch.manual_seed(0)
MIXED = Mixed()


@everyday((random_tensor(0, 2, 3), None), (random_tensor(1, 2, 3), ["b"]))
def containers_of_modules(x, only):
    out = MIXED(x, only)
    total = sum(p.numel() for n, p in MIXED.named_parameters() if "bias" not in n)
    return out, MIXED.widths, total, [n for n, _ in MIXED.named_children()]


@everyday((random_tensor(0, 2, 3),), (random_tensor(1, 2, 3),))
def round_trips(x):
    net = nn.Sequential(linear(3, 3), nn.ReLU())
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin[0].weight.mul_(2)
    difference = (net(x) - twin(x)).abs().sum().item()
    print("difference", round(difference, 4))
    twin.load_state_dict(net.state_dict())
    missing = net.load_state_dict({"0.weight": torch.zeros(3, 3)}, strict=False).missing_keys
    try:
        net.load_state_dict({"1.weight": torch.zeros(1)})
    except RuntimeError as error:
        print(str(error).splitlines()[0])
    return net(x).detach(), twin(x).detach(), missing


@everyday((random_tensor(0, 8, 2),), (random_tensor(1, 8, 2),))
def plateau(x):
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([{"params": [w], "lr": 0.5}], lr=0.1, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    rates = []
    for epoch in itertools.count():
        loss = ((x @ w) ** 2).mean() + 1
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step(loss.item())
        rates.append(optimizer.param_groups[0]["lr"])
        if rates[-1] < 0.1 or epoch > 5:
            break
    print(epoch, rates)
    return w.detach(), rates, len(optimizer.state), scheduler.num_bad_epochs


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def closure_steps(x):
    w = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], lr=0.5, max_iter=3)
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = ((w - x) ** 2).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(2)]
    print(calls, losses)
    return w.detach(), calls


@everyday((random_tensor(0, 3, 2),), (random_tensor(1, 3, 2),))
def hooks_of_modules(x):
    net = nn.Sequential(collections.OrderedDict(a=linear(2, 2), b=nn.ReLU(), c=linear(2, 1)))
    shapes, seen = {}, []

    def watch(name):
        def hook(module, inputs, output):
            shapes[name] = tuple(output.shape)
            seen.append(f"{name}:{output.mean().item():.3f}")

        return hook

    handles = [m.register_forward_hook(watch(n)) for n, m in net.named_children()]
    pre = net.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    back = net.c.register_full_backward_hook(lambda m, gi, go: print("back", go[0].sum().item()))
    y = net(x)
    print(shapes)
    y.sum().backward()
    for handle in (*handles, pre, back):
        handle.remove()
    return y.detach(), net(x).detach(), seen, net.a.weight.grad


@everyday((random_tensor(0, 5, 2), 1.0), (random_tensor(1, 5, 2), 0.1))
def newton(x, start):
    t = torch.tensor(start, requires_grad=True)
    for i in range(10):
        f = ((x.sum(1) - t) ** 4).sum()
        (g,) = torch.autograd.grad(f, t, create_graph=True)
        (h,) = torch.autograd.grad(g, t)
        if math.isclose(g.item(), 0, abs_tol=1e-2):
            print("flat after", i)
            break
        t = (t - g / h).detach().requires_grad_()
    else:
        print("not flat", round(g.item(), 3))
    return t.detach(), i


def reset() -> None:
    """Make the state as it was in the beginning."""
    torch.manual_seed(0)
    NORM.__init__()
    MIXED.__init__()
