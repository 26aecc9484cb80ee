"""Files of functions in which one path relies on a size, and another asks for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.sampling import only
from tests.unit.trace.sizes_of_paths import EXAMPLE, FUNCTIONS, OF_ANY_SIZE, OF_EIGHT, by_count, of_four

FAST = {(by_count, ".pt2"), (of_four, ".onnx")}
FILES = [(function, suffix) for function in FUNCTIONS for suffix in (".pt2", ".onnx")]


def _outcome(call: Callable[[Tensor], Any], x: Tensor) -> Any:
    try:
        return call(x)
    except Exception as error:
        return error


@pytest.mark.parametrize(("function", "suffix"), only(FILES, FAST))
def test_a_file_for_every_size(function: Callable[[Tensor], Any], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{suffix}"
    sg.save(function, path, args=(EXAMPLE,), input_spec=[sg.InputSpec([None])])
    loaded = sg.load(path)
    for x in (*OF_EIGHT, *OF_ANY_SIZE):
        expected, actual = _outcome(function, x), _outcome(loaded, x)
        if isinstance(expected, Exception):
            assert isinstance(actual, Exception), f"{x}: {actual}"
            if isinstance(expected, ValueError) and suffix == ".pt2":  # what the function raises, not an operation
                assert (type(actual), str(actual)) == (ValueError, str(expected))
        else:
            torch.testing.assert_close(actual, expected)
