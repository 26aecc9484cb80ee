"""Torch functions that ask for sizes that only the run knows, though what they give follows from them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import agree

X = torch.tensor([1.0, 2.0, -1.0, 3.0, -2.0])
INPUTS = [X, X.flip(0), torch.tensor([4.0, 2.0, 3.0, 1.0, 5.0])]


def padded(x: Tensor) -> list[Tensor]:
    y = x[x > 0]
    sides = ((0, 1), (1, 0), (1, 1), (0, 0), (-1, 0), (0, -1))
    return [*(F.pad(y, side) for side in sides), F.pad(y, (0, 8 - y.shape[0])), F.pad(x, (0, int(x.max())))]


def padded_by_what_is_there(x: Tensor) -> list[Tensor]:
    y = x[x > 0][None]
    reflected = F.pad(y, (1, 1), mode="reflect")
    return [reflected, *(F.pad(y[None], (1, 1), mode=mode) for mode in ("reflect", "replicate", "circular"))]


def padded_sequences(x: Tensor) -> list[Tensor]:
    parts = [x[x > 0], x[x < 2]]
    return [pad_sequence(parts), pad_sequence(parts, batch_first=True, padding_value=2.0)]


def counted(x: Tensor) -> list[Tensor]:
    n = int(x.max())
    return [torch.linspace(0, 1, n), torch.logspace(0, 1, n), torch.hann_window(n), torch.combinations(x[x > 0])]


def in_windows(x: Tensor) -> list[Tensor]:
    y = x[x > -2]
    return [y.unfold(0, 2, 1), torch.trapezoid(y), torch.fft.rfft(y)]


def of_matrices(x: Tensor) -> list[Tensor]:
    y = x[x > 0]
    whole = torch.outer(y, y) + torch.eye(y.shape[0]) * 9
    solved = torch.linalg.solve_triangular(whole.triu(), whole, upper=True)
    return [solved, torch.linalg.cond(whole)]


def without_a_derivative(x: Tensor) -> list[Tensor]:
    y = x[x > 0]
    return [torch.vander(y), torch.geqrf(torch.outer(y, y) + torch.eye(y.shape[0]) * 9).a.abs()]


def masked_by_bytes(x: Tensor) -> list[Tensor]:
    mask = x > 0
    filled = x.clone()
    filled[mask.data] = -9.0
    zeroed = x.clone()
    zeroed.data[mask] = 0
    return [x[mask.to(torch.uint8)], filled, zeroed, x.data[mask]]


WITH_GRADIENTS = [padded, padded_by_what_is_there, padded_sequences, counted, in_windows, of_matrices]
FUNCTIONS = [*WITH_GRADIENTS, without_a_derivative, masked_by_bytes]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_program_is_for_all(function: Callable[[Tensor], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of masks of bytes
        agree(function, *INPUTS)
        if function is padded:
            agree(function, *INPUTS, X.repeat(2), input_spec=[sg.InputSpec([None])])


def lying_across(x: Tensor) -> list[Any]:
    y = x.reshape(-1, 2)
    y = y[y[:, 0] > 0].t()
    spectrum = torch.fft.rfft(y.t(), dim=0)
    return [y.is_contiguous(), y.t().is_contiguous(), y.clone().is_contiguous(), spectrum.stride(), spectrum]


def test_of_memory_it_tells_what_is_so_for_all_sizes() -> None:
    numbers = torch.arange(1.0, 21.0)
    agree(lying_across, (numbers,), (numbers * torch.tensor([1.0] * 2 + [-1.0] * 18),))


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_so_through_bytecode_and_with_gradients(function: Callable[[Tensor], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with through_bytecode():
            agree(function, *INPUTS)
        if function in WITH_GRADIENTS:
            agree(function, *[(x.clone().requires_grad_(),) for x in INPUTS])


class Steps(nn.Module):
    """A GRU by hand: how many sequences there are, and how many steps, only the run knows."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        h = torch.zeros(x.size(0), 4)
        for t in range(int(lengths.max())):
            mask = (t < lengths).float().unsqueeze(1)
            h = mask * self.cell(x[:, t], h) + (1 - mask) * h
        return h


@pytest.mark.parametrize("shared", [False, True])
def test_a_cell_of_any_number_of_sequences(shared: bool) -> None:
    batch: Any = sg.Dim("batch") if shared else None
    spec = [sg.InputSpec([batch, None, 4]), sg.InputSpec([batch], torch.int64)]
    module = Steps()
    static = sg.to_static(module.forward, backend="eager", input_spec=spec)
    for x, lengths in ((torch.randn(3, 5, 4), [2, 5, 3]), (torch.randn(2, 7, 4), [7, 1])):
        assert torch.allclose(static(x, torch.tensor(lengths)), module(x, torch.tensor(lengths)))
    assert static.cache_info().programs == 1


def test_training_with_ctc() -> None:
    def loss(scores: Tensor, targets: Tensor, lengths: Tensor) -> Tensor:
        return F.ctc_loss(scores.log_softmax(-1), targets, lengths, (targets > 0).sum(1), zero_infinity=True)

    open_ = [sg.InputSpec([None, None, 5]), sg.InputSpec([None, None], torch.int64), sg.InputSpec([None], torch.int64)]
    static = sg.to_static(loss, backend="eager", input_spec=open_)
    for steps, batch in ((6, 2), (8, 3)):
        targets = torch.randint(1, 5, (batch, 2))
        lengths = torch.full((batch,), steps)
        mine, theirs = (torch.randn(steps, batch, 5, generator=torch.Generator().manual_seed(1)) for _ in "12")
        got, wanted = static(mine.requires_grad_(), targets, lengths), loss(theirs.requires_grad_(), targets, lengths)
        got.backward()
        wanted.backward()
        assert torch.allclose(got, wanted)
        assert torch.equal(mine.grad, theirs.grad)


def test_another_form_for_some_sizes_is_refused() -> None:
    with pytest.raises(sg.CaptureError, match="SG304") as caught:
        sg.to_static(lambda x: torch.cov(x[x[:, 0] > 0]), backend="eager")(torch.ones(3, 2))
    assert "another for others" in str(caught.value)


def test_sizes_that_need_not_be_equal_are_told_apart() -> None:
    def along(x: Tensor, places: Tensor) -> Tensor:
        y = torch.take_along_dim(x, places.unsqueeze(-1), 1)
        return y * 2 if y.shape[1] == x.shape[0] else y

    spec = [sg.InputSpec([None, None, 4]), sg.InputSpec([None, None], torch.int64)]
    static = sg.to_static(along, backend="eager", input_spec=spec)
    for batch, size, count in ((3, 5, 2), (3, 5, 3), (4, 2, 6), (2, 7, 2)):
        x, places = torch.randn(batch, size, 4), torch.randint(0, size, (batch, count))
        assert torch.equal(static(x, places), along(x, places))


@pytest.mark.parametrize("bounds", [(2, 6), (None, 6), (8, 20), (3, 4), (33, None), (64, 512)])
def test_sizes_in_ranges_are_told_apart(bounds: tuple[int | None, int | None]) -> None:
    def product(x: Tensor, y: Tensor) -> Tensor:
        z = torch.linalg.multi_dot([x, torch.ones(3, 3), y.T])
        return z * 2 if z.shape[1] == x.shape[0] else z

    spec = [sg.InputSpec([sg.Dim(name, min=bounds[0], max=bounds[1]), 3]) for name in "nm"]
    least = bounds[0] or 2
    static = sg.to_static(product, backend="eager", input_spec=spec)
    for rows, columns in ((least, least + 1), (least + 1, least), (least, least)):
        x, y = torch.randn(rows, 3), torch.randn(columns, 3)
        assert torch.equal(static(x, y), product(x, y))
    program = sg.export(product, (torch.randn(least, 3), torch.randn(least + 1, 3)), input_spec=spec)
    x, y = torch.randn(least + 1, 3), torch.randn(least, 3)
    assert torch.equal(program(x, y), product(x, y))


FUNCTIONS = {
    "rfft": lambda x: torch.fft.rfft(x, dim=0),
    "max_pool": lambda x: F.max_pool1d(x.T[None], 2),
    "kron": lambda x: torch.kron(x, torch.ones(2, 2)),
    "cov": lambda x: torch.cov(x.T),
    "indices": lambda x: torch.tril_indices(x.shape[0], x.shape[0]),
    "combinations": lambda x: torch.combinations(x[:, 0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_of_a_range_that_begins_high(name: str) -> None:
    function = FUNCTIONS[name]
    program = sg.export(function, (torch.randn(70, 3),), input_spec=[sg.InputSpec([sg.Dim("n", min=64, max=512), 3])])
    for size in (64, 100, 300):
        x = torch.randn(size, 3)
        torch.testing.assert_close(program(x), function(x))


def test_a_guard_on_a_size_that_is_scaled() -> None:
    def scaled(x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=1.3)

    static = sg.to_static(scaled, backend="eager", input_spec=[sg.InputSpec([1, 2, None])])
    for size in (4, 9, 16):
        x = torch.randn(1, 2, size)
        assert torch.equal(static(x), scaled(x))


@pytest.mark.parametrize("name", ["pinverse", "bilinear", "irfft2"])
def test_what_torch_writes_in_c_for_plain_sizes(name: str) -> None:
    functions: dict[str, Any] = {
        "pinverse": lambda x: torch.pinverse(x),
        "bilinear": lambda x: F.bilinear(x, x, torch.ones(2, 3, 3)),
        "irfft2": lambda x: torch.fft.irfft2(x),
    }
    function = functions[name]
    program = sg.export(function, (torch.randn(5, 3),), input_spec=[sg.InputSpec([None, 3])])
    for size in (5, 4, 9):
        x = torch.randn(size, 3)
        torch.testing.assert_close(program(x), function(x), rtol=1e-4, atol=1e-5)
