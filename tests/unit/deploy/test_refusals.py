"""What cannot be saved: the user's line, what happened, and what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

X = torch.ones(3)


def drawn(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(3, generator=generator) + x


def quantised(x: Tensor) -> Tensor:
    return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)


def spectrum(x: Tensor) -> Tensor:
    return torch.fft.fft(x)


def magnitude(x: Tensor) -> Tensor:
    return x.abs()


def differentiated(x: Tensor) -> Tensor | None:
    x = x.clone().requires_grad_(True)
    (x * x).sum().backward()
    return x.grad


class Kind:
    pass


KIND = Kind()


def of_a_kind(x: Tensor) -> dict[str, Any]:
    return {"x": x, "kind": KIND}


class Chained(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return self, x


CASES: list[tuple[str, Any, tuple[Any, ...], str, str, str]] = [
    ("pt2", drawn, (X, torch.Generator()), "random generator that is not torch's own", "torch.rand(3", "Draw with"),
    ("onnx", drawn, (X, torch.Generator()), "random generator that is not torch's own", "torch.rand(3", "Draw with"),
    ("onnx", spectrum, (X,), "returns a complex tensor, and ONNX has no complex", "torch.fft.fft(x)", "view_as_real"),
    ("onnx", magnitude, (X + 1j,), "takes the complex tensor x", "def magnitude", "save as .pt2"),
    ("pt2", differentiated, (X,), "the program differentiates", ".backward()", "save as .py"),
    ("pt2", of_a_kind, (X,), "KIND, which a file cannot hold", "def of_a_kind", "save as .py"),
    ("onnx", of_a_kind, (X,), "KIND, which a file cannot hold", "def of_a_kind", "save as .py"),
    ("pt2", Chained(), (X,), "holds args[0], which a file cannot hold", "def forward", "save as .py"),
]


@pytest.mark.parametrize(("suffix", "function", "args", "text", "line", "hint"), CASES)
def test_what_cannot_be_saved(
    suffix: str, function: Any, args: tuple[Any, ...], text: str, line: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(sg.ExportError) as raised:
        sg.save(function, tmp_path / f"no.{suffix}", args=args)
    told = str(raised.value)
    for part in (text, line, hint, "test_refusals.py"):
        assert part in told
    assert not list(tmp_path.iterdir())


def first_two(x: Tensor) -> Tensor:
    return x.split(2)[0]


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
def test_an_open_length_that_torch_bounds(suffix: str, tmp_path: Path) -> None:
    spec = [sg.InputSpec([sg.Dim("frames"), 3])]
    with pytest.raises(sg.ExportError, match=r"Not all values of frames = .* satisfy the generated guard") as raised:
        sg.save(first_two, tmp_path / f"no.{suffix}", args=(torch.ones(4, 3),), input_spec=spec)
    assert "save as .py" in str(raised.value)
    assert "TORCH_LOGS" not in str(raised.value)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (nn.Linear, "save takes a function or an instance of Linear, not the class"),
        (3, "save takes a function, module, static function or program, not a int"),
        ({"weight": X}, "save takes a function, module, static function or program, not a Tensor"),
        (torch.compile(magnitude), "save takes what torch.compile was given"),
        (torch.compile(nn.Linear(3, 3)), "save takes what torch.compile was given"),
    ],
)
def test_what_is_no_target(target: Any, text: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError) as raised:
        sg.save(target, tmp_path / "no.pt2", args={"weight": (X,)} if isinstance(target, dict) else (X,))
    assert text in str(raised.value)


def test_no_program_has_quantized_tensors(tmp_path: Path) -> None:
    with pytest.raises(sg.CaptureError, match="quantize_per_tensor gives a quantized tensor"):
        sg.save(quantised, tmp_path / "no.pt2", args=(X,))
