"""Arguments that are one tensor, views of one another, or parts of one memory, to functions that write in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.runtime.native.overlap import overlap
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import outcome, same_error

Pair = tuple[Tensor, Tensor]


def _memory() -> Tensor:
    return torch.arange(8.0) + 1


def _apart() -> Pair:
    return _memory(), _memory()


def _one() -> Pair:
    x = _memory()
    return x, x


def _whole_and_view() -> Pair:
    x = _memory()
    return x, x.view(8)


def _view_and_whole() -> Pair:
    x = _memory()
    return x.view(8), x


def _halves() -> Pair:
    x = torch.arange(16.0)
    return x[:8], x[8:]


def _shifted() -> Pair:
    x = torch.arange(9.0)
    return x[:8], x[1:]


def _reversed_roles() -> Pair:
    x = torch.arange(9.0)
    return x[1:], x[:8]


def _columns() -> Pair:
    x = torch.arange(16.0).view(8, 2)
    return x[:, 0], x[:, 1]


def _two_columns() -> Pair:
    x = torch.arange(24.0).view(8, 3)
    return x[:, 0], x[:, 0]


def _one_detached() -> Pair:
    x = _memory()
    return x, x.detach()


def _matrix_and_transposed() -> Pair:
    x = torch.arange(9.0).view(3, 3)
    return x, x.t()


KINDS: Sequence[Callable[[], Pair]] = (
    _apart,
    _one,
    _whole_and_view,
    _view_and_whole,
    _halves,
    _shifted,
    _reversed_roles,
    _columns,
    _two_columns,
    _one_detached,
    _matrix_and_transposed,
)


def adds(x: Tensor, y: Tensor) -> Tensor:
    x.add_(1)
    return y * 2 + x.sum()


def writes_on_either_path(x: Tensor, y: Tensor) -> Tensor:
    if x.sum() > 40:
        x.mul_(2)
    else:
        y -= 1
    return x.sum() * 100 + y.sum()


def writes_through_a_view(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    first = x.view_as(x)
    first[0] = 50.0
    return y + 1, first


def writes_after_reading(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    before = y.sin()
    x.copy_(before.sum().expand_as(x))
    return before, x + y.sum()


def writes_in_a_loop(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    total = torch.zeros(())
    while total < 60:
        x += 1
        total = total + y.sum()
        y.mul_(1.5)
    return total, x - y


def writes_to_both(x: Tensor, y: Tensor) -> Tensor:
    torch.add(x, y, out=x)
    y.clamp_(max=5)
    return x * y


def keeps_a_view(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    part = y[1:]
    if x.sum() > 0:
        x.neg_()
    part += 1
    return part * 1, x.sum()


FUNCTIONS: Sequence[Callable[[Tensor, Tensor], object]] = (
    adds,
    writes_on_either_path,
    writes_through_a_view,
    writes_after_reading,
    writes_in_a_loop,
    writes_to_both,
    keeps_a_view,
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_the_same_function_of_tensors_that_overlap_otherwise(
    backend: str, function: Callable[[Tensor, Tensor], object]
) -> None:
    static = sg.to_static(function, backend=backend, cache_size=2 * len(KINDS))
    for kind in [*KINDS[::-1], *KINDS]:
        expected, actual = outcome(function, kind()), outcome(static, kind())
        assert same_error(expected.pop("error"), actual.pop("error")), kind.__name__
        assert_same(expected, actual, kind.__name__)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_argument_that_is_a_part_of_a_parameter(backend: str) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.arange(4.0))
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            x.add_(1)
            self.seen += x.sum()
            return self.weight * 2, self.seen + x

    eager, ours = Scaled(), Scaled()
    static = sg.to_static(ours, backend=backend)
    with torch.no_grad():
        for part in (
            lambda m: torch.ones(4),
            lambda m: m.weight.data,
            lambda m: m.seen,
            lambda m: m.weight.detach().flip(0),
            lambda m: m.seen.view(4),
        ):
            expected, actual = eager(part(eager)), static(part(ours))
            assert_same((expected, dict(eager.state_dict())), (actual, dict(ours.state_dict())))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_through_overlapping_inputs(backend: str) -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(3)
        return (x * y).sum()

    static = sg.to_static(function, backend=backend)
    for parts in (lambda b: (b[:4], b[4:]), lambda b: (b[:4], b[2:6]), lambda b: (b[2:6], b[:4])):
        leaves = [torch.arange(8.0, requires_grad=True) for _ in range(2)]
        for leaf, called in zip(leaves, (function, static), strict=True):
            called(*parts(leaf * 1)).backward()
        assert_same(leaves[0].grad, leaves[1].grad)


def test_which_tensors_may_have_an_element_in_common() -> None:
    x = torch.arange(12.0)
    assert not overlap([])
    assert not overlap([x, x.clone(), 3, "text", None])
    assert overlap([x, x])
    assert overlap([x, 3, x[2:]])
    assert not overlap([x[:6], x[6:]])
    assert not overlap([x[6:], x[:6]])
    assert overlap([x[:7], x[6:]])
    assert overlap([x.view(6, 2)[:, 0], x.view(6, 2)[:, 1]])  # they have none, but one lies within the other
    assert not overlap([x[:0], x, x[12:]])
    assert not overlap([torch.empty(0), torch.empty(0)])
    assert overlap([x.expand(3, 12), x[11:]])
    assert overlap([nn.Parameter(x), x.view(torch.int32)])
    assert overlap([x[:6], x[6:]], gradients=True)  # their versions are counted together
    assert not overlap([x[:0], x, x[12:], torch.empty(0), torch.empty(0)], gradients=True)
