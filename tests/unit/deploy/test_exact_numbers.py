"""Files compute as exactly as Python: rounding to digits, whole numbers beside floats that cannot hold them."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

FORMATS = [".pt2", ".onnx"]


def as_float(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


@pytest.fixture(scope="module", params=FORMATS)
def rounding(request: Any, tmp_path_factory: Any) -> Any:
    """A file of this format that rounds."""

    def rounded(x: Tensor) -> Any:
        value = x.item()
        return round(value, 1), round(value, 2), round(value, 6), round(value, -1)

    path = tmp_path_factory.mktemp("rounding") / f"rounded{request.param}"
    sg.save(rounded, path, args=(as_float(1.0),))
    return sg.load(path)


def drawn() -> list[float]:
    """Values whose decimals end in a five, or nearly: the product with a power of ten is rounded to a half, or not."""
    draw = random.Random(0)
    halves = [draw.randrange(-2000, 2000) / 10**digits + 0.5 / 10**digits for digits in (1, 2, 6) for _ in range(20)]
    exact = [draw.randrange(10**6) / 2 ** draw.randrange(1, 12) for _ in range(20)]
    return [0.15, 2.675, -0.15, 0.25, 0.05, 1.005, 123456789.125, 1e16, 1e22, math.inf, 5e-324, *halves, *exact]


def test_rounding_to_digits(rounding: Any) -> None:
    for value in drawn():
        assert rounding(as_float(value)) == tuple(round(value, digits) for digits in (1, 2, 6, -1)), value
    assert math.isnan(rounding(as_float(math.nan))[0])


def compared(k: Tensor, x: Tensor) -> Any:
    n, v = int(k), x.item()
    with_a_number = (n == v, n != v, n < v, n <= v, n > v, n >= v, v < n, v >= n)
    with_halves = (n < 0.5, n >= 0.5, n == 0.5, n != 0.5, n <= -0.5, n > 0.5)
    return with_a_number, with_halves, (n < 2.0**53, n < 2.0**63, n > math.nan)


@pytest.mark.parametrize("suffix", FORMATS)
def test_whole_numbers_beside_floats(tmp_path: Path, suffix: str) -> None:
    sg.save(compared, tmp_path / f"compared{suffix}", args=(torch.tensor(3), as_float(2.0)))
    loaded = sg.load(tmp_path / f"compared{suffix}")
    whole = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
    floats = [0.0, 0.5, -0.5, 1.0, 2.0**53, -(2.0**53), 2.0**63, -(2.0**63), 2.0**64, math.inf, -math.inf, math.nan]
    for k, v in itertools.product(whole, floats):
        given = torch.tensor(k), as_float(v)
        assert loaded(*given) == compared(*given), (k, v)


def extremes_and_rests(x: Tensor, y: Tensor) -> Any:
    a, b = x.item(), y.item()
    extremes = (max(a, b), min(a, b), max(0.0, a), min(a, 0.0), max(1.0, a, b), min(-0.0, b), max(-0.0, a))
    c, d = a if abs(a) < 5 else -3.0, b if 0 < abs(b) < 5 else -1.5
    return extremes, (c % 2.0, c % -2.0, -6.0 % d, c % d, c // 2.0, c // -2.0)


@pytest.mark.parametrize("suffix", FORMATS)
def test_zeros_have_pythons_sign_and_nan_is_beyond_nothing(tmp_path: Path, suffix: str) -> None:
    sg.save(extremes_and_rests, tmp_path / f"extremes{suffix}", args=(as_float(1.0), as_float(2.0)))
    loaded = sg.load(tmp_path / f"extremes{suffix}")
    for a, b in itertools.product((1.0, -4.0, 0.0, -0.0, 2.5, math.inf, math.nan), repeat=2):
        found, expected = (repr(each(as_float(a), as_float(b))) for each in (loaded, extremes_and_rests))
        if suffix == ".onnx":  # whose runtime picks with an addition: -0.0 becomes 0.0
            found, expected = (each.replace("-0.0", "0.0") for each in (found, expected))
        assert found == expected, (a, b)
