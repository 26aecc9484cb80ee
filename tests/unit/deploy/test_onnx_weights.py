"""ONNX files whose weights are in a file of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.deploy.onnx import onnx
from tests.unit.deploy.alone import alone

X = torch.randn(3, 64, generator=torch.Generator().manual_seed(0))


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        while x.abs().sum() > 1:
            x = self.first(x).tanh() / 2 if x.sum() > 0 else self.second(x).tanh() / 3
            x = x - x.mean() * 0.5
            x = x * 0.5
        return x


def saved(folder: Path, **options: object) -> tuple[nn.Module, Path]:
    torch.manual_seed(0)
    sg.save(model := Steps().eval(), path := folder / "steps.onnx", args=(X,), **options)
    return model, path


def test_two_files_that_run_together(tmp_path: Path) -> None:
    model, path = saved(tmp_path, external_data=True, input_spec=[sg.InputSpec([None, 64])])
    weights = tmp_path / "steps.onnx.data"
    assert sorted(tmp_path.iterdir()) == [path, weights]
    assert weights.stat().st_size >= 2 * 64 * 64 * 4
    loaded = sg.load(path)
    for x in (X, X[:1], -X):
        torch.testing.assert_close(loaded(x), model(x))
    torch.save(X, tmp_path / "x")
    told = alone(f"""
        import onnxruntime
        session = onnxruntime.InferenceSession({str(path)!r})
        x = torch.load({str(tmp_path / "x")!r}).numpy()
        print(session.run(None, {{"x": x}})[0].shape)
    """)
    assert told.strip() == "(3, 64)"


def test_many_weights_are_apart_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(onnx, "_MOST_IN_A_FILE", 1000)
    saved(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    saved(tmp_path, external_data=False)
    assert (tmp_path / "steps.onnx").stat().st_size >= 2 * 64 * 64 * 4


def test_weights_that_are_not_as_they_were_saved(tmp_path: Path) -> None:
    _, path = saved(tmp_path, external_data=True)
    weights = tmp_path / "steps.onnx.data"
    data = bytearray(weights.read_bytes())
    data[100] ^= 1
    weights.write_bytes(data)
    with pytest.raises(sg.LoadError, match="damaged, or was changed"):
        sg.load(path)
    weights.unlink()
    with pytest.raises(sg.LoadError, match=r"weights are in a file of their own, steps\.onnx\.data, which is not"):
        sg.load(path)


def test_nothing_is_left_of_a_save_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, external_data=True)
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(onnx, "_check", fail)
    with pytest.raises(OSError, match="full"):
        saved(tmp_path, external_data=True)
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_it_is_a_choice_for_onnx_alone(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"external_data is a choice for \.onnx, not for \.pt2"):
        sg.save(Steps(), tmp_path / "steps.pt2", args=(X,), external_data=True)
