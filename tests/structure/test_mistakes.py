"""The ten typical mistakes of docs/errors.md: refused as the page says, and mended they are eager's equal."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg
from bench.mistakes import MISTAKES, Mistake, by_stillgraph, target
from tests.cases.compare import assert_same

TEXT = (Path(__file__).parents[2] / "docs/errors.md").read_text().partition("\n# Ten typical mistakes")[2]


def called(function: Any, args: tuple[Any, ...], static: bool) -> Any:
    torch.manual_seed(0)
    made = target(function)
    return (sg.to_static(made, backend="eager") if static else made)(*(value.clone() for value in args))


def test_there_are_ten() -> None:
    assert len(MISTAKES) == 10
    assert len({mistake.code for mistake in MISTAKES}) == 10


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_eager_pytorch_takes_it_and_stillgraph_says_what_the_page_shows(mistake: Mistake) -> None:
    called(mistake.wrong, mistake.args, static=False)
    message = by_stillgraph(mistake)
    assert f"reason {mistake.code} " in message
    assert f"```\n{message}\n```\n" in TEXT
    assert f"```python\n{inspect.getsource(mistake.wrong)}```\n" in TEXT


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_the_mended_form_gives_what_eager_gives(mistake: Mistake) -> None:
    assert f"```python\n{inspect.getsource(mistake.mended)}```\n" in TEXT
    for scale in (1.0, 2.0, 0.1):
        args = tuple(value * scale for value in mistake.args)
        expected, actual = (called(mistake.mended, args, static) for static in (False, True))
        assert_same(expected, actual, mistake.title)
