from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from stillgraph.operators.calls.meanings import meaning_of
from tests.unit.trace.agreement import N, P, agree

Z = P * 0
INTS = tuple(torch.tensor(n) for n in (3, -7, 0, 1))
FLOATS = tuple(torch.tensor(f) for f in (3.7, -3.7, 0.2, 2.0))


@pytest.mark.parametrize(
    "function",
    [
        lambda i: (i.item() + 1, i.item() - 2, 2 - i.item(), i.item() * 3, -i.item(), +i.item(), ~i.item()),
        lambda i: (i.item() / 2, i.item() // 2, i.item() % 3, divmod(i.item(), 4), 7 + i.item(), 2.5 * i.item()),
        lambda i: (i.item() << 1, i.item() & 6, i.item() | 1, i.item() ^ 5, abs(i.item()), round(i.item())),
        lambda i: (i.item() ** 2, pow(i.item(), 3), i.item() ** 2.0, i.item() ** 0, 2 ** abs(i.item())),
        lambda i: (i.item() > 2, i.item() == 3, i.item() != 3, i.item() >= 0, bool(i.item()), not i.item()),
        lambda i: (int(i), float(i), bool(i), int(i.item()), float(i.item()), int(True), float("2"), int("7", 8)),
        lambda i: (i.item() > 0) + 1,
        lambda i: ((i.item() > 0) & True, (i.item() > 0) | False, (i.item() > 0) ^ True, -(i.item() > 0)),
        lambda i: (type(i.item()), isinstance(i.item(), int), isinstance(i.item(), (str, float))),
        lambda i: (isinstance(i.item() > 0, bool), isinstance(i.item() > 0, int), type(i.item() / 2)),
        lambda i: isinstance(i, torch.Tensor),
        lambda i: (min(i.item(), 2), max(i.item(), 2.5), max(2, i.item(), 1), min([i.item(), -1])),
        lambda i: (min(i, torch.tensor(2)), max([i, torch.tensor(0)], key=lambda t: -t)),
        lambda i: (sum([i.item(), 2]), sum([i, i], 10), sum(v for v in (1, i.item()))),
        lambda i: (any([i > 2, False]), all([i > 2, True]), any([]), all([]), any(v for v in (0, i))),
        lambda i: (math.floor(i.item() / 2), math.ceil(i.item() / 2), math.trunc(i.item() / 2), math.fabs(i)),
        lambda i: (math.exp(i.item()), math.sin(i), math.atan2(i.item(), 2), math.pi * i.item(), math.floor(2.5)),
        lambda i: (math.isnan(i.item()), math.isinf(float(i)), math.copysign(1.0, i.item()), math.gcd(int(i), 6)),
        lambda i: (torch.ones(2, dtype=torch.int64) * int(i), torch.ones(2, dtype=torch.uint8) + int(i)),
        lambda i: (torch.ones(2) / (abs(int(i)) + 1), int(i) > torch.arange(4), torch.full((2,), int(i))),
        lambda i: (torch.tensor([int(i), 1]), torch.tensor([[i, 1], [2, i]])),
        lambda i: (torch.tensor(float(i)), torch.tensor(i.item()), torch.tensor(i.item() > 0)),
    ],
)
def test_whole_numbers(function: Any) -> None:
    agree(function, *INTS)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (math.floor(x), math.ceil(float(x)), math.trunc(x.item()), int(x), round(x.item())),
        lambda x: (round(x.item(), 1), x.item() // 2, x.item() % 3, divmod(x.item(), 4), -x.item(), abs(x.item())),
        lambda x: (x.item() * 2, x.item() ** 2, x.item() > 0),
        lambda x: (max(x.item(), 0), min(0, x.item()), max(x.item(), 2.5, 1)),
        lambda x: (type(x.item()), isinstance(x.item(), float)),
        lambda x: (torch.ones(2) * x.item(), torch.ones(2, dtype=torch.int32) * x.item(), x.half() + x.item()),
        lambda x: (torch.clamp(x, min=x.item()), torch.add(x, x, alpha=x.item()), F.leaky_relu(x, x.item())),
        lambda x: (x.item().is_integer(), float(x).is_integer(), type(x) is torch.Tensor),
        lambda x: 0.0 if x.item() > 0 else -0.0,
        lambda x: float("inf") if x.item() > 0 else float("nan"),
        lambda x: (1 if x > 0 else 1.0, True if x > 0 else 1),
    ],
)
def test_floats(function: Any) -> None:
    agree(function, *FLOATS)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 10 // int(x.sum()),
        lambda x: 10 % int(x.sum()),
        lambda x: math.sqrt(x.sum().item()),
        lambda x: math.log(x.sum()),
        lambda x: 1 / x.sum().item(),
        lambda x: x.item(),
        lambda x: int(x),
        lambda x: len(x.sum()),
        lambda x: range(1.5),
        lambda x: max([]),
        lambda x: len(3),
    ],
)
def test_errors_are_eagers(function: Any) -> None:
    agree(function, P, N, Z)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: len(x),
        lambda x: (len([x, x]), len((1,)), len({}), len("abc"), len(range(3))),
        lambda x: [len(row) for row in x.reshape(3, 1)],
        lambda x: x[: int(x.sum()) // 3],
        lambda x: x[int(x.sum()) % 3],
        lambda x: x.argmax().item(),
        lambda x: (x.tolist(), x.sum().tolist(), sum(x.tolist()), [v > 0 for v in x.tolist()]),
        lambda x: (sorted([3, 1, 2], key=lambda v: -v), list(map(abs, [1, -2])), list(filter(None, [0, 1]))),
        lambda x: torch.ones(5)[: x.argmax().item()],
        lambda x: torch.zeros((x.argmax().item(), 2)).sum(),
        lambda x: [10, 20, 30][x.argmax().item()],
        lambda x: (1.5, 2.5, 3.5)[x.argmax().item()] + x.argmax().item(),
        lambda x: [x * 1, x * 2, x * 3][x.argmax().item()],
        lambda x: abs(x),
    ],
)
def test_sizes_and_indices(function: Any) -> None:
    agree(function, P, N, Z)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.float16, torch.float64])
def test_dtypes(dtype: torch.dtype) -> None:
    def count_down(x: torch.Tensor) -> tuple[Any, ...]:
        y = x * 2 if x.sum() > 1 else x + x
        n = 0
        while y.sum() > 1:
            y = y // 2
            n += 1
        return y, n, x.max().item(), bool(x[0])

    agree(count_down, torch.tensor([1, 1, 0]).to(dtype), torch.tensor([0, 1, 0]).to(dtype))


def test_every_function_of_math_has_a_meaning() -> None:
    functions = [getattr(math, name) for name in dir(math) if callable(getattr(math, name))]
    missing = [each.__name__ for each in functions if meaning_of(each) is None]
    assert missing == []
