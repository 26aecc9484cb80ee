"""Dicts and sets whose keys only the run knows, as results and tables of files."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.cases.harness import python_module

NUMBERS = [torch.tensor(n) for n in (5, 2, 3, 7)]


def fibonacci(n: Tensor) -> Any:
    memo = {0: 0, 1: 1}
    for i in range(2, int(n) + 1):
        memo[i] = memo[i - 1] + memo[i - 2]
    return memo[int(n)], memo


def counted(n: Tensor) -> Any:
    found: Any = collections.Counter({0: 1})
    order: Any = collections.OrderedDict()
    for i in range(int(n)):
        found[i % 3] += 1
        order[(i * i) % 5] = i
    return found, order, found[1]


def after_an_arm(n: Tensor) -> Any:
    held, seen = {0: 1}, {0}
    if n > 2:
        held[1] = 5
        seen.add(1)
    was = int(n) in held, held.get(int(n) - 2, 7)
    held[int(n)] = 9
    seen.add(int(n))
    return held, was, len(held), seen


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
@pytest.mark.parametrize("function", [fibonacci, counted, after_an_arm])
def test_files_give_them(function: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"saved{suffix}"
    sg.save(function, path, args=(NUMBERS[0],))
    loaded = getattr(python_module(path), function.__name__) if suffix == ".py" else sg.load(path)
    for n in NUMBERS:
        expected, given = function(n), loaded(n)
        assert_same(expected, given)
        assert repr(expected) == repr(given)
