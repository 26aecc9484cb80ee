from __future__ import annotations

import copy
import io
import pickle
from types import MethodType
from typing import Any

import torch
from torch import nn

import stillgraph as sg
from tests.unit.state.stories import Static, Two, X, state, story


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


class Decorated(Plain):
    @sg.to_static(backend="eager")
    def forward(self, x):
        return super().forward(x)


def either(static):
    """A module of a class that decorates its ``forward``, or of one that does not."""
    is_original = static(nn.Identity()).forward.__class__ is MethodType
    return Plain() if is_original else Decorated()


@story(programs=2)
def test_deepcopy_inst(static: Static) -> Any:
    m = static(Plain())
    o = [m(X)]
    c = copy.deepcopy(m)
    o.append(c(X))
    with torch.no_grad():
        c.l.weight.zero_()
    o += [c(X), m(X), c(-X), m(-X)]
    return (o, state(m), state(c), type(c).__name__)


@story(programs=2)
def test_deepcopy_before(static: Static) -> Any:
    m = static(Plain())
    c = copy.deepcopy(m)
    return (m(X), c(X), c(-X), state(m), state(c), list(c.state_dict()))


@story(programs=3)
def test_deepcopy_state_shared(static: Static) -> Any:
    m = static(Plain())
    m(X)
    c = copy.deepcopy(m)
    d = copy.deepcopy(c)
    for t in (m, c, d):
        for _ in range(3):
            t(X)
    return [(t.k, t.n) for t in (m, c, d)]


@story(programs=1)
def test_pickle_inst(static: Static) -> Any:
    m = static(Plain())
    o = [m(X)]
    c = pickle.loads(pickle.dumps(m))
    o += [c(X), m(X), c(-X)]
    with torch.no_grad():
        c.l.weight.zero_()
    o += [c(X), m(X), c(-X), m(-X)]
    return (o, state(m), state(c))


@story(programs=1)
def test_torch_save_inst(static: Static) -> Any:
    m = static(Plain())
    o = [m(X)]
    b = io.BytesIO()
    torch.save(m, b)
    b.seek(0)
    c = torch.load(b, weights_only=False)
    o += [c(X), m(X), c(-X)]
    b = io.BytesIO()
    torch.save(m.state_dict(), b)
    b.seek(0)
    m.load_state_dict(torch.load(b))
    o.append(m(X))
    return (o, state(m), state(c))


@story(programs=0)  # of the module that `either` asks
def test_deco_class(static: Static) -> Any:
    m = either(static)
    o = [m(X), m(-X)]
    c = copy.deepcopy(m)
    p = pickle.loads(pickle.dumps(m))
    q = copy.copy(m)
    for t in (m, c, p, q):
        o += [t(X), t(-X)]
    if isinstance(m, Decorated):
        assert Decorated.forward.cache_info().programs == 4, "each module has a program of its own"
    return (o, [(t.k, t.n, list(t.state_dict())) for t in (m, c, p, q)])


@story(programs=0)  # nothing is called
def test_keys(static: Static) -> Any:
    m = static(nn.Sequential(Plain(), nn.BatchNorm1d(3), Two()))
    return (
        list(m.state_dict()),
        [n for n, _ in m.named_parameters()],
        [n for n, _ in m.named_modules()],
        [n for n, _ in m.named_buffers()],
        [n for n, _ in m.named_children()],
        len(list(m.modules())),
        repr(m),
        type(m).__name__,
    )


@story(programs=3)
def test_nested_static(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = static(Plain())
            self.b = Plain()

        def forward(self, x):
            return self.b(self.a(x))

    m = static(M())
    o = [m(X), m(-X), m.a(X)]
    c = copy.deepcopy(m)
    o += [c(X), m(X)]
    return (o, state(m), state(c))


@story(programs=2)
def test_static_in_eager(static: Static) -> Any:
    inner = static(Plain())
    m = nn.Sequential(inner, nn.Linear(3, 3))
    o = [m(X), m(X)]
    c = copy.deepcopy(m)
    o.append(c(X))
    with torch.no_grad():
        c[0].l.weight.zero_()
    o += [c(X), m(X)]
    return (o, state(m), state(c))
