"""Files of programs in which only the run knows which of several objects is meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.operators import test_one_of_several_objects as written

FUNCTIONS = [written.changed_behind, written.of_matches, written.walked, written.in_a_try, written.of_both_arms]


@pytest.mark.parametrize("suffix", ["pt2", "onnx"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_file_gives_what_eager_gives(function: Callable[[Tensor], Any], suffix: str, tmp_path: Path) -> None:
    sg.save(function, path := tmp_path / f"several.{suffix}", args=(written.CALLS[0],))
    loaded = sg.load(path)
    for x in written.CALLS:
        assert_same(function(x), loaded(x))
