"""What goes into compiled regions, and what stays between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.runtime.native.region_examples import Examples

INPUTS = [torch.ones(3), -torch.ones(3), torch.full((3,), 0.4)]


def several_results_of_a_recursion(x: Tensor) -> Tensor:
    def halve(x: Tensor, depth: int) -> tuple[Tensor, Tensor]:
        if x.abs().max() < 0.3:
            return x, x + depth
        left, right = halve(x / 2, depth + 1)
        return left.sin() * 2, right.cos() + left

    left, right = halve(x, 0)
    return (left.sin() + right.cos()).tanh()


def several_results_of_a_try(x: Tensor) -> Tensor:
    try:
        if x.sum() > 0:
            raise ValueError("positive")
        y, z = x * 2, x + 1
    except ValueError:
        y, z = x * 3, x - 1
    return (y.sin() + z.cos()).tanh()


LSTM = torch.nn.LSTM(3, 3, 2, dropout=0.5)
GRU = torch.nn.GRU(3, 3, 2, dropout=0.5)
RNN = torch.nn.RNN(3, 3, 2, dropout=0.5)


@pytest.mark.slow
@pytest.mark.parametrize("grad", [True, False], ids=["grad", "no_grad"])
@pytest.mark.parametrize("layer", [LSTM, GRU, RNN], ids=lambda layer: type(layer).__name__)
def test_a_recurrent_layer_in_training_draws_what_eager_draws(layer: torch.nn.Module, grad: bool) -> None:
    def reads(x: Tensor) -> Tensor:
        y = layer(x.sin().expand(2, 2, 3))[0].sum() + torch.rand(3)
        if x.sum() > 0:
            y = y * 2
        return y + torch.rand(3)

    def drawn(function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
        torch.manual_seed(0)
        y = function(x)
        gradients = list(torch.autograd.grad(y.sum(), list(layer.parameters()))) if grad else []
        return y, gradients, torch.get_rng_state()

    static = sg.to_static(reads, backend="inductor")
    with torch.set_grad_enabled(grad):
        for x in INPUTS:
            torch.testing.assert_close(drawn(static, x), drawn(reads, x))
    assert static.cache_info().programs == 1


@pytest.mark.parametrize("function", [several_results_of_a_recursion, several_results_of_a_try])
def test_results_of_what_is_not_compiled_are_taken_out_before(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="aot_eager")
    for x in (*INPUTS, *(2 * x for x in INPUTS)):
        torch.testing.assert_close(static(x), function(x))
    assert static.cache_info().programs == 1


# ---- open sizes
class Counted:
    """A backend that runs what it is given, and counts it."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: torch.fx.GraphModule, examples: list[Any]) -> Any:
        self.graphs += 1
        return graph.forward


WEIGHT = torch.ones(4, 4)


def iterated(x: Tensor) -> tuple[Tensor, int]:
    batch, length, width = x.shape
    h = (x.reshape(batch * length, width) @ WEIGHT).view(batch, length, -1).tanh()
    while h.abs().sum() > 1:
        h = h * 0.5 + h.mean(1, keepdim=True) * 0.1
    return torch.cat([h, h[:, :1]], 1).softmax(-1), length + 1


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_region_is_compiled_for_all_sizes(dynamic: bool | None) -> None:
    backend, graphs = Counted(), []
    static = sg.to_static(iterated, backend=backend, dynamic=dynamic)
    for batch, length in [(2, 3), (2, 5), (7, 5), (4, 9), (6, 2), (2, 3)]:
        x = torch.randn(batch, length, 4)
        torch.testing.assert_close(static(x), iterated(x))
        graphs.append(backend.graphs)
    of_a_program = graphs[0]  # in front of the loop, its test, its body, and what is behind
    assert of_a_program == 4
    kinds = 1 if dynamic else 3  # of programs: these sizes, any length, any batch and length
    assert graphs[-1] == graphs[2] == of_a_program * kinds


def test_sizes_that_the_data_decide_are_found_between_regions() -> None:
    backend, graphs = Counted(), []

    def chosen(x: Tensor) -> tuple[Tensor, int]:
        kept = (x.sin() * 2)[x > 0]
        return (kept.exp() + 1).log() * kept.shape[0], kept.shape[0]

    static = sg.to_static(chosen, backend=backend)
    for x in (torch.tensor([1.0, -1, 2]), torch.tensor([1.0, 3, 2]), torch.tensor([-1.0, -1, 1]), -torch.ones(3)):
        torch.testing.assert_close(static(x), chosen(x))
        graphs.append(backend.graphs)
    assert static.cache_info().programs == 1
    assert graphs == [2, 2, 3, 4]  # in front and behind; behind again for one element, and for none


# ---- what compilers take for something else
def written(x: Tensor) -> Any:
    y = x * 2
    if y.sum() > -1e9:
        y = y + 1
    z = y.view(-1)
    z.mul_(3)
    w = z + 1
    y.add_(1)
    return y, w


def conjugated(x: Tensor) -> Any:
    z = x.conj()
    w = z * 2 + z.imag
    return w * w, (x.conj().imag + 1) * 2


def doubled(x: Tensor, y: Tensor) -> Tensor:
    z = x + y
    z = z * 2
    return z + x


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    ("function", "dtype"), [(written, torch.float32), (conjugated, torch.complex64)], ids=["written", "conjugated"]
)
def test_gradients_through_a_region_of_open_sizes(function: Any, dtype: torch.dtype, dynamic: bool | None) -> None:
    static = sg.to_static(function, backend="aot_eager", dynamic=dynamic)
    for rows in (3, 4, 7):
        given = []
        x = torch.randn(rows, 2, dtype=dtype)
        for call in (function, static):
            leaf = x.clone().requires_grad_()
            results = call(leaf.conj() if dtype.is_complex else leaf)
            sum(each.abs().square().sum() for each in results).backward()
            given.append((results, leaf.grad))
        torch.testing.assert_close(given[1], given[0])


def test_one_tensor_twice_is_seen_before_anything_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    static = sg.to_static(doubled, backend=Counted(), dynamic=True)
    x = torch.ones(3)
    static(x, x)
    monkeypatch.setattr(Examples, "of", None)
    torch.testing.assert_close(static(x, x), doubled(x, x))
