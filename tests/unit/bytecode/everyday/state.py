"""Everyday functions: training loops, objects with a state, classes, closures, the standard library."""

from __future__ import annotations

import collections
import contextlib
import datetime
import decimal
import fractions
import functools
import hashlib
import io
import math
import pickle
import random
import statistics
import string
import textwrap
import threading
import types
import weakref

import torch
import torch.nn as nn

from tests.unit.bytecode.everyday.program import everyday, random_tensor


class Agent:
    def __init__(s):
        s.q = collections.defaultdict(float)
        s.eps = 0.5
        s.trace = []

    def act(s, state, rng):
        if rng.random() < s.eps:
            return rng.randrange(3)
        return max(range(3), key=lambda a: s.q[state, a])

    def learn(s, k, r):
        s.q[k] += 0.1 * (r - s.q[k])
        s.trace.append(r)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def rl(w):
    rng = random.Random(0)
    ag = Agent()
    st = 0
    for t in range(5):
        a = ag.act(st, rng)
        r = (w[a] * (t + 1)).item()
        ag.learn((st, a), r)
        st = (st + a) % 3
        if r < -1:
            print("bad", t, round(r, 3))
            break
    return (torch.tensor(ag.trace).sum() * w, dict(ag.q))


@everyday((random_tensor(0, 4, 5),), (random_tensor(1, 4, 5),))
def beam(lp):
    beams = [([], 0.0)]
    for t in range(lp.size(0)):
        cand = [([*seq, i], sc + lp[t, i].item()) for seq, sc in beams for i in range(lp.size(1))]
        cand.sort(key=lambda c: -c[1])
        beams = cand[:2]
    print(beams[0])
    return (torch.tensor(beams[0][0]), beams[0][1])


class EarlyStopping:
    def __init__(s, p):
        s.p = p
        s.best = None
        s.bad = 0
        s.stop = False

    def __call__(s, v):
        if s.best is None or v < s.best - 0.001:
            s.best = v
            s.bad = 0
        else:
            s.bad += 1
            if s.bad >= s.p:
                s.stop = True
        return s.stop


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def early(x):
    es = EarlyStopping(2)
    w = torch.zeros(4, requires_grad=True)
    hist = []
    opt = torch.optim.Adam([w], lr=0.5)
    sch = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
    for ep in range(8):
        loss = ((w - x) ** 2).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sch.step()
        hist.append((ep, loss.item(), sch.get_last_lr()[0]))
        if es(loss.item()):
            print("stop", ep)
            break
    else:
        print("all")
    return (w.detach(), hist, es.best)


@everyday((random_tensor(0, 6, 2),), (random_tensor(1, 6, 2),))
def loader(x):
    ds = torch.utils.data.TensorDataset(x, x.sum(1))
    dl = torch.utils.data.DataLoader(ds, batch_size=4)
    tot = 0.0
    n = 0
    for i, (a, b) in enumerate(dl):
        tot += (a.mean() * b.mean()).item()
        n += len(a)
        print(i, len(a))
    return tot / n


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def saveload(x):
    b = io.BytesIO()
    torch.save({"x": x, "n": x.sum().item()}, b)
    b.seek(0)
    d = torch.load(b)
    return (d["x"] * d["n"], len(pickle.dumps([1])))


vocab = "abcdefgh"


@everyday((random_tensor(0, 8), 3), (random_tensor(1, 8), 5))
def textgen(logits, n):
    out = ""
    while len(out) < n:
        i = int(logits.argmax())
        out += vocab[i]
        logits = logits.clone()
        logits[i] -= 1.5
        if out.endswith("aa"):
            break
    print(out.upper())
    return (out, logits)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def nonloc(x):
    n = 0
    log = []

    def step(y):
        nonlocal n
        n += 1
        log.append((n, y.sum().item()))
        return y * 2 if y.sum().item() > 0 else y - 1

    y = step(x)
    print(log)
    y = step(y)
    y = step(y)
    return (y, n, log)


COUNT = 0


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),), (random_tensor(2, 3),))
def glob(x):
    global COUNT
    COUNT += 1
    print("call", COUNT)
    y = x * COUNT
    COUNT += int(y.sum().item() > 0)
    return (y, COUNT)


lock = threading.Lock()


tls = threading.local()


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def locks(x):
    with lock:
        tls.v = x.sum().item()
        y = x * 2
        print("in", lock.locked())
    return (y * tls.v, lock.locked())


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def exits(x):
    with contextlib.ExitStack() as st:
        st.callback(print, "cb", x[0].item())
        st.enter_context(contextlib.nullcontext(1))
        y = x + 1
        print("body")
    return y


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def hooks(x):
    layer = nn.Linear(3, 2)
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    seen = []
    h = layer.register_forward_hook(lambda m, i, o: (seen.append(o.sum().item()), print("hook", o.shape))[0])
    y = layer(x)
    h.remove()
    z = layer(x)
    return (y + z, seen)


class Sq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def custom(x):
    x = x.requires_grad_()
    y = Sq.apply(x).sum()
    print("y", y.item())
    (g,) = torch.autograd.grad(y, x)
    return g


@functools.singledispatch
def show(v):
    return f"obj {v}"


@show.register
def _(v: float):
    return f"float {v:.2f}"


@show.register
def _(v: list):
    return f"list {len(v)}"


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def dispatch(x):
    r = (show(x.sum().item()), show(x.tolist()), show(3))
    print(r)
    return (x, r)


@everyday((random_tensor(0, 5),), (random_tensor(1, 5),))
def lazies(x):
    m = (v.item() * 2 for v in x)
    f = list(filter(lambda v: v > 0, m))
    return (
        sum(f),
        any(v > 1 for v in x.tolist()),
        all(v.item() < 9 for v in x),
        functools.reduce(lambda a, b: a + b, x.tolist()),
        list(map(str, [1])),
    )


@everyday((random_tensor(0, 5),), (random_tensor(1, 5),))
def slices(x):
    values = x.tolist()
    values[1:3] = [0.0]
    del values[0]
    values += [x.max().item()]
    values *= 2
    values.reverse()
    i = values.index(0.0)
    values.insert(i, 7.0)
    v = values.pop()
    values.remove(7.0)
    print(len(values))
    return (torch.tensor(values) + v, values.count(0.0))


@everyday((random_tensor(0, 5),), (random_tensor(1, 5),))
def memo(x):
    memo = {}

    def fib(n):
        if n in memo:
            return memo[n]
        r = x[n % 5].item() if n < 2 else fib(n - 1) + fib(n - 2)
        memo[n] = r
        return r

    return (x * fib(6), memo)


@everyday((random_tensor(0, 5),), (random_tensor(1, 5),))
def stats(x):
    v = x.tolist()
    return (
        statistics.mean(v),
        statistics.median(v),
        max(v, default=0),
        sorted(v)[-2:],
        math.fsum(v),
        divmod(int(v[0] * 10), 3),
    )


@everyday((random_tensor(0, 2, 3),), (random_tensor(1, 2, 3),))
def asserts(x):
    assert x.dim() == 2, f"bad {x.shape}"
    n = x.norm().item()
    assert n > 0, n
    try:
        assert n < 0, f"norm {n:.2f}"
    except AssertionError as e:
        print(e)
    return x / n


class Node:
    def __init__(s, v, kids=()):
        s.v = v
        s.kids = list(kids)
        s.parent = None

    for_ = None

    def walk(s):
        yield s
        for k in s.kids:
            yield from k.walk()

    def __repr__(s):
        return f"N({s.v:.2f})"


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def tree(x):
    t = Node(x[0].item(), [Node(x[1].item()), Node(x[2].item(), [Node(1.0)])])
    for k in t.kids:
        k.parent = weakref.ref(t)
    print(list(t.walk()), t.kids[0].parent() is t)
    return sum(n.v for n in t.walk()) * x


class Vec:
    def __init__(s, a):
        s.a = a

    def __add__(s, o):
        return Vec(s.a + o.a)

    def __mul__(s, k):
        return Vec(s.a * k)

    __rmul__ = __mul__

    def __len__(s):
        return len(s.a)

    def __getitem__(s, i):
        return s.a[i]

    def __eq__(s, o):
        return bool((s.a == o.a).all())

    def __hash__(s):
        return 1

    def __bool__(s):
        return bool(s.a.sum() > 0)

    def __iter__(s):
        return iter(s.a)

    def __contains__(s, v):
        return v in s.a.tolist()

    def __call__(s, f):
        return Vec(f(s.a))


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def vecs(x):
    v = Vec(x)
    w = 2 * v + v * 3
    print(len(w), w == v, bool(w), 0.0 in w)
    if w:
        w = w(torch.relu)
    return (w.a, [e.item() for e in v], w[0])


class Lazy:
    @functools.cached_property
    def val(s):
        print("compute")
        return s.x.sum().item()

    def __init__(s, x):
        s.x = x

    def __getattr__(s, n):
        if n.startswith("get_"):
            return lambda: n[4:]
        raise AttributeError(n)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def lazy(x):
    made = Lazy(x)
    a = made.val
    b = made.val
    print(made.get_it())
    try:
        print(made.nope)
    except AttributeError as e:
        print("no", e)
    return (a + b, hasattr(made, "get_z"), getattr(made, "zzz", 3))


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def dates(x):
    d = datetime.timedelta(seconds=int(abs(x[0].item()) * 100))
    return (str(d), d.total_seconds() * x, decimal.Decimal("1.1") + 1, fractions.Fraction(1, 3))


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def hashes(x):
    h = hashlib.md5(str(x.tolist()).encode()).hexdigest()
    return (h[:4], x, textwrap.dedent("  a"), string.Template("$a").substitute(a=x[0].item()))


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def ns(x):
    n = types.SimpleNamespace(a=x.sum().item(), b=[])
    n.b.append(n.a)
    n.c = x * n.a
    print(n.b)
    vars(n)["d"] = 1
    return (n.c, n.b, n.d)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def namedt(x):
    P = collections.namedtuple("P", "a b")
    p = P(x.sum().item(), x)
    print(p.a)
    q = p._replace(a=1)
    return (q.a, p.b, p[0], tuple(p._asdict()))


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def deques(x):
    d = collections.deque(maxlen=3)
    for v in [*x.tolist(), 1.0, 2.0]:
        d.append(v)
    d.rotate(1)
    d.appendleft(9.0)
    c = collections.Counter("abca")
    c.update("b")
    od = collections.OrderedDict(a=1)
    od.move_to_end("a")
    print(list(d))
    return (sum(d) * x, c.most_common(1), od)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def strings(x):
    s = "".join("+" if v > 0 else "-" for v in x)
    t = s.replace("+", "p").split("p")
    print(s, t, s.count("+"))
    return (x * len(t), s.encode(), int("0b1", 2) if "p" in s else ord(s[0]))


@everyday((random_tensor(0, 3), 3), (random_tensor(1, 3), 0), (random_tensor(1, 3), -2))
def returns(x, n):
    for i in range(10):
        x = x + 1
        if i == n:
            return ("found", x)
        if n < 0:
            print("neg")
            try:
                return ("try", x)
            finally:
                print("cleanup", x.sum().item())
    return ("none", x)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def argskw(x):

    def f(a, /, b, *c, d=3, **e):
        print(a.sum().item(), b, c, d, sorted(e))
        return a * b + sum(c) + d + sum(e.values())

    kw = {"d": x[0].item(), "z": 2}
    return (f(x, 2, *[1, 2], **kw), f(x, b=4))


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def inplace(x):
    y = x.clone()
    y[0] = 5
    y += 1
    v = y[1:]
    v *= 2
    print(y.tolist())
    y[v > 0] = 0
    x.mul_(2)
    return (y, v, x)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def classes(x):

    class Local:
        n = 0

        def __init__(s, v):
            s.v = v
            type(s).n += 1

        @classmethod
        def make(c, v):
            return c(v * 2)

        @staticmethod
        def st(v):
            return v + 1

    a = Local.make(x.sum().item())
    Local(1)
    print(a.v, Local.n)
    return (Local.st(a.v) * x, Local.n)


def reset() -> None:
    """Make the state as it was in the beginning."""
    globals()["COUNT"] = 0
