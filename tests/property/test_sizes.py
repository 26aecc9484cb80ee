"""Sizes and whole numbers that differ from call to call: each conformance case, called with others in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.cases.case import Case, all_cases
from tests.cases.compare import tensors_in
from tests.cases.harness import _assert_same_outcome, observe

CHANGES = (lambda size: size + 1, lambda size: size + 2, lambda size: 2 * size, lambda size: 2 * size + 1)


def _sizes(args: Any) -> list[int]:
    """The sizes of two or more in a call."""
    return sorted({size for tensor in tensors_in(args) for size in tensor.shape if size > 1})


def _resized(value: Any, old: int, new: int) -> Any:
    """A value in which every dimension of one size is another one; rows come again from the beginning."""
    if isinstance(value, torch.Tensor):
        for dim, size in enumerate(value.shape):
            if size == old:
                value = value.index_select(dim, torch.arange(new) % old)
        return value
    if type(value) in (list, tuple):
        return type(value)([_resized(each, old, new) for each in value])
    if type(value) is dict:
        return {key: _resized(each, old, new) for key, each in value.items()}
    return value


def _calls(case: Case) -> Iterator[tuple[int, list[Any]]]:
    """By the size that changes: the calls of a case in a row."""
    for old in _sizes(case.inputs[0]):
        yield old, [case.inputs[0], *(_resized(case.inputs[0], old, change(old)) for change in CHANGES)]


CASES = [case for case in all_cases().values() if case.capture_refused is None and case.input_dims is None]


def _with_numbers(case: Case) -> Iterator[tuple[int, list[Any]]]:
    """By the position of a whole number: the calls of a case with others in a row."""
    args = case.inputs[0]
    for place, given in enumerate(args):
        if type(given) is int:
            yield place, [args, *((*args[:place], change(max(given, 1)), *args[place + 1 :]) for change in CHANGES)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_calls_of_other_sizes_are_eagers(case: Case) -> None:
    for old, calls in _calls(case):
        _check(case, f"dimensions of size {old}", calls)


@pytest.mark.parametrize("case", [each for each in CASES if [*_with_numbers(each)]], ids=lambda case: case.name)
def test_calls_with_other_numbers_are_eagers(case: Case) -> None:
    for place, calls in _with_numbers(case):
        _check(case, f"argument {place}", calls)


# AOTAutograd gives zeros to a parameter that a region uses for a result that nobody takes; eager PyTorch, None.
ZEROS = {"EarlyExitMLP"}


@pytest.mark.slow
@pytest.mark.parametrize("case", [each for each in CASES if each.name not in ZEROS], ids=lambda case: case.name)
def test_calls_of_other_sizes_are_eagers_through_a_backend(case: Case) -> None:
    for old, calls in _calls(case):
        _check(case, f"dimensions of size {old}", calls, "aot_eager")


def _check(case: Case, what: str, calls: list[Any], backend: str = "eager") -> None:
    """Every call that eager PyTorch can make gives what eager gives, and so do the case's own calls after them."""
    eager, static = case.target(), sg.to_static(case.target(), backend=backend, cache_size=16)
    made = [args for args in calls if observe(case, case.target(), args).error is None]
    for number, args in enumerate([*made, *case.inputs[1:]]):
        expected, actual = observe(case, eager, args), observe(case, static, args)
        try:
            _assert_same_outcome(expected, actual)
        except AssertionError as error:
            raise AssertionError(f"other {what}, call {number}: {error}") from error
