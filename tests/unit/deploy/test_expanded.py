"""Files in which a size that only the run knows is expanded: by 1, or by the size that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

EXAMPLE = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
INPUTS = [
    *(EXAMPLE, -EXAMPLE, torch.tensor([[-1.0, 2.0], [3.0, -4.0], [-1.0, -1.0]])),
    *(torch.ones(1, 2), -torch.ones(1, 2)),
]


def _chosen(x: Tensor) -> Tensor:
    return x[:1] if x.sum() > 0 else x * 2


def expanded(x: Tensor) -> Any:
    return _chosen(x).expand(x.shape[0], -1), _chosen(x).expand(4, *x.shape)


def broadcast(x: Tensor) -> Any:
    return torch.broadcast_to(_chosen(x) > 0, x.shape), _chosen(x).shape[0]


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("function", [expanded, broadcast])
def test_a_file_serves_both(function: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{suffix}"
    sg.save(function, path, args=(EXAMPLE,), input_spec=[sg.InputSpec([None, None])])
    loaded = sg.load(path)
    for x in INPUTS:
        torch.testing.assert_close(loaded(x), function(x), rtol=0, atol=0)


def test_another_size_fails(tmp_path: Path) -> None:
    def to_three(x: Tensor) -> Tensor:
        return x[x > 0].expand(3)

    sg.save(to_three, tmp_path / "file.pt2", args=(torch.tensor([1.0, -1.0]),), input_spec=[sg.InputSpec([None])])
    loaded = sg.load(tmp_path / "file.pt2")
    assert torch.equal(loaded(torch.tensor([1.0, 2.0, 3.0, 0.0])), torch.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(RuntimeError):
        loaded(torch.tensor([1.0, 2.0]))
