"""Modules whose class has a ``__call__`` of its own: what is exported and saved is that call, not ``forward`` alone."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

X = torch.ones(2, 3)


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def __call__(self, x: Tensor, y: Tensor, scale: float = 2.0) -> Any:
        return super().__call__(x + 1) * scale + y

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) if x.sum() > 0 else x


class Inherited(Around):
    pass


class Hooked(Around):
    def __init__(self) -> None:
        super().__init__()
        self.register_forward_hook(lambda module, args, result: result * 3)


@pytest.mark.parametrize("kind", [Inherited, Hooked])
@pytest.mark.parametrize("static", [False, True])
def test_saved(kind: type[nn.Module], static: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = kind()
    calls = [(X, X), (-3 * X, X)]
    expected = [module(*call) for call in calls]
    target = sg.to_static(module, backend="eager") if static else module
    sg.save(target, tmp_path / "module.pt2", args=calls[0])
    loaded = sg.load(tmp_path / "module.pt2")
    torch.testing.assert_close([loaded(*call) for call in calls], expected)
    torch.testing.assert_close([loaded(x=x, y=y) for x, y in calls], expected)


def test_python_source(tmp_path: Path) -> None:
    module = Around()
    sg.save(module, tmp_path / "around.py", args=(X, X))
    spec = importlib.util.spec_from_file_location("around", tmp_path / "around.py")
    assert spec is not None
    assert spec.loader is not None
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    torch.testing.assert_close(written.load()(X, X), module(X, X))


def test_sizes_that_the_call_leaves_open() -> None:
    program = sg.export(Around(), (X, X), input_spec=[sg.InputSpec([None, 3]), sg.InputSpec([None, 3])])
    assert "y: f32[" in str(program)
