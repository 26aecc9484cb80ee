"""Keys that are numbers which only the run knows."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from tests.unit.operators.partly_filled import CALLS
from tests.unit.trace.agreement import agree


def looked_up(x: Tensor) -> Any:
    k = int((x > 0).sum())
    table = {0: x, 1: x + 1, 4: x + 2, 2: x * 5}
    names = {True: 1.5, False: 2.5}
    return table[k], names[bool(x[0] > 0)], k in table, k in {2, 3}, k not in frozenset((0, 9)), table.get(k, x)


def looked_up_in_vain(x: Tensor) -> Any:
    k = int((x > 0).sum())
    return {0: 1, 2: 3}.get(k, -1), {0: x, 2: x + 1}.get(k), {0: x, 2: x + 1}[k]


def looked_up_in_vain_and_caught(x: Tensor) -> Any:
    try:
        return {0: (x, 1), 2: (x + 1, 2)}[int((x > 0).sum())]
    except KeyError:
        return (x, 0)


@pytest.mark.parametrize("function", [looked_up, looked_up_in_vain, looked_up_in_vain_and_caught])
def test_staged_keys(function: Any) -> None:
    agree(function, *CALLS)
    agree(function, *reversed(CALLS))
