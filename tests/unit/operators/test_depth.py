"""Recursion whose depth Python knows: as deep as in eager PyTorch, and no deeper."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.trace.code.depth import Depth
from tests.unit.trace.agreement import P, agree


@pytest.fixture(autouse=True)
def pythons_own_limit() -> Iterator[None]:
    """Inductor makes the limit larger, and leaves it so."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.fixture(autouse=True)
def nothing_is_warned_of() -> Iterator[None]:
    """A capture that fails would tell of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def added(x: Tensor, depth: int) -> Tensor:
    return x if depth == 0 else added(x, depth - 1) + 1


def counted(depth: int) -> int:
    return 0 if depth == 0 else 1 + counted(depth - 1)


class Node:
    def __init__(self, depth: int) -> None:
        self.next = Node(depth - 1) if depth else None

    def walked(self, x: Tensor) -> Tensor:
        return x * 2 if self.next is None else self.next.walked(x)


@pytest.mark.parametrize(
    "depth", [150, pytest.param(400, marks=pytest.mark.slow), pytest.param(900, marks=pytest.mark.slow)]
)
def test_deep(depth: int) -> None:
    agree(added, (P, depth))


def test_without_tensors() -> None:
    agree(lambda x: x + counted(850), P)


def test_methods() -> None:
    chain = Node(300)
    agree(lambda x: chain.walked(x), P)


def test_too_deep() -> None:
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        sg.to_static(lambda x: x + counted(1200), backend="eager")(P)


def test_too_deep_and_handled() -> None:
    def handled(x: Tensor) -> Any:
        try:
            return x + counted(2000)
        except RecursionError:
            return x - 1

    agree(handled, P)


def test_pythons_limit_is_as_it_was() -> None:
    limit = sys.getrecursionlimit()
    agree(lambda x: x + sys.getrecursionlimit(), P)
    sys.setrecursionlimit(limit - 10)
    try:
        agree(lambda x: x + sys.getrecursionlimit(), P)
        assert sys.getrecursionlimit() == limit - 10
    finally:
        sys.setrecursionlimit(limit)


def test_a_limit_that_the_code_sets_stays() -> None:
    depth = Depth()
    before = sys.getrecursionlimit()
    try:
        with depth.raised():
            assert sys.getrecursionlimit() > before
            sys.setrecursionlimit(before + 500)
        assert sys.getrecursionlimit() == before + 500
    finally:
        sys.setrecursionlimit(before)
    with depth.raised(), depth.as_eager():
        assert sys.getrecursionlimit() < before + 200
    assert sys.getrecursionlimit() == before


def nested(depth: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


@pytest.mark.parametrize(
    "options", [{}, pytest.param({"full_graph": False}, marks=pytest.mark.slow)], ids=["full", "segments"]
)
def test_what_is_not_followed_goes_no_deeper_than_in_eager(options: dict[str, Any]) -> None:
    def copies(x: Tensor, depth: int) -> Tensor:
        held = nested(depth)
        try:
            copy.deepcopy(held)
        except RecursionError:
            return x - 1
        return x + 1

    if options:
        warnings.simplefilter("ignore")  # no segment hands on such a list: plain PyTorch goes on, with a warning
    static, limit = sg.to_static(copies, backend="eager", **options), sys.getrecursionlimit()
    for depth in (50, 1500):
        assert torch.equal(static(P, depth), copies(P, depth))
        assert sys.getrecursionlimit() == limit
