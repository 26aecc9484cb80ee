"""Tensors, numbers and truth values of the run where Python asks for an index."""

from __future__ import annotations

import collections
import itertools
import operator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.trace.agreement import agree


def sliced(n: Tensor) -> Any:
    s = [1.0, 2.0, 3.0, 4.0]
    given = s[:n], s[n:], s[-n:], s[::n], tuple(s)[:n], s[slice(1, n)], s[n:3], s[: n + 9]
    return given, list(reversed(s[:n])), list(range(6)[:n]), list(range(9, 1, -2)[int(n) :]), list(range(6)[-n:5])


def counted(n: Tensor) -> Any:
    return list(range(n)), torch.zeros(n, 2), [0] * n, n * [1, 2], (1,) * n, [3] * int(n) + [1]


def picked(n: Tensor) -> Any:
    s = (5, 6, 7, 8)
    chosen = s[n], list(s)[n], [5, 6][bool(n == 2)], s[n == 2], range(5)[n], collections.deque(s)[n]
    return chosen, operator.index(n) + 1, operator.index(int(n)), operator.getitem(s, n)


def changed(n: Tensor) -> Any:
    a, b, c, d, e = ([1, 2, 3, 4] for _ in range(5))
    a[n] = 9
    del b[n]
    del c[n:]
    d.insert(n, 7)
    e *= n
    return a, b, c, d, e, [1, 2, 3].pop(n)


def others(n: Tensor) -> Any:
    start = list(enumerate("ab", n))
    cut = list(itertools.islice([1, 2, 3], n)), list(itertools.islice((4, 5, 6, 7), int(n), n + 1))
    return start, cut, round(2.345, n), round(2.345, int(n)), n << n


def out_of_range(n: Tensor) -> Any:
    return [1, 2, 3][n + 1]


EVERY = (sliced, counted, picked, changed, others, out_of_range)


@pytest.mark.parametrize("function", EVERY)
def test_as_in_eager(function: Any) -> None:
    agree(function, (torch.tensor(1),), (torch.tensor(2),))


@pytest.mark.parametrize("function", EVERY[:-1])
def test_without_a_full_graph(function: Any) -> None:
    traced = sg.symbolic_trace(function)
    for value in (2, 1):
        assert repr(traced(torch.tensor(value))) == repr(function(torch.tensor(value)))


USES = (lambda s, n: s[:n], lambda s, n: s[n], lambda s, n: operator.index(n), lambda s, n: s * n)


@pytest.mark.parametrize("use", USES)
def test_floats_are_no_indices(use: Any) -> None:
    agree(lambda n: use([1, 2, 3], n), (torch.tensor(1.0),))


# ---- masks of bytes, as torch had them before it had truth values
def masked(h: Tensor, m: Tensor) -> Any:
    return h[m], h[m > 0].sum(), h[m].shape[0]


def masked_in_an_arm(h: Tensor, m: Tensor) -> Any:
    h = h * 2
    if m.sum() > 0:
        return h[m]
    return h


def masked_in_a_loop(h: Tensor, m: Tensor) -> Any:
    for _ in range(3):
        h = h * 2
        if h[m].sum() > 6:
            break
    return h


def masked_columns(h: Tensor, m: Tensor) -> Any:
    rows = h.reshape(1, 3)
    return rows[:, m]


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("function", [masked, masked_in_an_arm, masked_in_a_loop, masked_columns])
def test_masks_of_bytes(function: Any) -> None:
    static = sg.to_static(function, backend="eager")
    for mask in ([1, 0, 1], [0, 0, 0], [0, 1, 0]):
        args = torch.tensor([1.0, 2.0, 3.0]), torch.tensor(mask, dtype=torch.uint8)
        torch.testing.assert_close(static(*args), function(*args))
    assert static.cache_info().programs == 1


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
def test_gradients_through_a_mask_of_bytes() -> None:
    x, mask = torch.ones(2, 2, requires_grad=True), torch.tensor([[1, 0], [1, 1]], dtype=torch.uint8)
    sg.to_static(lambda x, m: (x[m] * 3).sum(), backend="eager")(x, mask).backward()
    assert torch.equal(x.grad, mask * 3.0)


def test_a_mask_of_bytes_is_not_written_through() -> None:
    def function(h: Tensor, m: Tensor) -> Tensor:
        h = h * 2
        h[m] = h[m] + 1
        return h

    with pytest.raises(sg.CaptureError, match=r"Write through mask.bool\(\)") as caught:
        sg.to_static(function, backend="eager")(torch.ones(3), torch.tensor([1, 0, 1], dtype=torch.uint8))
    assert caught.value.reason.code == "SG304"


# ---- layers by an index of the run
class Experts(nn.Module):
    """Routed by counts of which the run knows how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Identity()])
        self.scales = nn.ParameterList([nn.Parameter(torch.full((2,), float(i))) for i in range(3)])

    def forward(self, x: Tensor, top: Tensor) -> Any:
        first = self.experts[int(top[0])](x) + self.scales[top[0]]
        for index, count in enumerate(torch.bincount(top, minlength=3).tolist()):
            if count:
                x = x + self.experts[index](x) * count
        return first, x


def test_layers() -> None:
    model = Experts()
    static = sg.to_static(Experts(), backend="eager")
    static.load_state_dict(model.state_dict())
    for top in ([0, 1, 1], [2, 2, 0], [1, 0, 2]):
        args = torch.ones(1, 2), torch.tensor(top)
        given, expected = static(*args), model(*args)
        torch.testing.assert_close(given, expected)
        for each, results in ((static, given), (model, expected)):
            each.zero_grad()
            sum(result.sum() for result in results).backward()
        for mine, eagers in zip(static.parameters(), model.parameters(), strict=True):
            assert (mine.grad is None) == (eagers.grad is None)
            torch.testing.assert_close(mine.grad, eagers.grad)


@pytest.mark.parametrize("index", [3, -4])
def test_a_layer_that_is_not_there(index: int) -> None:
    layers = nn.ModuleList([nn.Identity(), nn.ReLU(), nn.Tanh()])
    static: Any = sg.to_static(lambda x, n: layers[int(n)](x), backend="eager")
    assert torch.equal(static(torch.ones(2), torch.tensor(-1)), torch.ones(2).tanh())
    with pytest.raises(IndexError, match=f"^index {index} is out of range$"):
        static(torch.ones(2), torch.tensor(index))
