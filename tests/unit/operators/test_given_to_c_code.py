"""Objects whose ``__index__`` gives what only the run knows, where code in C asks: Python's, torch's and packages'.

That swallows or rewords what is said of something that is no number of Python's. No handler of the user's sees it.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.trace.agreement import agree, outcome, same_error

CALLS = [tensor(2), tensor(1)]


class Index:
    def __init__(self, given: Any) -> None:
        self.given = given

    def __index__(self) -> Any:
        return self.given


class Iterated(Index):
    def __iter__(self) -> Iterator[int]:
        return iter([1, 2])


class Sized(Index):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, at: int) -> int:
        return [5][at]


def split(value: Any) -> Any:
    return torch.ones(4).split(value)


IN_PYTHON = {
    "percent": lambda n: "%d" % Index(n),  # noqa: UP031  # what is tested
    "percent, one of several": lambda n: "%x %d" % (Index(n), 3),  # noqa: UP031  # what is tested
    "percent, by a name": lambda n: "%(n)d" % {"n": Index(n)},  # noqa: UP031  # what is tested
    "percent, of bytes": lambda n: b"%d" % Index(n),
    "bytes": lambda n: bytes(Index(n)),
    "bytes, iterated": lambda n: bytes(Iterated(n)),
    "bytes, sized": lambda n: bytes(Sized(n)),
    "bytearray": lambda n: bytearray(Iterated(n)),
    "chr": lambda n: chr(Index(n)),
    "centred": lambda n: "abc".center(Index(n)),
    "packed": lambda n: struct.pack("i", Index(n)),
    "sliced": lambda n: list(itertools.islice([1, 2, 3], Index(n))),
    "numpy": lambda n: np.zeros(Index(n)).tolist(),
    "padded by torch's Python": lambda n: torch.nn.functional.pad(torch.ones(2), (Index(n), 1)),
}
TAKEN_BY_TORCH = {
    "zeros": lambda n: torch.zeros(Index(n)),
    "zeros of a tuple": lambda n: torch.zeros((Index(n), 2)),
    "zeros by a name": lambda n: torch.zeros(size=(Index(n),)),
    "expand": lambda n: torch.ones(3, 3).expand([Index(n), 3, 3]),
    "view": lambda n: torch.arange(4.0).view(Index(n), -1),
    "select": lambda n: torch.arange(4.0).select(0, Index(n)),
    "topk": lambda n: torch.arange(4.0).topk(Index(n))[0],
}
REFUSED_BY_TORCH = {
    "arange": lambda n: torch.arange(Index(n)),
    "full": lambda n: torch.full((2,), Index(n)),
    "add_": lambda n: torch.ones(4).add_(Index(n)),
    "tensor": lambda n: torch.tensor([Index(n)]),
    "split": lambda n: split(Index(n)),
    "a size by a name": lambda n: torch.zeros(size=Index(n)),
    "cat": lambda n: torch.cat([torch.ones(1), torch.ones(1)], Index(n)),
}


def handled(use: Callable[[Any], Any]) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        found, raised = None, False
        try:
            found = use(int(x))
        except (TypeError, ValueError, RuntimeError, struct.error):
            raised = True
        return found, raised

    return function


def bare(use: Callable[[Any], Any]) -> Callable[[Tensor], Any]:
    return lambda x: use(int(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("around", [handled, bare])
@pytest.mark.parametrize("use", [*IN_PYTHON, *TAKEN_BY_TORCH, *REFUSED_BY_TORCH])
@pytest.mark.parametrize("full_graph", [True, False])
def test_as_in_eager(use: str, around: Callable[[Any], Any], full_graph: bool) -> None:
    function = around({**IN_PYTHON, **TAKEN_BY_TORCH, **REFUSED_BY_TORCH}[use])
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for call in CALLS:
        expected, actual = outcome(function, (call,)), outcome(static, (call,))
        assert same_error(expected["error"], actual["error"]), (call, actual["error"])
        assert_same(expected["value"], actual["value"], f"{use}: {call}")


@pytest.mark.parametrize("use", TAKEN_BY_TORCH)
def test_captured(use: str) -> None:
    agree(handled(TAKEN_BY_TORCH[use]), *CALLS)
