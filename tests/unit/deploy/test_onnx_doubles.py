"""Numbers that operations on float64 take as arguments, in ONNX: in double precision."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

import stillgraph as sg

X = torch.tensor([3.0, 0.7, -12.5, 900.1], dtype=torch.float64)


def several(x: Tensor, n: Tensor) -> dict[str, Tensor]:
    y = x * 7
    while n > 0:
        y, n = torch.add(y, x, alpha=0.1), n - 1
    return {
        "looped": y,
        "sub": torch.sub(x, y, alpha=0.1),
        "rsub": torch.rsub(x, y, alpha=0.1),
        "addcmul": torch.addcmul(x, x, y, value=0.1),
        "addcdiv": torch.addcdiv(x, x, y.abs() + 1, value=0.1),
        "in_place": x.clone().add_(y, alpha=0.1).masked_fill_(x > 1, 0.1),
        "masked": x.masked_fill(x < 1, 0.1),
        "filled": torch.full_like(x, 0.1) + x.new_full((4,), 0.3),
        "power": 0.3 ** (x / 1000),
    }


def test_all_digits_of_a_number_count(tmp_path: Path) -> None:
    sg.save(several, tmp_path / "several.onnx", args=(X, torch.tensor(2)))
    loaded = sg.load(tmp_path / "several.onnx")
    for x, n in ((X, 2), (X * 1.37, 0), (-X, 5)):
        torch.testing.assert_close(loaded(x, torch.tensor(n)), several(x, torch.tensor(n)), rtol=1e-13, atol=0)


def test_other_dtypes_are_as_before(tmp_path: Path) -> None:
    sg.save(several, tmp_path / "several.onnx", args=(X.float(), torch.tensor(2)))
    loaded = sg.load(tmp_path / "several.onnx")
    torch.testing.assert_close(loaded(X.float(), torch.tensor(3)), several(X.float(), torch.tensor(3)))
