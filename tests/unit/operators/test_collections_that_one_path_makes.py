"""A list, dict or set of which only the run knows the length, in a variable or attribute that one path alone sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same

CALLS = [
    torch.tensor(values)
    for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [9.0], [0.0], [1.0, 0.0], [9.0, 0.0], [7.0, 8.0])
]
WORDS = [1, 2]


class Holder:
    """An object with any attributes."""


# ---- what does not reach the path that has none
def returned_elsewhere(x: Tensor) -> Any:
    if x.sum() > 0:
        found = [v for v in x if v > 1]
    else:
        return x
    return found


def looked_up(x: Tensor) -> Any:
    try:
        words = [WORDS[i] for i in x.long().tolist() if i != 0]
    except IndexError:
        return "unknown"
    return words


def told_by_a_flag(x: Tensor) -> Any:
    known = True
    try:
        words = [WORDS[i] for i in x.long().tolist() if i != 0]
    except IndexError:
        known = False
    return words if known else None


def by_the_same_condition(x: Tensor) -> Any:
    if x.sum() < 5:
        found = [v for v in x.tolist() if v != 0]
    if x.sum() < 5:
        return found
    return 0


def made_by_an_iteration(x: Tensor) -> Any:
    for v in x.tolist():
        if v > 5:
            return "large"
        found = [u for u in x.tolist() if u]
    return found


def found_by_a_loop(x: Tensor) -> Any:
    for v in x.tolist():
        if v > 5:
            found = [u for u in x.tolist() if u < v]
            break
    else:
        return None
    return found


def of_lists(x: Tensor) -> Any:
    if x.sum() > 0:
        rows = [[v] for v in x if v > 1]
    else:
        return x
    return rows, len(rows)


def a_dict(x: Tensor) -> Any:
    if x.sum() > 0:
        found = {i: v for i, v in enumerate(x.tolist()) if v > 1}
    else:
        return x
    return found


def a_dict_by_numbers(x: Tensor) -> Any:
    if x.sum() > 0:
        found = {int(v): 1 for v in x}
    else:
        return 1
    return found


def a_set(x: Tensor) -> Any:
    if x.sum() > 0:
        found = {i for i, v in enumerate(x.tolist()) if v > 1}
    else:
        return 1
    return found


def with_none_in_it(x: Tensor) -> Any:
    if x.sum() > 0:
        held = {"a": x, "b": None}
    else:
        return 1
    return held


def a_pair_with_none(x: Tensor) -> Any:
    for v in x:
        if v > 2:
            pair = (v, None)
            break
    else:
        return 0
    return pair


# ---- what does
def its_length(x: Tensor) -> Any:
    if x.sum() > 0:
        found = [v for v in x.tolist() if v > 1]
    try:
        return len(found)
    except UnboundLocalError:
        return -1


def named_and_no_more(x: Tensor) -> Any:
    if x.sum() > 0:
        found = [v for v in x.tolist() if v > 1]
    other = found
    del other
    return 1


def deleted(x: Tensor) -> Any:
    if x.sum() > 0:
        found = [v for v in x.tolist() if v > 1]
    try:
        del found
    except NameError:
        return -1
    return 1


def a_dict_that_is_named(x: Tensor) -> Any:
    if x.sum() > 0:
        found = {int(v): 1 for v in x if v > 1}
    other = found
    del other
    return 1


def behind_a_loop(x: Tensor) -> Any:
    n = 0
    while x.sum() > n:
        n += 4
        found = [v for v in x.tolist() if v > n]
    return len(found)


def an_attribute(x: Tensor) -> Any:
    holder: Any = Holder()
    if x.sum() > 0:
        holder.found = [v for v in x.tolist() if v > 1]
    return hasattr(holder, "found"), getattr(holder, "found", None)


FUNCTIONS = [
    *(returned_elsewhere, looked_up, told_by_a_flag, by_the_same_condition, made_by_an_iteration, found_by_a_loop),
    *(of_lists, a_dict, a_dict_by_numbers, a_set, with_none_in_it, a_pair_with_none),
    *(its_length, named_and_no_more, deleted, a_dict_that_is_named, behind_a_loop, an_attribute),
]


def outcome(function: Callable[[Tensor], Any], x: Tensor) -> Any:
    """What a call gives, or the error of an unset variable."""
    try:
        return function(x)
    except UnboundLocalError as error:
        return str(error)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in CALLS:
        assert_same(outcome(function, x), outcome(static, x))


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_in_segments(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=False)
    for x in CALLS:
        assert_same(outcome(function, x), outcome(static, x))


def asked_for_behind_a_loop(x: Tensor) -> Tensor:
    n = 0
    while x.sum() > n:
        n += 4
        found = [v for v in x if v > n]
    if n > 0:
        return x.sum() + len(found)
    return x.sum()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".pt2", ".onnx"])
def test_in_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"f{suffix}"
    sg.save(asked_for_behind_a_loop, path, args=(CALLS[0],))
    loaded: Any = sg.load(path)
    for x in CALLS[:2]:
        assert_same(asked_for_behind_a_loop(x), loaded(x))
