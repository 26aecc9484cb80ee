"""Saving and loading: what comes back is what the program gives, and nothing half-written is left behind."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg


def halve(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    steps = 0
    while x.norm() > limit:
        x = x / 2
        steps += 1
    return x, steps


class EarlyExit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        for block in self.blocks:
            x = block(x)
            if x.sum() > 0:
                return {"out": x}
        return {"out": -x}


def unlike(x: Tensor) -> Any:
    if x.sum() > 0:
        return x, x + 1
    return x


def test_a_loop_comes_back_with_its_python_number(tmp_path: Path) -> None:
    path = tmp_path / "halve é.pt2"
    limit = torch.tensor(1.0)
    sg.save(halve, path, args=(torch.full((4,), 10.0), limit))
    loaded = sg.load(path)
    for scale in (1e3, 1.0, 1e-3):
        x = torch.full((4,), scale)
        value, steps = loaded(x, limit)
        expected, count = halve(x, limit)
        torch.testing.assert_close(value, expected)
        assert (steps, type(steps)) == (count, int)


def test_a_module_comes_back_with_its_structure(tmp_path: Path) -> None:
    module = EarlyExit().eval()
    path = tmp_path / "exit.pt2"
    sg.save(module, path, args=(torch.randn(2, 4),))
    loaded = sg.load(path)
    torch.manual_seed(1)
    for _ in range(6):
        x = torch.randn(2, 4)
        torch.testing.assert_close(loaded(x), module(x))


def test_onnx_has_a_real_loop(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    path = tmp_path / "halve.onnx"
    limit = torch.tensor(1.0)
    sg.save(halve, path, args=(torch.full((4,), 10.0), limit))
    assert "Loop" in {node.op_type for node in onnx.load(path).graph.node}
    run = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [given.name for given in run.get_inputs()]
    for scale in (1e3, 1.0, 1e-3):
        x = torch.full((4,), scale)
        value, steps = run.run(None, dict(zip(names, (x.numpy(), limit.numpy()), strict=True)))
        expected, count = halve(x, limit)
        torch.testing.assert_close(torch.from_numpy(value), expected)
        assert int(steps) == count


def test_what_an_export_cannot_express_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="outputs differ in structure"):
        sg.save(unlike, tmp_path / "unlike.pt2", args=(torch.ones(2),))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["halve.xyz", "halve"])
def test_an_unknown_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="pt2"):
        sg.save(halve, tmp_path / name, args=(torch.ones(2), torch.tensor(1.0)))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        sg.save(halve, tmp_path / "nowhere" / "halve.pt2", args=(torch.ones(2), torch.tensor(1.0)))


def test_an_older_file_survives_a_failed_save(tmp_path: Path) -> None:
    path = tmp_path / "kept.pt2"
    path.write_bytes(b"older")
    with pytest.raises(sg.ExportError):
        sg.save(unlike, path, args=(torch.ones(2),))
    assert path.read_bytes() == b"older"


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.pt2"
    path.write_bytes(b"not a zip file")
    with pytest.raises(ValueError, match="pt2"):
        sg.load(path)
    with pytest.raises(FileNotFoundError):
        sg.load(tmp_path / "missing.pt2")
