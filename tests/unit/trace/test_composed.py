"""Torch functions that ask for sizes where these are open, and slices with tensors for bounds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import stillgraph as sg
from tests.unit.trace.agreement import agree

X = torch.arange(20.0).reshape(4, 5)
OPEN = [sg.InputSpec([None, None])]
BOUNDS = torch.tensor([1, 3])


def differences(x: Tensor) -> Any:
    return x.diff(), torch.diff(x, dim=0), torch.diff(x > 3, prepend=x[:, :1] > 0), torch.diff(x, n=2)


def differences_of_what_grows(x: Tensor) -> Tensor:
    while x.shape[1] < 9:
        last = torch.diff(x, prepend=x[:, :1] - 1, dim=-1)[:, -1:]
        x = torch.cat([x, last], dim=1)
        if x.sum() > 500:
            break
    return x


def resized(x: Tensor) -> Tensor:
    half = F.max_pool2d(x[None, None], 2, ceil_mode=True)
    return F.interpolate(x[None, None], size=half.shape[-2:]) + half


def distances(x: Tensor) -> Any:
    return torch.cdist(x, x[:2] + 1), torch.cdist(x, x, p=1)


def cut(x: Tensor) -> Any:
    start, stop = (x > 7).sum().clamp(max=2), BOUNDS[1]
    out = torch.zeros_like(x)
    out[0, start:stop] = 1.0
    out[:2, :stop] += 1
    return x[:start], x[1, start:stop], x[..., :stop:1], out


@pytest.mark.parametrize("function", [differences, differences_of_what_grows, distances, cut])
def test_one_program_is_for_all_sizes(function: Any) -> None:
    agree(function, (X,), (X[:3] - 9,), (X.T.contiguous() / 3,), (torch.ones(30, 7),), input_spec=OPEN)


def test_pooling_with_rounded_sizes() -> None:
    programs = 1 if torch.__version__ >= (2, 13) else 4  # before, torch asks which sizes are even
    calls = [(X,), (X[:3] - 9,), (X.T.contiguous() / 3,), (torch.ones(30, 7),), (torch.ones(8, 6),)]
    agree(resized, *calls, programs=programs, input_spec=OPEN)


def test_a_recurrent_layer_hears_sequences_of_any_length() -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(5, 3)

    def heard(x: Tensor) -> Tensor:
        with torch.no_grad():
            return layer(x)[0]

    agree(heard, (X,), (X[:3],), (torch.ones(9, 5),), input_spec=[sg.InputSpec([None, 5])])


def test_a_bound_of_several_elements_is_refused_as_by_eager() -> None:
    def cut_by_many(x: Tensor) -> Tensor:
        return x[:BOUNDS]

    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        cut_by_many(X)
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        sg.to_static(cut_by_many, backend="eager")(X)


def test_products_of_groups_in_any_type() -> None:
    def grouped(x: Tensor, weights: Tensor) -> Tensor:
        chosen = x.argmax(1) % 3
        ends = torch.bincount(chosen, minlength=3).cumsum(0).to(torch.int32)
        kept = x[chosen.argsort(stable=True)]
        return torch._grouped_mm(kept, weights, offs=ends) if x.sum() > 0 else kept @ weights[0]

    torch.manual_seed(0)
    weights = torch.randn(3, 16, 8)
    agree(grouped, *((torch.randn(8, 16) + k, weights) for k in (1, -1, 2)))


def without_repetitions(x: Tensor) -> Any:
    labels = torch.unique_consecutive(x.long(), dim=-1)
    rows, places, counts = torch.unique_consecutive(x, dim=-2 + x.dim() - 1, return_inverse=True, return_counts=True)
    each = torch.unique(torch.stack([x, x]), dim=1)
    return labels, labels.dim(), [i for i in labels if i != 0], rows, places, counts, each, each.is_contiguous()


def test_repetitions_along_a_dimension_from_behind() -> None:
    agree(without_repetitions, *(torch.tensor(v) for v in ([1.0, 1, 0, 2, 2, 0], [1.0, 1, 3, 3, 3, 2])))


SIDES = [torch.tensor(sides) for sides in ([2, 1], [3, 2], [1, 3], [4, 5])]


def rows_of_a_part(sides: Tensor) -> Any:
    height, width = sides.tolist()
    part = X[:height, :width]
    return part.reshape(height * part.shape[1], -1) * 2, part.reshape(-1, 1), X[:height].view(height, -1)


def left_by_a_product(sides: Tensor) -> Any:
    height, width = sides.tolist()
    image = torch.arange(60.0).reshape(4, 5, 3)
    return image[:height, :width].reshape(height * width, -1), image.narrow(1, 0, width).reshape(4 * width, -1)


def classes_of_a_tensor(sides: Tensor) -> Any:
    return F.one_hot(torch.tensor([0, 1, 0]), sides[0] + 1), F.one_hot(torch.tensor([1]), num_classes=sides[1] + 1)


@pytest.mark.parametrize("function", [rows_of_a_part, left_by_a_product, classes_of_a_tensor])
def test_sizes_that_numbers_of_the_run_decide(function: Any) -> None:
    agree(function, *SIDES)


def test_gradients_of_a_size_that_is_left() -> None:
    def weighted(x: Tensor, sides: Tensor) -> Tensor:
        height, width = sides.tolist()
        return (x[:height, :width].reshape(height * width, -1) * 3).sum()

    static = sg.to_static(weighted, backend="eager", full_graph=True)
    for sides in SIDES:
        eager, given = (torch.arange(60.0).reshape(4, 5, 3).requires_grad_() for _ in range(2))
        weighted(eager, sides).backward()
        static(given, sides).backward()
        assert torch.equal(eager.grad, given.grad)
