"""Recurrent layers of sequences whose length and number are open, in files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.passes import pipeline
from stillgraph.passes.kernels.hiding import OPEN_SEQUENCE, hide, obstacle_to_inference
from stillgraph.passes.kernels.recurrent import open_layer
from tests.cases.compare import assert_same
from tests.sampling import only
from tests.unit.deploy.alone import alone
from tests.unit.trace.test_recurrent import LAYERS

SPEC = [sg.InputSpec([None, None, 3])]
X = torch.randn(4, 5, 3)
OTHERS = [-X[:2, :3], torch.ones(7, 2, 3), X[:1, :1] * 9]
UNLIKE_ONNX = {"lstm with a projection", "lstm in float64"}


class Halved(nn.Module):
    """A layer and a loop that looks at what it gives."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = kind(3, 4, **options)

    def forward(self, x: Tensor) -> Any:
        output, hidden = self.layer(x.to(next(self.parameters()).dtype))
        while output.abs().sum() > 1:
            output = output / 2
        return output, hidden


class Grown(nn.Module):
    """A sequence that grows by what the layer heard so far."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.GRU(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        while x.shape[0] < 6 and x.sum() < 100:
            x = torch.cat([x, self.layer(x)[0][-1:] + 5])
        return x


def _saved(folder: Path, suffix: str, name: str) -> tuple[nn.Module, Path]:
    kind, options = LAYERS[name]
    model = Halved(kind, **options).eval()
    sg.save(model, path := folder / f"heard{suffix}", args=(X,), input_spec=SPEC)
    return model, path


FILES = [(name, suffix) for name in LAYERS for suffix in (".pt2", ".onnx")]
FAST = {("lstm", ".pt2"), ("gru of two layers, both ways", ".onnx")}


@pytest.mark.parametrize(
    ("name", "suffix"),
    only([file for file in FILES if file[1] == ".pt2" or file[0] not in UNLIKE_ONNX], FAST),
)
def test_a_file_hears_every_length_and_number(tmp_path: Path, name: str, suffix: str) -> None:
    model, path = _saved(tmp_path, suffix, name)
    loaded = sg.load(path)
    axis = 0 if model.layer.batch_first else 1
    for x in (*OTHERS, X.narrow(axis, 0, 0)):  # the last: of no sequence
        torch.testing.assert_close(loaded(x), model(x), rtol=1e-5, atol=1e-6)
    assert not loaded.notes


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_a_sequence_that_grows(tmp_path: Path, suffix: str) -> None:
    model = Grown().eval()
    sg.save(model, path := tmp_path / f"grown{suffix}", args=(X[:2],), input_spec=[sg.InputSpec([None, 5, 3])])
    loaded = sg.load(path)
    for x in (X[:3], X + 100, torch.ones(6, 5, 3)):
        torch.testing.assert_close(loaded(x), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_the_file_needs_torch_alone(tmp_path: Path) -> None:
    model, path = _saved(tmp_path, ".pt2", "lstm of two layers, both ways")
    torch.save((OTHERS, [model(x) for x in OTHERS]), tmp_path / "expected")
    told = alone(f"""
        module = torch.export.load({str(path)!r}).module()
        given, expected = torch.load({str(tmp_path / "expected")!r})
        for x, values in zip(given, expected):
            leaves = torch.utils._pytree.tree_leaves(module(x))
            print([torch.equal(a, b) for a, b in zip(leaves, torch.utils._pytree.tree_leaves(values), strict=True)])
    """)
    assert told.splitlines() == [str([True] * 3)] * 3


def test_python_source(tmp_path: Path) -> None:
    model, path = _saved(tmp_path, ".py", "gru")
    spec = importlib.util.spec_from_file_location("heard", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    again = module.load()
    for x in OTHERS[:2]:
        assert_same(model(x), again(x), "gru")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_without_a_step_the_file_fails_as_eager(tmp_path: Path, suffix: str) -> None:
    model, path = _saved(tmp_path, suffix, "gru")
    empty = torch.ones(2, 0, 3)
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0"):
        model(empty)
    with pytest.raises(RuntimeError, match=r"Expected sequence length to be larger than 0|out of data bounds"):
        sg.load(path)(empty)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lstm with a projection", "a projection of the hidden state"),
        ("lstm in float64", "onnxruntime runs recurrent layers in float32 alone"),
    ],
)
def test_what_onnx_cannot_say(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(sg.ExportError, match=text) as caught:
        _saved(tmp_path, ".onnx", name)
    assert "ONNX has no form for aten.lstm" in str(caught.value)
    assert "output, hidden = self.layer(" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_dropout_between_the_layers_is_for_training(tmp_path: Path) -> None:
    model = Halved(nn.LSTM, num_layers=2, dropout=0.5)
    with pytest.raises(sg.ExportError, match=r"dropout between the layers; call eval\(\) first"):
        sg.save(model, tmp_path / "heard.onnx", args=(X,), input_spec=SPEC)


def test_what_infers_sizes_anew_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match=OPEN_SEQUENCE) as caught:
        sg.save(Halved(nn.GRU).eval(), tmp_path / "heard.pt2", format="aoti", args=(X,), input_spec=SPEC)
    text = str(caught.value)
    assert "Take the steps in a loop over a cell" in text
    assert "output, hidden = self.layer(" in text
    assert "^^^" in text


def test_only_open_sizes_are_hidden() -> None:
    heard = pipeline.run(sg.export(Halved(nn.LSTM).eval(), (X,), input_spec=SPEC))
    assert open_layer(heard) is not None
    obstacle = obstacle_to_inference(heard)
    assert obstacle is not None
    assert obstacle.reason == OPEN_SEQUENCE
    assert open_layer(hide(heard)) is None
    assert open_layer(pipeline.run(sg.export(Halved(nn.LSTM).eval(), (X,)))) is None
