"""Which object it is that a branch leaves in a place: the one from before, or one that the path made."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg


class Holder:
    """Objects with several names, which methods exchange on some paths."""

    def __init__(self) -> None:
        self.count = 0
        self.first: Any = {"k": 0}
        self.second: Any = {"k": 7}
        self.third: Any = None
        self.fourth: Any = None
        self.before = (self.first, self.second)

    def two_names_beside_a_raise(self, x: Tensor) -> Any:
        if x.sum() < 5:
            made = {"v": x * 2}
            self.third = made
            self.fourth = made
        else:
            raise ValueError
        return x

    def nested_beside_a_raise(self, x: Tensor) -> Any:
        if x.sum() < 5:
            if x[0] > 1:
                self.first = {"k": x * 2}
        else:
            raise ValueError
        return x

    def bound_on_one_path(self, x: Tensor) -> Any:
        if x.sum() < 9:
            held = self.first
        if x.sum() < 9:
            self.third = held
        return x

    def another_or_new(self, x: Tensor) -> Any:
        if x[0] > 0:
            if x[1] > 0:
                self.first = self.second
            else:
                self.first = {"k": 1}
        return self.first

    def one_after_another(self, x: Tensor) -> Any:
        held = self.first
        if x[0] > 0:
            held = self.second
            if x[1] > 0:
                held = {"k": 1}
            if x[2] > 0:
                held = {"k": 4}
        self.third = held
        return held, self.first

    def name_for_what_may_be_new(self, x: Tensor) -> Any:
        if x[0] > 0:
            if x[1] > 0:
                self.first = {"k": 1}
            if x[2] > 0:
                self.third = self.first
        return x

    def three_deep(self, x: Tensor) -> Any:
        if x[0] > 0:
            if x[1] > 0:
                if x[2] > 0:
                    self.first = {"k": 1}
                else:
                    self.first = self.second
            if x[2] > 0:
                self.second = self.first
        return self.first, self.second

    def new_under_two_names(self, x: Tensor) -> Any:
        if x[0] > 0:
            made = {"k": 1}
            self.first = made
            self.second = made
        return x

    def new_and_returned(self, x: Tensor) -> Any:
        if x[0] > 0:
            made = {"k": 1}
            self.first = made
            return made, made
        return {"k": 3}, self.second

    def new_where_nothing_was(self, x: Tensor) -> Any:
        if x[0] > 0:
            made = {"k": x}
            self.third = made
            self.first = made
        return x

    def lists(self, x: Tensor) -> Any:
        held = [x, self.first]
        if x[0] > 0:
            if x[1] > 0:
                held = [x * 2, self.second]
            self.third = held
        self.fourth = held
        return held

    def list_of_unknown_length(self, x: Tensor) -> Any:
        self.third = []
        if x[0] > 0:
            if x[1] > 0:
                self.third = [x]
            if x[2] > 0:
                self.fourth = self.third
        return self.third

    def asked_for(self, x: Tensor) -> Any:
        held = self.first
        if x[0] > 0:
            self.count += 1
            if x[1] > 0:
                self.first = {"k": 1}
        return x + 1 if self.first is held else x

    def renewed_behind_an_exit(self, x: Tensor) -> Any:
        self.count += 1
        if x[0] > 0:
            return None
        if self.count % 3 == 0:
            self.first = {"k": 0}
        return x * 2

    def look(self, result: Any) -> tuple[set[tuple[int, int]], str]:
        """Which of the names are names of one object, and what they hold."""
        results = result if isinstance(result, tuple) else (result,)
        named = [self.first, self.second, self.third, self.fourth, *self.before, *results]
        same = {(i, j) for i, j in itertools.combinations(range(len(named)), 2) if named[i] is named[j]}
        return same, repr(named)


METHODS = [name for name in vars(Holder) if not name.startswith("_") and name != "look"]


@pytest.mark.parametrize("name", METHODS)
def test_the_object_is_the_one_that_eager_leaves(name: str) -> None:
    mine, eagers = Holder(), Holder()
    static, eager = sg.to_static(getattr(mine, name), backend="eager"), getattr(eagers, name)
    for values in itertools.product((-1.0, 2.0), repeat=3):
        seen = []
        for holder, function in ((mine, static), (eagers, eager)):
            try:
                seen.append(holder.look(function(torch.tensor(values))))
            except ValueError as error:
                seen.append(holder.look(error.args))
        assert seen[0] == seen[1], f"for {values}"


def test_a_counter_beside_an_attribute_that_is_renewed_stays_an_input() -> None:
    holder = Holder()
    static = sg.to_static(holder.renewed_behind_an_exit, backend="eager")
    for _ in range(12):
        static(torch.tensor([-1.0, 0.0, 0.0]))
    assert (holder.count, static.cache_info().programs) == (12, 1)


def changed_where_it_may_be_unbound(holder: Holder, x: Tensor) -> Tensor:
    if x.sum() < 5:
        held = holder.first
    if x.sum() < 5:
        held["k"] = 5
    return x


def test_an_object_that_is_bound_on_one_path_is_changed_there() -> None:
    static = sg.to_static(changed_where_it_may_be_unbound, backend="eager")
    for value, expected in ((1.0, 5), (9.0, 0)):
        holder = Holder()
        static(holder, torch.full((3,), value))
        assert holder.first == {"k": expected}
        assert holder.before[0] is holder.first


# ---- two containers that look alike become one between calls
class Alike:
    def __init__(self) -> None:
        self.first: Any = {"k": 7}
        self.second: Any = {"k": 7}


def compares(held: Alike, x: Tensor) -> Tensor:
    return x + 1 if held.first is held.second else x


def compares_later(held: Alike, x: Tensor) -> Tensor:
    before = held.first
    if x[0] > 0:
        held.first = held.second
    return x + 1 if before is held.first else x


def writes_a_number(held: Alike, x: Tensor) -> Tensor:
    held.first["k"] = 5
    return x * held.second["k"]


def writes_a_tensor(held: Alike, x: Tensor) -> Tensor:
    held.first["k"] = x + 1
    return x * held.second["k"]


def writes_on_a_path(held: Alike, x: Tensor) -> Tensor:
    if x.sum() > 0:
        held.first["k"] = 5
    return x * held.second["k"]


@pytest.mark.parametrize(
    "function", [compares, compares_later, writes_a_number, writes_a_tensor, writes_on_a_path], ids=lambda f: f.__name__
)
def test_containers_that_become_one(function: Any) -> None:
    mine, eagers, x = Alike(), Alike(), torch.ones(3)
    static = sg.to_static(function, backend="eager")
    for _ in range(2):
        assert torch.equal(static(mine, x), function(eagers, x))
    for held in (mine, eagers):
        held.first = {"k": 7}
        held.second = {"k": 7}
    assert torch.equal(static(mine, x), function(eagers, x))
    for held in (mine, eagers):
        held.first = {"k": 7}
        held.second = held.first
    assert torch.equal(static(mine, x), function(eagers, x))
