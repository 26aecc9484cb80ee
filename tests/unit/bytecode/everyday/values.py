"""Everyday functions: numbers of tensors among texts, containers, files, logs, modules."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import io
import itertools
import json
import logging
import os
import random
import re
import time
import warnings

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.unit.bytecode.everyday.program import everyday, random_tensor


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),), (random_tensor(2, 4),))
def np_mix(x):
    a = x.numpy() if not x.requires_grad else x.detach().numpy()
    m = float(np.median(a))
    y = x - m
    w = torch.from_numpy(np.sort(a))
    return (y * w, m)


@everyday((random_tensor(0, 4), 3), (random_tensor(1, 4), 3), (random_tensor(2, 4), 5))
def json_log(x, n):
    rec = {"mean": x.mean().item(), "n": n, "shape": list(x.shape)}
    s = json.dumps(rec)
    print(s)
    back = json.loads(s)
    return (x * back["mean"] + back["n"], s)


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def regex(x):
    s = f"loss={x.sum().item():.4f}"
    m = re.match("loss=(-?[\\d.]+)", s)
    return (x * float(m.group(1)), m.group(0))


class Mode(enum.Enum):
    A = 1
    B = 2


@everyday((random_tensor(0, 4), Mode.A), (random_tensor(0, 4), Mode.B))
def enums(x, m):
    if m is Mode.A:
        x = x + 1
    print(m, m.name, m.value, x.sum().item())
    return x * m.value


@dataclasses.dataclass
class Out:
    loss: torch.Tensor
    logs: dict = dataclasses.field(default_factory=dict)

    def total(self):
        return self.loss + sum(self.logs.values())


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def dc(x):
    o = Out(x.sum())
    o.logs["a"] = x.mean().item()
    print(o.logs)
    o.logs["b"] = (x * 2).mean().item()
    return (o.total(), o)


@everyday((random_tensor(0, 6),), (random_tensor(1, 6),))
def heap(x):
    h = []
    for i, v in enumerate(x.tolist()):
        heapq.heappush(h, (v, i))
        if len(h) > 3:
            heapq.heappop(h)
    idx = [i for _, i in sorted(h)]
    return (x[idx].sum(), idx)


@everyday((random_tensor(0, 6),), (random_tensor(1, 6),))
def buckets(x):
    d = collections.defaultdict(list)
    for v in x:
        d["p" if v.item() > 0 else "n"].append(v * 2)
    return {k: torch.stack(v) for k, v in d.items()}


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def timing(x):
    t = time.perf_counter()
    y = x @ x
    dt = time.perf_counter() - t
    assert dt >= 0
    return y


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def redirect(x):
    buf = io.StringIO()
    with contextlib.redirect_stdout(buf):
        print("v", x[0].item())
        y = x * 2
        print("w", y.sum().item())
    return (y, buf.getvalue())


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def warned(x):
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        warnings.warn(f"x {x[0].item():.3f}", stacklevel=2)
        y = x + 1
    return (y, [str(i.message) for i in w])


@everyday((random_tensor(0, 3), 0), (random_tensor(1, 3), 1), (random_tensor(1, 3), 2))
def tries(x, k):
    try:
        if k == 0:
            raise ValueError(f"bad {x[0].item():.2f}")
        if k == 1:
            return x / (1 // 0)
        y = x * 2
    except ValueError as e:
        print("caught", e)
        y = x - 1
    except ZeroDivisionError:
        y = x - 2
    else:
        print("else", y.sum().item())
    finally:
        print("fin", k)
    return y


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def rnd(x):
    random.seed(3)
    np.random.seed(1)
    torch.manual_seed(5)
    a = random.random()
    b = np.random.rand()
    c = torch.rand(3)
    return (x * a + b + c, random.randint(0, 10))


@everyday((random_tensor(0, 3, 3),), (random_tensor(1, 3, 3),))
def gens(x):

    def rows():
        for r in x:
            print("row", r.sum().item())
            yield (r * 2)

    out = list(rows())
    it = rows()
    first = next(it)
    return (torch.stack(out), first)


@everyday((random_tensor(0, 8),), (random_tensor(1, 8),))
def sorting(x):
    order = sorted(range(len(x)), key=lambda i: x[i].item(), reverse=True)
    y = x[order]
    return (y, order, max(x.tolist()), min(range(8), key=lambda i: abs(x[i]).item()))


cache = {}


@everyday((random_tensor(0, 3), 1), (random_tensor(1, 3), 1), (random_tensor(2, 3), 2))
def caching(x, k):
    if k not in cache:
        cache[k] = x.mean().item()
        print("miss", k)
    return x * cache[k]


@functools.lru_cache(None)
def table(n):
    print("table", n)
    return torch.arange(float(n))


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def lru(x):
    return x + table(3)


class Meter:
    def __init__(s):
        s.sum = 0.0
        s.n = 0
        s.hist = []

    def update(s, v, n=1):
        s.sum += v * n
        s.n += n
        s.hist.append(v)

    @property
    def avg(s):
        return s.sum / max(s.n, 1)

    def __str__(s):
        return f"avg={s.avg:.4f} (n={s.n})"


meter = Meter()


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),), (random_tensor(2, 3),), (random_tensor(3, 3),))
def metering(x):
    loss = (x**2).mean()
    meter.update(loss.item(), x.size(0))
    if meter.n % 6 == 0:
        print("log", meter)
    return loss * meter.avg


log = logging.getLogger("odd")


log.propagate = False


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def logs(x):
    log.info("x=%.3f", x.sum().item())
    y = x * 2
    log.debug("no %s", y)
    return y


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def walrus(x):
    if (s := x.sum().item()) > 0:
        print("pos", s)
    else:
        print("neg", s)
    return x * s


@everyday(([1, 2, 3], random_tensor(0, 3)), ([4, 5], random_tensor(1, 2)))
def lists(values, x):
    values.append(round(x.sum().item(), 3))
    values.sort()
    values[0] = -1
    a, *b = values
    print(a, b)
    return (x * a, b, values[::-1])


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def strs(x):
    parts = [f"{v:+.2f}" for v in x.tolist()]
    s = ",".join(parts)
    print(s)
    return (s.split(","), x.sum(), f"{s:>10}|{x.shape!r}", "%d%%" % len(s))  # noqa: UP031  # what is tested


@everyday((random_tensor(0, 5),), (random_tensor(1, 5),))
def whiles(x):
    n = 0
    while x.abs().max().item() > 0.1:
        x = x * 0.5
        n += 1
        if n % 2:
            continue
        print("it", n, round(x.abs().max().item(), 4))
        if n > 20:
            break
    else:
        print("done")
    return (x, n)


@everyday((random_tensor(0, 5),), (random_tensor(1, 5),))
def nested(x):

    def inner(y, depth=0):
        if depth == 3:
            return y
        print("d", depth, y.sum().item())
        return inner(y * 1.5, depth + 1) + depth

    return inner(x)


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.l = nn.Linear(3, 3)
        s.steps = 0
        s.losses = []

    def forward(s, x):
        s.steps += 1
        y = s.l(x)
        if y.mean() > 0:
            y = F.relu(y)
        else:
            y = -y
        s.losses.append(y.mean().item())
        if s.steps % 2 == 0:
            print("step", s.steps, s.losses[-1])
        return y


net = Net()


@everyday((random_tensor(0, 2, 3),), (random_tensor(1, 2, 3),), (random_tensor(2, 2, 3),), (random_tensor(3, 2, 3),))
def module(x):
    return (net(x), net.steps)


@everyday((random_tensor(0, 2, 3),), (random_tensor(1, 2, 3),))
def train(x):
    torch.manual_seed(0)
    m = nn.Linear(3, 1)
    o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    ls = []
    for i in range(3):
        o.zero_grad()
        loss = (m(x) ** 2).mean()
        loss.backward()
        o.step()
        ls.append(loss.item())
        print(i, ls[-1])
    return (ls, m.weight.detach())


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def zips(x):
    return (
        [a * b for a, b in zip(x, itertools.accumulate(x.tolist()))],
        list(itertools.chain([1], [2])),
        dict(zip("ab", x.unbind())),
    )


@everyday((random_tensor(0, 4), "relu"), (random_tensor(1, 4), "tanh"), (random_tensor(1, 4), "xx"))
def getter(x, name):
    f = getattr(torch, name, None)
    if f is None:
        print("no", name)
        return x
    return f(x)


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def matcher(x):
    match {"k": round(x.sum().item(), 1), "v": [1, x]}:
        case {"k": k, "v": [1, y]} if k > 0:
            print("m", k)
            return y * k
        case {"k": k}:
            return x - k


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def ctx(x):

    @contextlib.contextmanager
    def scope(n):
        print("enter", n)
        try:
            yield (n * 2)
        finally:
            print("exit", n)

    with scope(x[0].item()) as v, torch.no_grad():
        y = x * v
    return (y, y.requires_grad)


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def delv(x):
    y = x * 2
    z = y.sum().item()
    del y
    try:
        print(y)  # noqa: F821  # what is tested
    except UnboundLocalError as e:
        print(type(e).__name__, e)
    return z


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def env(x):
    os.environ["ODD"] = str(x[0].item())
    return (x * float(os.environ["ODD"]), os.path.join("a", "b"), os.getenv("ODD"))


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def deco(x):

    def timed(f):

        @functools.wraps(f)
        def w(*a, **k):
            print(">", f.__name__)
            r = f(*a, **k)
            print("<", r.sum().item())
            return r

        return w

    @timed
    def g(y, s=1):
        return y * s

    return g(x, s=3)


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def setops(x):
    s = {int(v * 3) for v in x}
    t = s | {0, 1}
    return (sorted(t), x.sum(), len(s & t), frozenset(s) == s)


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def deep(x):
    st = {"m": [x.clone()], "v": {"a": x.mean().item()}}
    b = copy.deepcopy(st)
    st["m"][0].add_(1)
    print(st["v"], b["v"])
    b["v"]["a"] += 1
    return (st, b)


def reset() -> None:
    """Make the state as it was in the beginning."""
    cache.clear()
    table.cache_clear()
    meter.__init__()
    torch.manual_seed(0)
    net.__init__()
