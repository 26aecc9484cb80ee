"""What a refusal says: the place, both values, both lines, and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import P, refusal


def ranks(x: Tensor) -> Any:
    if x.sum() > 0:
        y = x + 1
    else:
        y = x.sum()
    return len({y: 1})


def dtypes_in_a_container(x: Tensor) -> Any:
    found = {"best": x}
    if x.sum() > 0:
        found["best"] = x * 2
    else:
        found["best"] = torch.zeros(3, dtype=torch.long)
    return {found["best"]: 1}


def in_a_loop(x: Tensor) -> Any:
    while x.sum() < 10:
        x = x.unsqueeze(0)
    return x


def before_and_in_a_loop(x: Tensor) -> Any:
    best = "none"
    count = 0
    while x.sum() < 10:
        best = x * 2 if count else {"x": x}
        x = x + 1
        count = count + 1
    return best


class Box:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def made_on_one_path(x: Tensor, box: Any = Box()) -> Any:  # noqa: B008 -- one from outside
    if x.sum() > 0:
        box.value = x
    return x


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        (
            ranks,
            [
                "Shape Join Failed: shape1 = (3,), shape2 = () (in 'y')",
                "one path leaves a float32 tensor of shape (3,):",
                'line 16, in ranks\n    y = x + 1\n        ^^^^^\n',
                "the other path leaves a float32 tensor of shape ():",
                'line 18, in ranks\n    y = x.sum()\n        ^^^^^^^\n',
                "hint: Give 'y' the same number of dimensions on both paths",
            ],
        ),
        (
            dtypes_in_a_container,
            [
                "outputs differ in dtype: torch.float32 and torch.int64",
                "one path leaves a float32 tensor of shape (3,):",
                'line 25, in dtypes_in_a_container\n    found["best"] = x * 2\n',
                "the other path leaves an int64 tensor of shape (3,):",
                'line 27, in dtypes_in_a_container\n    found["best"] = torch.zeros(3, dtype=torch.long)\n',
                "hint: Convert 'found['best']' with .to(torch.float32) where it is torch.int64",
            ],
        ),
        (
            in_a_loop,
            [
                "Shape Join Failed: shape1 = (3,), shape2 = (1, 3) (in 'x')",
                "before the loop 'x' is a float32 tensor of shape (3,):",
                "line 31, in in_a_loop\n    def in_a_loop(x: Tensor) -> Any:\n",
                "after an iteration 'x' is a float32 tensor of shape (1, 3):",
                "line 33, in in_a_loop\n    x = x.unsqueeze(0)\n",
            ],
        ),
        (before_and_in_a_loop, ["'best' is 'none' before the loop and a dict of 1 after an iteration"]),
        (made_on_one_path, ["an attribute is made or deleted on one path only (in 'box.value')"]),
    ],
)
def test_says(function: Any, texts: list[str]) -> None:
    message = str(refusal(function, P / 10))
    for text in texts:
        assert text in message
    assert __file__ in message
