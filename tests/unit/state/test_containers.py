from __future__ import annotations

import collections
import dataclasses
import itertools
import types
from collections import Counter, defaultdict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.sampling import few
from tests.unit.state.stories import XS, Static, X, state, story

NT = collections.namedtuple("NT", "h c")


@dataclasses.dataclass
class St:
    n: int = 0
    ema: Tensor = None
    log: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Fz:
    n: int
    h: Tensor


@story(programs=1)
def test_nt_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.st = NT(torch.zeros(3), torch.zeros(3))

        def forward(self, x):
            h, c = self.st
            self.st = NT(h + x, c * 0.5 + x)
            return self.st.h * self.st.c

    m = static(M())
    return ([m(x) for x in XS], m.st)


@story(programs=1)
def test_lstm_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(3, 3)
            self.state = (torch.zeros(1, 3), torch.zeros(1, 3))

        def forward(self, x):
            self.state = self.cell(x[None], self.state)
            self.state = tuple(t.detach() for t in self.state)
            return self.state[0]

    m = static(M())
    return ([m(x) for x in XS], m.state)


@story(programs=2)
def test_lstm_state_none(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTM(3, 3)
            self.state = None

        def reset(self):
            self.state = None

        def forward(self, x):
            y, self.state = self.cell(x[None, None], self.state)
            self.state = tuple(t.detach() for t in self.state)
            return y

    m = static(M())
    o = [m(x) for x in XS]
    m.reset()
    o += [m(x) for x in XS]
    return (o, m.state)


@story(programs=1)
def test_tuple_num(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.st = (torch.zeros(3), 0, {"k": 0.5})

        def forward(self, x):
            h, n, d = self.st
            self.st = (h + x, n + 1, {"k": d["k"] * 2})
            return h * n * d["k"]

    m = static(M())
    return ([m(x) for x in XS], m.st)


@story(programs=1)
def test_nt_num(static: Static) -> Any:
    NT = collections.namedtuple("NT", "h n")

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.st = NT(torch.zeros(3), 0)

        def forward(self, x):
            self.st = self.st._replace(h=self.st.h + x, n=self.st.n + 1)
            return self.st.h * self.st.n

    m = static(M())
    return ([m(x) for x in XS], tuple(m.st))


@story(programs=1)
def test_dataclass_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.st = St(0, torch.zeros(3))

        def forward(self, x):
            self.st.n += 1
            self.st.ema = self.st.ema * 0.9 + x
            self.st.log.append(float(x.sum()))
            return self.st.ema * self.st.n

    m = static(M())
    return ([m(x) for x in XS], m.st)


@story(programs=1)
def test_frozen_dc_state(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.st = Fz(0, torch.zeros(3))

        def forward(self, x):
            self.st = dataclasses.replace(self.st, n=self.st.n + 1, h=self.st.h + x)
            return self.st.h * self.st.n

    m = static(M())
    return ([m(x) for x in XS], m.st)


@story(programs=1)
def test_list_counter(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = [0, 0.5]

        def forward(self, x):
            self.c[0] += 1
            self.c[1] *= 2
            return x * self.c[0]

    m = static(M())
    return ([m(x) for x in XS], m.c)


@story(programs=1)
def test_stats_dict(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.stats = {"n": 0, "sum": 0.0}

        def forward(self, x):
            self.stats["n"] += 1
            self.stats["sum"] += x.sum().item()
            return x / self.stats["n"]

    m = static(M())
    return ([m(x) for x in XS], m.stats)


@story(programs=1)
def test_nested_dict(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.st = {"opt": {"step": 0, "lrs": [0.1]}}

        def forward(self, x):
            self.st["opt"]["step"] += 1
            self.st["opt"]["lrs"][0] *= 0.9
            return x * self.st["opt"]["lrs"][0]

    m = static(M())
    r = ([m(x) for x in XS], m.st)
    return r


@story(programs=2)
def test_dict_update(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.d = {}

        def forward(self, x):
            self.d.update(mean=x.mean().item(), n=self.d.get("n", 0) + 1)
            self.d.setdefault("first", x.sum().item())
            return x * self.d["n"]

    m = static(M())
    return ([m(x) for x in XS], m.d)


@story(programs=2)
def test_counter_cls(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = Counter()
            self.d = defaultdict(int)

        def forward(self, x, k):
            self.c[k] += 1
            self.d[k] += 2
            return x * self.c[k]

    m = static(M())
    return ([m(x, "a") for x in XS], m.c, m.d)


@story(programs=1)
def test_np_counter(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.skipped = 0
            self.stats = {"skipped": 0, "mean": [0.0, 0.0]}

        def forward(self, x):
            self.calls += 1
            if not torch.isfinite(x).all():
                self.skipped += 1
                self.stats["skipped"] += 1
                return x * 0
            self.stats["mean"][0] += x.mean().item()
            self.stats["mean"][1] = self.stats["mean"][0] / (self.calls - self.skipped)
            return x

    m = static(M())
    return ([m(x) for x in [X, X / 0, X * 2]], m.stats, m.calls, m.skipped)


@story(programs=1)
def test_ewc_dict(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3)
            self.old = {n: p.detach().clone() for n, p in self.l.named_parameters()}

        def consolidate(self):
            self.old = {n: p.detach().clone() for n, p in self.l.named_parameters()}

        def forward(self, x):
            return self.l(x).sum() + sum((((p - self.old[n]) ** 2).sum() for n, p in self.l.named_parameters()))

    m = static(M())
    o = []
    opt = torch.optim.SGD(m.parameters(), 0.1)
    for i in range(4):
        y = m(X)
        y.backward()
        opt.step()
        opt.zero_grad()
        o.append(y.detach())
        if i == 1:
            m.consolidate()
    return (o, state(m))


@story(programs=2)
def test_arg_state(static: Static) -> Any:

    def f(x, st):
        st["n"] = st.get("n", 0) + 1
        st["t"] = x * st["n"]
        return st["t"]

    g = static(f)
    st = {}
    return ([g(x, st) for x in XS], st)


@story(programs=2)
def test_arg_state_obj(static: Static) -> Any:

    def f(x, st):
        st.n += 1
        st.t = x * st.n
        return st.t

    g = static(f)
    st = types.SimpleNamespace(n=0, t=None)
    return ([g(x, st) for x in XS], vars(st))


@story(programs=1)
def test_default_mutable(static: Static) -> Any:

    def f(x, cache=[]):  # noqa: B006  # this is what is tested
        cache.append(x.sum().item())
        return x * len(cache)

    g = static(f)
    return ([g(x) for x in XS], f.__defaults__)


@story(programs=1)
def test_default_dict(static: Static) -> Any:

    def f(x, cache={"n": 0}):  # noqa: B006  # this is what is tested
        cache["n"] += 1
        return x * cache["n"]

    g = static(f)
    return ([g(x) for x in XS], f.__defaults__)


def _default(target: Any, x: Tensor) -> Tensor:
    target.setdefault("n", 0)
    target["n"] += 1
    return x * target["n"]


def _cleared(target: Any, x: Tensor) -> Tensor:
    target.clear()
    return _default(target, x)


def _stored(target: Any, x: Tensor) -> Tensor:
    target.pop("n", None)
    target["n"] = 2
    target["n"] += 1
    return x * target["n"]


def _updated(target: Any, x: Tensor) -> Tensor:
    target.update(n=3)
    target["n"] *= 2
    return x * target["n"]


def _attribute(target: Any, x: Tensor) -> Tensor:
    if not hasattr(target, "n"):
        target.n = 0
    target.n += 1
    return x * target.n


def _appended(target: Any, x: Tensor) -> Tensor:
    target.append(5)
    target[-1] += 1
    return x * target[-1]


_DICTS = (dict, collections.OrderedDict, collections.UserDict, lambda: defaultdict(int))
NEW = [
    *((_attribute, types.SimpleNamespace), (_appended, list)),
    *itertools.product((_default, _cleared, _stored, _updated), _DICTS),
]


@pytest.mark.parametrize(
    ("act", "make", "passed"), few([(*each, passed) for each in NEW for passed in (True, False)], 3)
)
def test_a_number_that_the_call_itself_puts_there_and_changes(act: Any, make: Any, passed: bool) -> None:
    kept, ours = make(), make()
    static = sg.to_static(act if passed else lambda x: act(ours, x), backend="eager")
    for _ in range(4):
        assert_same(act(kept, X), static(ours, X) if passed else static(X))
    assert ours == kept
    assert 1 <= static.cache_info().misses <= 2
    assert static.cache_info().hits + static.cache_info().misses == 4
