from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.state.stories import XS, Static, X, attempt, story


@story(programs=1)
def test_hist_item(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.history = []

        def forward(self, x):
            loss = (x**2).sum()
            self.history.append(loss.item())
            return loss

    m = static(M())
    return ([m(x) for x in XS], m.history)


@story(programs=1)
def test_hist_read(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []

        def forward(self, x):
            self.h.append(x.sum().item())
            return x * sum(self.h) / len(self.h)

    m = static(M())
    return ([m(x) for x in XS], m.h)


@story(programs=1)
def test_hist_mixed(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []
            self.n = 0

        def forward(self, x):
            self.n += 1
            self.h.append((self.n, x.sum().item()))
            self.last = self.h
            return x

    m = static(M())
    return ([m(x) for x in XS], m.h)


@story(programs=1)
def test_hist_tensors(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []
            self.d = {"l": []}

        def forward(self, x):
            self.h.append(x * 2)
            self.d["l"].append({"a": x.sum().item()})
            return x

    m = static(M())
    return ([m(x) for x in XS], m.h, m.d)


@story(programs=1)
def test_hist_last(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = [1.0]

        def forward(self, x):
            self.h.append(self.h[-1] * 0.5 + x.sum().item())
            if len(self.h) > 3:
                self.h.pop(0)
            return x * self.h[0]

    m = static(M())
    return ([m(x) for x in XS], m.h)


@story(programs=2)
def test_hist_changed_type(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []

        def forward(self, x):
            self.h.append(x.sum().item())
            return x * sum(self.h)

    m = static(M())
    o = [m(x) for x in XS[:3]]
    m.h.append(3)
    o.append(m(X))
    m.h = []
    o.append(m(X))
    m.h = ["a"]
    o.append(attempt(m, X))
    m.h = None
    o.append(attempt(m, X))
    return (o, m.h)


@story(programs=1)
def test_hist_numpy(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []

        def forward(self, x):
            self.h.append(x.sum().item())
            return x * max(self.h) + min(self.h)

    m = static(M())
    return ([m(x) for x in XS], m.h)


@story(programs=1)
def test_hist_alias(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []
            self.g = self.h

        def forward(self, x):
            self.h.append(x.sum().item())
            return x * len(self.g)

    m = static(M())
    return ([m(x) for x in XS], m.h, m.g is m.h)


@story(programs=1)
def test_hist_raise(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []

        def forward(self, x):
            self.h.append(x.sum().item())
            if x.sum() < 0:
                raise ValueError(len(self.h))
            self.h.append(0.0)
            return x

    m = static(M())
    return ([attempt(m, x) for x in XS], m.h)


@story(programs=1)
def test_hist_returned(static: Static) -> Any:
    h = []

    def f(x):
        h.append(x.mean().item())
        return h

    g = static(f)
    o = [list(g(x)) for x in XS]
    return (o, h, g(X) is h)


@story(programs=5)
def test_list_tensors(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.h = []

        def forward(self, x):
            self.h.append(x * 2)
            return torch.stack(self.h).sum(0)

    m = static(M())
    return ([m(x) for x in XS], m.h)


@story(programs=5)
def test_fresh_list_attr(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.maps = []

        def forward(self, x):
            self.maps = []
            for _ in range(3):
                x = x * 1.1
                self.maps.append(x.sum().item())
            return x

    m = static(M())
    return [(m(x), list(m.maps)) for x in XS]


@story(programs=4)
def test_deque_replay(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.buf = deque(maxlen=3)

        def forward(self, x):
            self.buf.append(x)
            return torch.stack(list(self.buf)).mean(0)

    m = static(M())
    return ([m(x) for x in XS], m.buf)


@story(programs=3)
def test_deque_arm(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.buf = deque()

        def forward(self, x):
            if x.sum() > 0:
                self.buf.append(x.sum().item())
            elif len(self.buf) > 0:
                self.buf.popleft()
            return x * len(self.buf)

    m = static(M())
    return ([m(x) for x in XS], m.buf)


@story(programs=5)
def test_kv_list(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.q = nn.Linear(3, 3)
            self.k = nn.Linear(3, 3)
            self.v = nn.Linear(3, 3)
            self.ks = []
            self.vs = []

        def reset(self):
            self.ks.clear()
            self.vs.clear()

        def forward(self, x):
            x = x[None]
            self.ks.append(self.k(x))
            self.vs.append(self.v(x))
            K = torch.cat(self.ks)
            V = torch.cat(self.vs)
            return F.scaled_dot_product_attention(self.q(x)[None], K[None], V[None])[0]

    m = static(M())
    o = [m(x) for x in XS]
    m.reset()
    o += [m(x) for x in XS]
    return (o, m.ks)


@story(programs=5)
def test_kv_dict(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = {}

        def forward(self, x, layer):
            if layer in self.cache:
                self.cache[layer] = torch.cat([self.cache[layer], x[None]])
            else:
                self.cache[layer] = x[None]
            return self.cache[layer].sum(0)

    m = static(M())
    return ([m(x, i % 2) for i, x in enumerate(XS)], m.cache)


@story(programs=5)
def test_kv_tensor_none(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = None

        def forward(self, x):
            self.k = x[None] if self.k is None else torch.cat([self.k, x[None]])
            return self.k.mean(0)

    m = static(M())
    o = [m(x) for x in XS]
    m.k = None
    return (o + [m(x) for x in XS[:2]], m.k)


@story(programs=3)
def test_kv_datadep(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = torch.zeros(1, 3)

        def forward(self, x):
            if x.sum() > 0:
                self.k = torch.cat([self.k, x[None]])
            return self.k.mean(0)

    m = static(M())
    o = [m(x) for x in XS]
    return (o, m.k)


@story(programs=3)
def test_kv_datadep_list(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.ks = []

        def forward(self, x):
            if x.sum() > 0:
                self.ks.append(x)
            if len(self.ks) == 0:
                return x
            return torch.stack(self.ks).mean(0)

    m = static(M())
    o = [m(x) for x in XS]
    return (o, m.ks)


@story(programs=5)
def test_kv_loop_grow(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = torch.zeros(0, 3)

        def forward(self, x):
            while x.norm() > 1:
                x = x / 2
                self.k = torch.cat([self.k, x[None]])
            return self.k.sum(0)

    m = static(M())
    o = [m(x) for x in XS]
    return (o, m.k)


@story(programs=1)
def test_kv_static(static: Static) -> Any:

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("k", torch.zeros(8, 3), persistent=False)
            self.pos = 0

        def forward(self, x):
            self.k[self.pos] = x
            self.pos += 1
            mask = torch.arange(8) < self.pos
            return (self.k * mask[:, None]).sum(0) / self.pos

    m = static(M())
    o = [m(x) for x in XS]
    m.pos = 0
    m.k.zero_()
    return (o + [m(x) for x in XS[:2]], m.k, m.pos)


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sums: list[float] = [1.0]

    def forward(self, x):
        self.sums.append(x.sum().item())
        return x * sum(self.sums)


def test_a_file_keeps_no_list_that_it_reads_and_changes(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="sums") as raised:
        sg.save(Remembers(), tmp_path / "remembers.pt2", args=(X,))
    assert raised.value.reason.code == "SG402"
    assert not list(tmp_path.iterdir())


def popped_by_its_type(s: Tensor) -> Any:
    last = HELD[-1]
    if isinstance(last, float):
        HELD.pop()
    while s > 1:
        s = s - 1
        HELD.append(1)
    return s, last


def asked_for_the_type_of_its_first(s: Tensor) -> Any:
    kind = type(HELD[0]).__name__
    del HELD[0]
    HELD.append(1)
    return s, kind


HELD: list[Any] = []


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", [popped_by_its_type, asked_for_the_type_of_its_first])
def test_what_was_there_and_is_taken_out_may_have_another_type(
    function: Callable[..., Any], full_graph: bool
) -> None:
    """As what the list grows by: it counts what the list holds when the call begins."""
    static = sg.to_static(function, full_graph=full_graph, strict=not full_graph, backend="eager")
    for held in ([0, -2.0], [0, 1], [0.5, 1], [True, 2], [0, 1, 2.5]):
        for s in (-1.0, 3.0):
            found = []
            for target in (function, static):
                HELD[:] = held
                found.append(repr((target(torch.tensor(s)), HELD)))
            assert found[0] == found[1]
