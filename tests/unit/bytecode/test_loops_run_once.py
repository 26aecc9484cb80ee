"""Loops whose bodies always leave them: there is no way back in their code, and only the run knows if they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.front_ends import bytecode  # noqa: F401  # a fixture


def over_a_range(x: Tensor) -> Any:
    for n in range(int(x.argmax())):
        return x + n, n
    return x * 2, None


def over_rows(x: Tensor) -> Any:
    for row in x[x > 0]:
        return row * 2
    return x.sum()


def enumerated(x: Tensor) -> Any:
    for n, row in enumerate(x[x > 0]):
        return row * 2 + n
    return x.sum()


def by_an_else(x: Tensor) -> Any:
    for n in range(int(x.argmax())):
        for row in x:
            print(row.item(), n)
        else:
            return x + n
    return x * 2


def listed(x: Tensor) -> Any:
    found = []
    for row in x:
        if row > 0:
            found.append(row * 2)
    for each in found:
        return each
    return x


FUNCTIONS = [over_a_range, over_rows, enumerated, by_an_else, listed]
CALLS = [[1.0, 2.0, -1.0], [-1.0, -2.0, -3.0], [3.0, 1.0, 1.0], [0.0, -1.0, 5.0]]


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.usefixtures("bytecode")
def test_as_in_eager(
    function: Callable[[Tensor], Any], full_graph: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {} if full_graph else {"full_graph": False, "strict": True}
    static: Any = sg.to_static(function, backend="eager", **options)
    for values in CALLS:
        x = torch.tensor(values)
        wanted, printed = function(x), capsys.readouterr().out
        assert_same(wanted, static(x))
        assert capsys.readouterr().out == printed
