"""ONNX files whose weights are in a file of their own."""

from __future__ import annotations

import shutil
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
    torch.save((X, model(X).detach()), tmp_path / "x")
    told = alone(f"""
        import onnxruntime
        session = onnxruntime.InferenceSession({str(path)!r})
        x, expected = torch.load({str(tmp_path / "x")!r})
        (found,) = session.run(None, {{"x": x.numpy()}})
        print(torch.allclose(torch.from_numpy(found), expected))
    """)
    assert told.strip() == "True"


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
    with pytest.raises(sg.LoadError, match=r"steps\.onnx\.data, where its weights were, has others now, or is damaged"):
        sg.load(path)
    weights.unlink()
    with pytest.raises(sg.LoadError, match=r"weights are in a file of their own, steps\.onnx\.data, which is not"):
        sg.load(path)


def test_a_copy_does_not_take_the_weights_of_a_later_save(tmp_path: Path) -> None:
    model, path = saved(tmp_path, external_data=True)
    copies = [tmp_path / "old.onnx", tmp_path / "old.onnx.data"]
    shutil.copy(path, copies[0])
    shutil.copy(tmp_path / "steps.onnx.data", copies[1])
    torch.testing.assert_close(sg.load(copies[0])(X), model(X))
    with torch.no_grad():
        model.first.weight.neg_()
    sg.save(model, path, args=(X,), external_data=True)
    torch.testing.assert_close(sg.load(path)(X), model(X))
    with pytest.raises(sg.LoadError, match="has others now"):
        sg.load(copies[0])


def test_links_lead_to_model_and_weights(tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    (there := tmp_path / "there").mkdir()
    (link := here / "link.onnx").symlink_to(there / "steps.onnx")
    sg.save(model := Steps().eval(), link, args=(X,), external_data=True)
    assert link.is_symlink()
    torch.testing.assert_close(sg.load(link)(X), model(X))
    torch.testing.assert_close(sg.load(there / "steps.onnx")(X), model(X))


def test_a_file_of_the_user_s_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (theirs := tmp_path / "steps.onnx.data").write_text("measured")
    with pytest.raises(FileExistsError, match=r"steps\.onnx\.data' is there and does not belong to 'steps\.onnx'"):
        saved(tmp_path, external_data=True)
    monkeypatch.setattr(onnx, "_MOST_IN_A_FILE", 1000)
    with pytest.raises(FileExistsError, match="does not belong"):
        saved(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["steps.onnx.data"]
    assert theirs.read_text() == "measured"
    theirs.unlink()
    theirs.mkdir()
    with pytest.raises(IsADirectoryError, match=r"steps\.onnx\.data' is a folder"):
        saved(tmp_path, external_data=True)


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
    with pytest.raises(ValueError, match="external_data is True, False or None, not 'no'"):
        saved(tmp_path, external_data="no")
