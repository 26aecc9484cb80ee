"""Tables of functions that compute whatever they are given: torch has a kernel for each type of element they name."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode

from stillgraph.trace.torch_rules import failures

SHAPES: list[tuple[int, ...]] = [(2, 2), (2, 2, 4, 4), ()]
FEW = ["gcd", "argmax", "lerp", "std", "bitwise_and", "masked_fill", "cummax", "pdist", "sub", "mul"]
ANY = [torch.float32, torch.int64, torch.uint8, torch.bool, torch.bfloat16, torch.complex64]
TABLES = [(failures._OF_ANY_TYPE, ANY), *((names, sorted(types, key=str)) for names, types in failures._KERNELS)]


def _functions(name: str) -> list[Callable[..., Any]]:
    spelt = [(space, each) for space in (torch, F, torch.Tensor) for each in (name, f"{name}_", f"__{name}__")]
    return [getattr(space, each) for space, each in spelt if callable(getattr(space, each, None))]


def _succeeds(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    try:
        function(*args)
    except Exception:  # of any kind: torch's, for arguments that are tried
        return False
    return True


def _agrees(function: Callable[..., Any], shape: tuple[int, ...], dtype: torch.dtype, count: int, tail: Any) -> bool:
    """Whether a function computes if its fake does, or `failures_of` tells that it may not."""
    tensors = [torch.ones(shape).to(dtype) for _ in range(count)]
    with FakeTensorMode() as mode:
        if not _succeeds(function, (*(mode.from_tensor(each) for each in tensors), *tail)):
            return True
    if failures.failures_of(function, (*tensors, *tail), {}):
        return True
    return _succeeds(function, (*tensors, *tail))


def _wrong(name: str, types: list[torch.dtype]) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ways = itertools.product(_functions(name), SHAPES, types, (1, 2, 3), ((), (1,)))
        return [way for way in ways if not _agrees(*way)]


@pytest.mark.parametrize("name", FEW)
def test_what_is_known_of_a_function_is_so(name: str) -> None:
    for names, types in TABLES:
        if name in names:
            assert _wrong(name, types) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(TABLES)))
def test_so_with_all_functions(number: int) -> None:
    names, types = TABLES[number]
    assert {name: wrong for name in sorted(names) if (wrong := _wrong(name, types))} == {}


def test_no_function_is_in_two_tables() -> None:
    for (some, _), (others, _) in itertools.combinations(TABLES, 2):
        assert some & others == set()
