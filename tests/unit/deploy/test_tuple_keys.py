"""Dicts and sets by tuples of numbers of the run, in files: every format looks for them among columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.cases.harness import python_module

INPUTS = [torch.tensor(ids) for ids in ([1, 2, 1, 2, 1], [0, 0, 3, 0, 0], [3, 2, 1, 0, 3], [2, 2, 2, 2, 2])]


def repeated(index: Tensor) -> Any:
    seen: dict[tuple[int, int], int] = {}
    found = 0
    k = 0
    while k < index.max() + 1:
        pair = int(index[k]), k % 2
        if pair in seen:
            found += seen[pair]
        else:
            seen[pair] = k
        k += 1
    return found, len(seen), torch.tensor([k for _, k in sorted(seen.items(), key=lambda item: item[0])])


def until_it_comes_again(index: Tensor) -> Any:
    seen = set()
    a, b = int(index[0]), int(index[1])
    while (a, b) not in seen:
        seen.add((a, b))
        a, b = b, (a + b) % 5
    return a, b, len(seen)


def looked_up(index: Tensor) -> Any:
    table = {(1, 2): 10, (0, 0): 30, (3, 2): 5}
    return index * table[int(index[0]), int(index[1])]


FORMATS = [
    (until_it_comes_again, ".pt2"),
    (until_it_comes_again, ".py"),
    (repeated, ".py"),
    *(pytest.param(each, ".onnx", marks=pytest.mark.slow) for each in (until_it_comes_again, repeated)),
    pytest.param(repeated, ".pt2", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("function", "suffix"), FORMATS)
def test_it_is_found_in_files(function: Any, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"saved{suffix}"
    sg.save(function, path, args=(INPUTS[0],))
    loaded = getattr(python_module(path), function.__name__) if suffix == ".py" else sg.load(path)
    for index in INPUTS:
        assert_same(function(index), loaded(index))


@pytest.mark.parametrize("suffix", [".pt2", ".py"])
def test_what_is_missing_is_named(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"saved{suffix}"
    sg.save(looked_up, path, args=(INPUTS[0],))
    loaded = python_module(path).looked_up if suffix == ".py" else sg.load(path)
    for index in INPUTS[:3]:
        assert_same(looked_up(index), loaded(index))
    with pytest.raises(KeyError, match=r"\(2, 2\)" if suffix == ".py" else r"\(\.\.\., \.\.\.\)"):
        loaded(INPUTS[3])
