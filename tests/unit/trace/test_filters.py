"""Filters of the user's for warnings, which a capture's own doings are none of the business of."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg


def strict_about_warnings(x: Any) -> Any:
    y = x * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warnings.warn("old", DeprecationWarning, stacklevel=1)
        except DeprecationWarning:
            y = y * -1
    return y


@pytest.mark.parametrize("full", [True, False])
def test_a_tensor_that_is_no_leaf(full: bool) -> None:
    options = {} if full else {"strict": True}
    static = sg.to_static(strict_about_warnings, backend="eager", full_graph=full, **options)
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        assert torch.equal(static(x), strict_about_warnings(x))


def test_logs_that_tell_everything(tmp_path: Path) -> None:
    """A program is explained for them, with guards on what has no hash."""
    words = {"a": 1, "b": 2, "c": [1, 2]}
    names = ["a", "b"] * 40

    def function(x: Any, given: list[str]) -> Any:
        found = [words.get(each, 0) for each in given]
        return x * sum(each for each in found if isinstance(each, int)), sorted(names), words

    handler, logger = logging.FileHandler(tmp_path / "log"), logging.getLogger("stillgraph")
    logger.addHandler(handler)
    sg.set_verbosity(3)
    try:
        static = sg.to_static(function, backend="eager", full_graph=False, strict=True)
        for given in (["a"], ["b", "c"], ["a", "a", "c"] * 40):
            assert torch.equal(static(torch.ones(2), given)[0], function(torch.ones(2), given)[0])
    finally:
        sg.set_verbosity(0)
        logger.removeHandler(handler)
        handler.close()
    assert (tmp_path / "log").read_text()
