"""Operators that a user defines with `torch.library`, in every format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

X = torch.tensor([1.0, -2.0, 3.0])


@pytest.fixture
def scaled() -> Iterator[Any]:
    """An operator that doubles what is above a bound."""
    with torch.library._scoped_library("stillgraph_tests", "FRAGMENT") as library:
        library.define("scaled(Tensor x, float bound) -> Tensor")
        library.impl("scaled", lambda x, bound: torch.where(x > bound, x * 2, x), "CompositeExplicitAutograd")
        torch.library.register_fake("stillgraph_tests::scaled", lambda x, bound: torch.empty_like(x), lib=library)
        yield torch.ops.stillgraph_tests.scaled


def in_control_flow(operator: Any) -> Any:
    def function(x: Tensor) -> Tensor:
        while x.sum() < 30:
            x = operator(x, 0.5) if x[0] > 0 else x + 1
        return x

    return function


def test_captured(scaled: Any) -> None:
    function = in_control_flow(scaled)
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in (X, -X, X * 100):
        torch.testing.assert_close(static(x), function(x))
    assert static.cache_info().programs == 1


def test_in_a_pt2(scaled: Any, tmp_path: Path) -> None:
    function = in_control_flow(scaled)
    sg.save(function, path := tmp_path / "file.pt2", args=(X,), input_spec=[sg.InputSpec([None])])
    for x in (X, -X, X[:2]):
        torch.testing.assert_close(sg.load(path)(x), function(x))


def test_in_an_onnx_file(scaled: Any, tmp_path: Path) -> None:
    from onnxscript import opset18 as op

    def written(x: Any, bound: float) -> Any:
        return op.Where(op.Greater(x, op.CastLike(op.Constant(value_float=bound), x)), op.Add(x, x), x)

    function, path = in_control_flow(scaled), tmp_path / "file.onnx"
    with pytest.raises(sg.ExportError, match="no form for"):
        sg.save(function, path, args=(X,))
    table = {torch.ops.stillgraph_tests.scaled.default: written}
    sg.save(function, path, args=(X,), input_spec=[sg.InputSpec([None])], custom_translation_table=table)
    for x in (X, -X, X[:2]):
        torch.testing.assert_close(sg.load(path)(x), function(x))


def test_a_translation_that_differs_is_not_saved(scaled: Any, tmp_path: Path) -> None:
    from onnxscript import opset18 as op

    table = {torch.ops.stillgraph_tests.scaled.default: lambda x, bound: op.Add(x, x)}
    with pytest.raises(sg.ExportError):
        sg.save(in_control_flow(scaled), tmp_path / "file.onnx", args=(X,), custom_translation_table=table)
    assert not list(tmp_path.iterdir())


def test_bad_tables(scaled: Any, tmp_path: Path) -> None:
    function = in_control_flow(scaled)
    with pytest.raises(ValueError, match=r"a key is an operator such as torch\.ops\.mine\.name\.default, not"):
        sg.save(function, tmp_path / "file.onnx", args=(X,), custom_translation_table={scaled: print})
    with pytest.raises(ValueError, match="which is no function"):
        sg.save(function, tmp_path / "file.onnx", args=(X,), custom_translation_table={scaled.default: 3})
    with pytest.raises(ValueError, match="custom_translation_table is a dict by operators"):
        sg.save(function, tmp_path / "file.onnx", args=(X,), custom_translation_table=[(scaled.default, print)])
    table = {torch.ops.stillgraph_tests.scaled.default: print}
    with pytest.raises(ValueError, match=r"custom_translation_table is a choice for \.onnx, not for \.pt2"):
        sg.save(function, tmp_path / "file.pt2", args=(X,), custom_translation_table=table)
