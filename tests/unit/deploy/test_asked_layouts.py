"""Files of functions that ask how the result of a branch or loop lies in memory: a file has contiguous copies of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

X = torch.arange(16.0).reshape(4, 4) + 1


def contiguous(x: Tensor) -> Tensor:
    y = x * 1 if x.sum() > 0 else x.t()
    return y * 2 if y.is_contiguous() else y * 3


def of_what_is_computed(x: Tensor) -> Tensor:
    y = (x * 1 if x.sum() > 0 else x.t()) + 1
    return y * 2 if y.stride(0) == 1 else y


def read_from_memory(x: Tensor) -> Tensor:
    y = x * 1 if x.sum() > 0 else x.t()
    return torch.as_strided(y, (4,), (1,))


def after_a_loop(x: Tensor) -> Tensor:
    while x.abs().sum() < 200:
        x = (x * 2).t()
    return x * 2 if x.is_contiguous() else x * 3


def asked_before(x: Tensor) -> Tensor:
    y = (x * 1 if x.sum() > 0 else x.t()).contiguous()
    return y * 2 if y.is_contiguous() else y * 3


def not_asked(x: Tensor) -> Tensor:
    y = x * 1 if x.sum() > 0 else x.t()
    return y @ y


ASKING = [contiguous, of_what_is_computed, read_from_memory, after_a_loop]


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("function", ASKING)
def test_what_asks_is_refused(tmp_path: Path, function: Any, suffix: str) -> None:
    for example in (X, -X):
        with pytest.raises(sg.ExportError, match="asks how a tensor lies in memory") as refused:
            sg.save(function, tmp_path / f"file{suffix}", args=(example,))
        assert refused.value.reason.code == "SG402"
        assert refused.value.location is not None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("function", ASKING)
def test_python_source_keeps_the_layout(tmp_path: Path, function: Any) -> None:
    sg.save(function, path := tmp_path / "file.py", args=(X,))
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    for x in (X, -X):
        torch.testing.assert_close(space[function.__name__](x), function(x))


@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
@pytest.mark.parametrize("function", [asked_before, not_asked])
def test_what_does_not_ask_is_saved(tmp_path: Path, function: Any, suffix: str) -> None:
    sg.save(function, path := tmp_path / f"file{suffix}", args=(X,))
    for x in (X, -X):
        torch.testing.assert_close(sg.load(path)(x), function(x))
