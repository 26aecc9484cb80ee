"""``try`` around operations of torch's that fail for some numbers, sizes or indices of the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.unit.trace.agreement import agree

X = torch.tensor([1.0, 2.0])
OPERATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "reshape": lambda x, n: x.reshape(int(n)),
    "view": lambda x, n: x.view((int(n), 1)),
    "expand": lambda x, n: x.expand(int(n), 2),
    "narrow": lambda x, n: x.narrow(0, 0, int(n)),
    "select": lambda x, n: x.select(0, int(n)),
    "index_select": lambda x, n: x.index_select(0, n.reshape(1)),
    "gather": lambda x, n: x.gather(0, n.reshape(1)),
    "index": lambda x, n: x[n.reshape(1)],
    "cat": lambda x, n: torch.cat([x.reshape(1, 2), x.new_zeros(1, int(n))]),
    "stack": lambda x, n: torch.stack([x, x.new_zeros(int(n))]),
    "matmul": lambda x, n: x @ x.new_zeros(int(n)),
    "zeros": lambda x, n: torch.zeros(int(n)),
    "add": lambda x, n: x + x.new_zeros(int(n)),
    "mask": lambda x, n: x[x > 0].reshape(2) * n,
    "remainder": lambda x, n: x.to(torch.int64) % int(n),
    "multiply": lambda x, n: x * int(n),
}


@pytest.mark.parametrize("kinds", [(RuntimeError,), (IndexError, RuntimeError)], ids=["one kind", "two kinds"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_handled_as_in_eager(name: str, kinds: tuple[type[Exception], ...]) -> None:
    operation = OPERATIONS[name]

    def function(x: Tensor, n: Tensor) -> Tensor:
        y = x
        try:
            y = operation(x, n)
        except kinds:
            y = x * 0
        return y

    agree(function, *((X, torch.tensor(n)) for n in (3, 2, 1, 0, -1, -5, 7)), (-X, torch.tensor(2)))


def test_remove_says_what_pythons_says() -> None:
    def function(x: Tensor, n: Tensor) -> list[int]:
        values = [1, 2]
        values.remove(int(n))
        return values

    agree(function, *((X, torch.tensor(n)) for n in (2, 3, 1, -1)))
