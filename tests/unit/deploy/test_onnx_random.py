"""What an ONNX file draws: each place draws its own numbers, and no two depend on each other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

import stillgraph as sg

pytest.importorskip("onnxruntime")


def uniform(x: Tensor) -> Tensor:
    return torch.stack([torch.rand(()) for _ in range(5)])


def normal_and_in_a_loop(x: Tensor) -> Tensor:
    first, second, total, count = torch.randn(()), torch.randn(()), x.sum(), 0
    while total < 3:
        total = total + torch.rand(())
        count += 1
    return torch.stack([first, second, torch.rand(()), total])


@pytest.mark.parametrize("function", [uniform, normal_and_in_a_loop])
def test_draws_are_independent(tmp_path: Path, function: object) -> None:
    sg.save(function, path := tmp_path / "draws.onnx", args=(torch.zeros(2),))
    loaded = sg.load(path)
    drawn = torch.stack([loaded(torch.zeros(2)) for _ in range(500)])
    apart = torch.corrcoef(drawn.mT) - torch.eye(drawn.shape[1])
    assert apart.abs().max() < 0.15  # neighbouring seeds give 0.49
    assert len(set(drawn[0].tolist())) == drawn.shape[1]
    steps = drawn[:, 1:3] - drawn[:, :2]
    assert not torch.allclose(steps[:, 0] % 1, steps[:, 1] % 1, atol=1e-4)  # as on a lattice


def test_the_seed_of_torch_decides(tmp_path: Path) -> None:
    drawn = []
    for number, seed in enumerate((3, 3, 4)):
        torch.manual_seed(seed)
        sg.save(uniform, path := tmp_path / f"{number}.onnx", args=(torch.zeros(2),))
        drawn.append(sg.load(path)(torch.zeros(2)))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
