"""What a loaded program's arguments have to be besides tensors and plain values."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.deploy.description.preconditions import Precondition

X = torch.ones(3)
Y = X.clone()


class Side(enum.Enum):
    LEFT = 1
    RIGHT = 2


def total(xs: Any) -> Tensor:
    return sum(xs, torch.zeros(3))


def in_order(d: dict[str, Tensor]) -> Tensor:
    y = torch.zeros(3)
    for value in d.values():
        y = y * 2 + value
    return y


def count(items: Any, x: Tensor) -> Tensor:
    return x * len(items)


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype)


def part(x: Tensor, where: slice) -> Tensor:
    return x[where]


def side(x: Tensor, side: Side) -> Tensor:
    return -x if side is Side.LEFT else x


def scaled(x: Tensor, by: Any) -> Tensor:
    return x + torch.from_numpy(by)


def times(x: Tensor, by: float) -> Tensor:
    return x / by if x.sum() > 0 else x * by


def both(pair: Any) -> Any:
    return pair + pair


def written(x: Tensor, y: Tensor) -> Tensor:
    x.add_(1)
    return x + y


def fresh(*same: int) -> Callable[[], tuple[Tensor, ...]]:
    """Arguments made anew for each call, those of one number one tensor."""

    def make() -> tuple[Tensor, ...]:
        made = {number: X.clone() for number in same}
        return tuple(made[number] for number in same)

    return make


def always(*args: Any) -> Callable[[], tuple[Any, ...]]:
    return lambda: args


ARRAY = np.ones(3, dtype=np.float32)
CASES: list[tuple[Any, Any, Any, str]] = [
    (total, always([X, X]), always([X, X, X]), "xs of length 2, not 3"),
    (total, always([]), always([X]), "xs of length 0, not 1"),
    (in_order, always({"a": X, "b": X * 3}), always({"a": X}), "d with 'a', 'b' in it, not 'a'"),
    (
        in_order,
        always({"a": X, "b": X * 3}),
        always({"b": X * 3, "a": X}),
        "d with 'a', 'b' in it in this order, not 'b', 'a'",
    ),
    (count, always({1, 2}, X), always({1, 2, 3}, X), "items with 1, 2 in it, not 1, 2, 3"),
    (cast, always(X, torch.float64), always(X, torch.int32), "dtype = torch.float64, not torch.int32"),
    (part, always(X, slice(0, 2)), always(X, slice(0, 1)), "where = slice(0, 2, None), not slice(0, 1, None)"),
    (side, always(X, Side.LEFT), always(X, Side.RIGHT), "side = <Side.LEFT: 1>, not <Side.RIGHT: 2>"),
    (times, always(X, 2.0), always(X, float("nan")), "by = 2.0, not nan"),
    (times, always(X, float("nan")), always(X, 2.0), "by = nan, not 2.0"),
    (times, always(X, 0.0), always(X, -0.0), "by = 0.0, not -0.0"),
    (both, always((X, X)), always([X, X]), "pair being a tuple, not a list"),
    (in_order, always({"a": X}), always([X]), "d being a dict, not a list"),
    (scaled, always(X, ARRAY), always(X, ARRAY * 2), "other numbers in by"),
    (written, fresh(0, 1), fresh(0, 0), "x and y being two objects"),
    (written, fresh(0, 0), fresh(0, 1), "x and y being one object"),
]


@pytest.mark.parametrize(("function", "given", "other", "text"), CASES, ids=[case[3] for case in CASES])
def test_a_call_is_like_the_example(function: Any, given: Any, other: Any, text: str, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "saved.pt2", args=given())
    loaded = sg.load(tmp_path / "saved.pt2")
    torch.testing.assert_close(loaded(*given()), function(*given()), equal_nan=True)
    with pytest.raises(ValueError) as raised:
        loaded(*other())
    assert str(raised.value) == f"{function.__name__} was saved for {text}"


@pytest.mark.parametrize("data", [["run", [0], 1], ["same", [0], True], ["length", [], 1]])
def test_conditions_that_are_not_known(data: Any) -> None:
    with pytest.raises(sg.LoadError, match="not known here"):
        Precondition(data)
