"""Dimensions with names and ranges, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

BATCH = sg.Dim("batch", min=2, max=8)


def scaled(x: Tensor, weight: Tensor) -> Tensor:
    while x.sum() > 10:
        x = x / 2
    return x * weight[:, None] if weight.sum() > 0 else x


X, WEIGHT = torch.ones(4, 3) * 9, torch.arange(4.0)
SPEC = [sg.InputSpec([BATCH, 3]), sg.InputSpec([BATCH])]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranges") / "scaled.pt2"
    sg.save(scaled, path, args=(X, WEIGHT), input_spec=SPEC)
    return path


def test_every_size_in_the_range(path: Path) -> None:
    loaded = sg.load(path)
    for size in (2, 5, 8):
        x, weight = torch.ones(size, 3) * size, torch.arange(float(size))
        torch.testing.assert_close(loaded(x, weight), scaled(x, weight))


@pytest.mark.parametrize("size", [0, 1, 9])
def test_a_size_outside_of_the_range(path: Path, size: int) -> None:
    with pytest.raises(ValueError, match=rf"saved for x of float32\[batch: 2..8, 3\], not float32\[{size}, 3\]"):
        sg.load(path)(torch.ones(size, 3), torch.ones(size))


def test_one_name_is_one_size(path: Path) -> None:
    with pytest.raises(ValueError, match="scaled was saved for one size of 'batch': x has 4, weight has 5"):
        sg.load(path)(torch.ones(4, 3), torch.ones(5))


def test_the_range_is_torch_s_too(path: Path) -> None:
    program = torch.export.load(path)
    bounds = [(int(each.lower), int(each.upper)) for each in program.range_constraints.values()]
    assert bounds == [(2, 8)]
    with pytest.raises((RuntimeError, AssertionError, ValueError)):
        program.module()(torch.ones(9, 3), torch.ones(9))


def test_a_program_keeps_its_ranges(tmp_path: Path) -> None:
    program = sg.export(scaled, (X, WEIGHT), input_spec=SPEC)
    sg.save(program, tmp_path / "scaled.pt2", args=(X, WEIGHT))
    with pytest.raises(ValueError, match=r"batch: 2\.\.8"):
        sg.load(tmp_path / "scaled.pt2")(torch.ones(9, 3), torch.ones(9))


def test_a_dimension_of_torch_s(tmp_path: Path) -> None:
    rows = torch.export.Dim("rows", max=64)
    spec = sg.InputSpec([rows, 3])
    assert repr(spec) == "InputSpec([<rows: ..64>, 3], 'float32')"
    sg.save(lambda x: x * 2 if x.sum() > 0 else x, tmp_path / "rows.pt2", args=(X,), input_spec=[spec])
    loaded = sg.load(tmp_path / "rows.pt2")
    assert loaded(torch.ones(1, 3)).shape == (1, 3)
    with pytest.raises(ValueError, match=r"rows: \.\.64"):
        loaded(torch.ones(65, 3))


# ---- refused
def test_a_program_that_serves_one_size_alone(tmp_path: Path) -> None:
    def fixed(x: Tensor) -> Tensor:
        return x + torch.ones(4, 3)

    with pytest.raises(sg.CaptureError):
        sg.save(fixed, tmp_path / "fixed.pt2", args=(X,), input_spec=[sg.InputSpec([BATCH, 3])])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("size", "text"), [(9, "is 9, but input_spec declares batch: 2..8"), (1, "is 1, but")])
def test_an_example_outside_of_the_range(size: int, text: str, tmp_path: Path) -> None:
    with pytest.raises(sg.CaptureError, match="SG501") as raised:
        sg.save(scaled, tmp_path / "no.pt2", args=(torch.ones(size, 3), torch.ones(size)), input_spec=SPEC)
    assert f"dimension 0 of 'x' {text}" in str(raised.value)


def test_an_example_that_leaves_nothing_open(tmp_path: Path) -> None:
    spec = [sg.InputSpec([sg.Dim("rows"), 3])]
    with pytest.raises(sg.CaptureError, match="cannot be left open by an example of size 1"):
        sg.save(lambda x: x * 2, tmp_path / "no.pt2", args=(X[:1],), input_spec=spec)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"name": 3}, TypeError),
        ({"name": "a", "min": 1.5}, TypeError),
        ({"name": "a b"}, ValueError),
        ({"name": "a", "min": -1}, ValueError),
        ({"name": "a", "min": 5, "max": 5}, ValueError),
        ({"name": "a", "max": 1}, ValueError),
    ],
)
def test_what_is_no_dimension(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="Dim: "):
        sg.Dim(**options)
