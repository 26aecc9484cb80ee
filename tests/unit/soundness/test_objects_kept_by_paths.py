"""Objects that each path makes, keeps in a place of its own and leaves in one variable: both lead to the same one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.front_ends import through_bytecode


class Counted:
    def __init__(self, key: Any) -> None:
        self.key, self.uses = key, 0


class Weighted(Counted):
    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.inner = Counted(key)


class Places:
    def __init__(self) -> None:
        self.a: Any = None
        self.b: Any = None


def keys_of_a_dict(x: Tensor, kept: Any) -> Any:
    if x.sum() > 0:
        one = Counted(2)
        kept["a"] = one
    else:
        one = Counted(3)
        kept["b"] = one
    one.uses += 1
    return x * one.key, kept.get("a") is one, kept.get("b") is one


def one_path_alone(x: Tensor, kept: Any) -> Any:
    if x.sum() > 0:
        one = Counted(2)
        kept["a"] = one
    else:
        one = Counted(3)
    one.uses += 1
    return x * one.key, kept.get("a") is one


def of_two_classes(x: Tensor, kept: Any) -> Any:
    if x.sum() > 0:
        one: Counted = Counted(2)
        kept["a"] = one
    else:
        one = Weighted(3)
        kept["b"] = one
    one.uses = one.uses + 1
    one.key = one.key * 2
    return x * one.key


def with_tensors(x: Tensor, kept: Any) -> Any:
    if x.sum() > 0:
        one = Counted(x * 2)
        kept["a"] = one
    else:
        one = Counted(x * 3)
        kept["b"] = one
    one.uses = one.key.sum()
    return x * one.key


def in_lists_and_tuples(x: Tensor, kept: Any) -> Any:
    if x.sum() > 0:
        one = Counted(2)
        kept["a"] = [one]
    else:
        one = Counted(3)
        kept["b"] = (one, one)
    one.uses += 1
    return x * one.key


def attributes(x: Tensor, kept: Any) -> Any:
    places = Places()
    if x.sum() > 0:
        one = Counted(2)
        places.a = one
    else:
        one = Counted(3)
        places.b = one
    one.uses += 1
    return x, one.uses, places.a is one, 0 if places.a is None else places.a.uses, places.b is None or places.b.uses


FUNCTIONS = (keys_of_a_dict, one_path_alone, of_two_classes, with_tensors, in_lists_and_tuples, attributes)
INPUTS = (torch.ones(2), -torch.ones(2), torch.ones(2) * 2, torch.ones(2), -torch.ones(2))


@pytest.mark.parametrize("is_outer", [True, False], ids=["kept outside", "kept inside"])
@pytest.mark.parametrize("way", ["source", "bytecode", "segments"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_one_object(function: Any, way: str, is_outer: bool) -> None:
    def make() -> tuple[Any, dict[str, Any]]:
        outer: dict[str, Any] = {}

        def called(x: Tensor) -> Any:
            kept: dict[str, Any] = outer if is_outer else {}
            result = function(x, kept)
            return result if is_outer else (result, kept)

        return called, outer

    (original, ours), (eager, theirs) = make(), make()
    with through_bytecode() if way == "bytecode" else torch.no_grad():
        static = sg.to_static(original, backend="eager", full_graph=way != "segments")
        for x in INPUTS:
            assert_same(eager(x), static(x))
            assert_same(theirs, ours, "what is kept")
