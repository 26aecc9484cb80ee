"""Which user's functions the frames of a capture stand for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.location import Location
from stillgraph.core.rewritten import is_block, is_rewritten
from stillgraph.source.convert import convert


def walked(x: Tensor, depth: int) -> Iterator[Tensor]:
    if x.sum() > depth:
        yield x.cos()
    if depth > 0:
        for each in walked(x, depth - 1):
            yield each.sin()


def all_of(x: Tensor) -> Any:
    total = x
    for each in walked(x, 2):
        total = total + each.exp()
    return total


def flat(x: Tensor) -> Any:
    return [row.tan() + column.exp() for row in x for column in row.cos()]


def chains(function: Any, target: str) -> set[tuple[str, ...]]:
    """The functions, the outermost first, of the places at which a program calls something."""
    program = sg.export(function, (torch.ones(2, 2),))
    found = set()
    for region in [program.graph, *program.regions]:
        for node in region.graph.nodes:
            location: Location | None = node.meta.get("location")
            if node.target in (target, getattr(torch, target)) and location is not None:
                found.add(tuple(str(each.function) for each in (*location.callers, location)))
    return found


def test_the_body_of_a_loop_is_not_called_by_the_generator() -> None:
    assert chains(all_of, "exp") == {("all_of",)}


def test_a_generator_that_is_suspended_calls_nothing() -> None:
    assert chains(all_of, "sin") == {("all_of", "walked"), ("all_of", "walked", "walked")}


def test_a_comprehension_is_one_function_whatever_its_loops() -> None:
    wanted = ("flat",) if sys.version_info >= (3, 12) else ("flat", "<listcomp>")
    assert chains(flat, "exp") == chains(flat, "cos") == {wanted}


def outer(x: Any) -> Any:
    def inner(y: Any) -> Any:
        return y

    if x:
        x = inner(x)
    return x


def test_blocks_are_marked_and_functions_of_the_users_are_not() -> None:
    names = "if_", "call", "get", "continue_"
    code = convert(outer, dict.fromkeys(names, lambda *args, **kwargs: None)).function.__code__
    nested = {each.co_name: each for each in code.co_consts if hasattr(each, "co_name")}
    assert is_rewritten(code)
    assert not is_block(code)
    assert {name: (is_rewritten(each), is_block(each)) for name, each in nested.items()} == {
        "inner": (True, False),
        "then_1": (True, True),
    }
    assert not is_rewritten(outer.__code__)
