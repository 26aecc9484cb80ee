"""What `save` refuses before any work: formats and specs that do not go with the rest."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

X = torch.ones(3)


def doubled(x: Tensor, scale: float = 1.0) -> Tensor:
    return x * 2 * scale if x.sum() > 0 else x


# ---- formats
@pytest.mark.parametrize(
    ("name", "format", "default"),
    [
        ("f.onnx", "pt2", "onnx"),
        ("f.pt2", "onnx", "pt2"),
        ("f.aoti.pt2", "pt2", "aoti"),
        ("f.py", "pt2", "python"),
        ("f.PT2", "python", "pt2"),
    ],
)
def test_a_format_that_is_not_the_suffix_is(name: str, format: str, default: str, tmp_path: Path) -> None:
    def never(x: Tensor) -> Tensor:
        raise AssertionError("nothing is captured")

    with pytest.raises(ValueError, match="does not go with the suffix of") as caught:
        sg.save(never, tmp_path / name, args=(X,), format=format)
    text = f"the format {format!r} does not go with the suffix of {name!r}, which is for {default}"
    assert str(caught.value) == text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["f.pt2", "f.bin", "f"])
def test_a_format_that_goes_with_the_path(name: str, tmp_path: Path) -> None:
    sg.save(doubled, tmp_path / name, args=(X,), format="pt2")
    torch.testing.assert_close(sg.load(tmp_path / name)(X), X * 2)


# ---- specs
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return doubled(x)


@pytest.mark.parametrize(
    ("target", "count", "text"),
    [
        (doubled, 3, "input_spec has 3 entries, but doubled has 2 arguments"),
        (Layer(), 2, "input_spec has 2 entries, but forward has 1 argument"),
    ],
)
def test_more_specs_than_arguments(target: Any, count: int, text: str, tmp_path: Path) -> None:
    spec = [sg.InputSpec([None])] * count
    for call in (
        lambda: sg.save(target, tmp_path / "f.pt2", args=(X,), input_spec=spec),
        lambda: sg.export(target, (X,), input_spec=spec),
    ):
        with pytest.raises(ValueError, match="entries, but") as caught:
            call()
        assert str(caught.value) == text


def test_a_spec_of_an_argument_that_is_left_out(tmp_path: Path) -> None:
    sg.save(doubled, tmp_path / "f.pt2", args=(X,), input_spec=[sg.InputSpec([None]), None])
    torch.testing.assert_close(sg.load(tmp_path / "f.pt2")(torch.ones(5)), torch.ones(5) * 2)


# ---- sizes that are to be open
@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("way", ["save", "export", "get_program"])
def test_an_example_that_leaves_nothing_open(way: str, size: int, tmp_path: Path) -> None:
    spec = [sg.InputSpec([None])]
    ways: dict[str, Any] = {
        "save": lambda x: sg.save(doubled, tmp_path / "f.pt2", args=(x,), input_spec=spec),
        "export": lambda x: sg.export(doubled, (x,), input_spec=spec),
        "get_program": lambda x: sg.to_static(doubled, input_spec=spec, backend="eager").get_program(x),
    }
    with pytest.raises(sg.CaptureError) as caught:
        ways[way](torch.ones(size))
    text = str(caught.value)
    assert f"dimension 0 of 'x' cannot be left open by an example of size {size}" in text
    assert "Give an example in which it is 2 or more" in text
    assert caught.value.reason.code == "SG501"


def test_calls_of_size_one_have_a_program_of_their_own() -> None:
    static = sg.to_static(doubled, input_spec=[sg.InputSpec([None])], backend="eager")
    for size in (1, 5, 0, 7, 1, 2):
        x = torch.ones(size)
        torch.testing.assert_close(static(x), doubled(x))
    assert len(static.programs) == 2  # one for size 1 alone


# ---- Python source
def scaled(x: Tensor, weight: Tensor) -> Tensor:
    return x * weight[:, None] if weight.sum() > 0 else x


def test_python_source_checks_ranges_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = sg.Dim("batch", min=2, max=8)
    specs = [sg.InputSpec([batch, 3]), sg.InputSpec([batch])]
    sg.save(scaled, tmp_path / "scaled.py", args=(torch.ones(4, 3), torch.ones(4)), input_spec=specs)
    spec = importlib.util.spec_from_file_location("scaled", tmp_path / "scaled.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "scaled", module)
    spec.loader.exec_module(module)
    for size in (2, 8):
        torch.testing.assert_close(module.scaled(torch.ones(size, 3), torch.ones(size)), torch.ones(size, 3))
    for size in (1, 9):
        with pytest.raises(ValueError, match=r"the program was made for x.shape\[0\] in batch: 2..8"):
            module.scaled(torch.ones(size, 3), torch.ones(size))
    with pytest.raises(ValueError, match=r"one size of 'batch': x.shape\[0\] and weight.shape\[0\]"):
        module.scaled(torch.ones(4, 3), torch.ones(5))


@pytest.mark.parametrize("suffix", [".py", ".pt2", ".onnx"])
def test_a_program_needs_an_example_of_each_argument(tmp_path: Path, suffix: str) -> None:
    def added(x: Tensor, y: Tensor) -> Tensor:
        return x + y

    x = torch.ones(2)
    for target, program_args, given, missing in (
        (added, (x, x), (), "x, y; give an example: args=(x, y)"),
        (added, (x, x), (x,), "y; give an example: args=(y,)"),
        (torch.nn.Linear(2, 2), (x,), (x,), "input; give an example: args=(module, input)"),
    ):
        program = sg.export(target, program_args)
        with pytest.raises(ValueError, match=f"^{re.escape(f'the program takes {missing}')}"):
            sg.save(program, tmp_path / f"saved{suffix}", args=given)
    assert [*tmp_path.iterdir()] == []
