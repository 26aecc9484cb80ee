"""``torch.nn.utils.rnn.pad_sequence`` of a list of which only the run knows the length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

import stillgraph as sg
from tests.cases.harness import python_module
from tests.unit.trace.agreement import agree

TABLE = torch.arange(12.0).reshape(4, 3)
CALLS = [torch.tensor(each) for each in ([1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [2.0, 1.0, 0.0], [0.0, 2.0, 0.0])]


def pieces(x):
    return [x[: i + 1] * (i + 1) for i in range(int(x.sum()))]


def batch_second(x):
    return pad_sequence(pieces(x))


def batch_first(x):
    return pad_sequence(pieces(x), batch_first=True, padding_value=-1.5), pad_sequence(pieces(x), True, 2)


def on_the_left(x):
    return pad_sequence(pieces(x), padding_side="left"), pad_sequence(sequences=pieces(x), batch_first=True)


def of_rows(x):
    parts = []
    for value in x:
        if value > 0:
            parts.append(TABLE[: int(value) + 1])
    return pad_sequence(parts), pad_sequence(parts, batch_first=True, padding_value=7.0)


def of_whole_numbers(x):
    parts = [(each * 3).long() for each in pieces(x)]
    return pad_sequence(parts, padding_value=-1), pad_sequence([each > 0 for each in pieces(x)], True)


def of_equal_lengths(x):
    parts = []
    while x.sum() > 0:
        parts.append(x * 2)
        x = x - 1
    return pad_sequence(parts, batch_first=True)


def on_a_path(x):
    if x[0] > 0:
        padded = pad_sequence(pieces(x), batch_first=True)
    else:
        padded = x[None]
    return padded.sum(0)


FUNCTIONS = [batch_second, batch_first, on_the_left, of_rows, of_whole_numbers, of_equal_lengths, on_a_path]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)
    agree(function, *CALLS[::-1])


@pytest.mark.parametrize("function", [batch_second, batch_first], ids=lambda each: each.__name__)
def test_gradients(function: Any) -> None:
    agree(function, *(x.clone().requires_grad_() for x in CALLS))


def test_of_no_sequences() -> None:
    agree(batch_second, CALLS[0], torch.zeros(3), CALLS[1])
    agree(of_rows, torch.zeros(3), CALLS[0])


def test_of_no_side() -> None:
    agree(lambda x: pad_sequence(pieces(x), padding_side="both"), CALLS[0])


@pytest.mark.parametrize(
    "given",
    [{"batch_first": 1}, {"batch_first": None}, {"padding_value": None}, {"padding_value": "x"}, {"padding_value": 1j},
     {"padding_side": None}, {"padding_value": True}],
    ids=str,
)  # fmt: skip
def test_of_arguments_of_other_kinds(given: dict[str, Any]) -> None:
    agree(lambda x: pad_sequence(pieces(x), **given), *CALLS[:2])


@pytest.mark.parametrize("suffix", [".py", ".pt2"])
def test_files(suffix: str, tmp_path: Path) -> None:
    def padded(x: Tensor) -> Tensor:
        return pad_sequence(pieces(x), batch_first=True).sum(0)

    path = tmp_path / f"padded{suffix}"
    sg.save(padded, path, args=(CALLS[0],))
    loaded = python_module(path).padded if suffix == ".py" else sg.load(path)
    for x in CALLS:
        torch.testing.assert_close(loaded(x), padded(x))
