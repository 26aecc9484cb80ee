"""What a refusal says: the place, both values, both lines, and what to write instead."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from tests.unit.trace.agreement import P, refusal


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
            in_a_loop,
            [
                "Shape Join Failed: shape1 = (3,), shape2 = (1, 3) (in 'x')",
                "before the loop 'x' is a float32 tensor of shape (3,):",
                "line 13, in in_a_loop\n    def in_a_loop(x: Tensor) -> Any:\n",
                "after an iteration 'x' is a float32 tensor of shape (1, 3):",
                "line 15, in in_a_loop\n    x = x.unsqueeze(0)\n",
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
