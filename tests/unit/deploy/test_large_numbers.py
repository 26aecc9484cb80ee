"""Numbers that no other dtype holds: all digits of whole numbers, and floats beyond single precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

SUFFIXES = [".pt2", pytest.param(".onnx", marks=pytest.mark.slow)]


def whole(x: Tensor) -> tuple[int, ...]:
    n = int(x)
    return math.floor(n), math.ceil(n), round(n, 2), round(n, -1), round(n, -2)  # noqa: RUF057 (no digit is one, too)


def floats(x: Tensor) -> tuple[Any, ...]:
    v = x.item()
    return math.isinf(v), v.is_integer(), torch.isinf(x), torch.isfinite(x)


WHOLE = [2**53 + 1, 2**63 - 10, 2**62, -15, -25, 25, 15, 5, -5, 250, 150, -250, 0]
FLOATS = [1.5, 1e39, -1e308, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("function", "values", "dtype"), [(whole, WHOLE, torch.int64), (floats, FLOATS, torch.float64)]
)
def test_files_give_pythons_numbers(
    function: Callable[..., Any], values: list[Any], dtype: torch.dtype, suffix: str, tmp_path: Path
) -> None:
    sg.save(function, tmp_path / f"f{suffix}", args=(torch.tensor(1, dtype=dtype),))
    loaded = sg.load(tmp_path / f"f{suffix}")
    for value in values:
        x = torch.tensor(value, dtype=dtype)
        assert loaded(x) == function(x), value


def test_an_operator_that_onnxruntime_lacks_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="onnxruntime has no Atan") as refused:
        sg.save(
            lambda x: math.atan2(x.item(), 2.0), tmp_path / "f.onnx", args=(torch.tensor(1.0, dtype=torch.float64),)
        )
    assert refused.value.reason.code == "SG402"
