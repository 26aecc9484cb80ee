"""One of several objects, or None, where only the run knows which: the best track, a node of a tree, the one before."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree, refusal

CALLS = [
    torch.tensor(values)
    for values in (
        [1.0, 3.0, 2.0, -1.0],
        [-1.0, -3.0, -2.0, -1.0],
        [5.0, -3.0, 2.0, 7.0],
        [-10.0, 3.0, 2.0, 7.0],
        [2.0, 3.0, 4.0, 7.0],
        [2.0, 0.0, -6.0, 7.0],
    )
]


class Track:
    def __init__(self, place: Tensor, name: float) -> None:
        self.place, self.name, self.hits = place, name, 0


class Node:
    def __init__(self, value: float, left: Node | None = None, right: Node | None = None) -> None:
        self.value, self.left, self.right = value, left, right


@dataclass
class Item:
    number: float


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def of(self, x: Tensor) -> Tensor:
        return x * self.factor


class Moved(Scaled):
    def of(self, x: Tensor) -> Tensor:
        return x - self.factor


def tracks(x: Tensor, count: int = 4) -> list[Track]:
    return [Track(x[i], float(i)) for i in range(count)]


def best_of(found: list[Track], x: Tensor) -> Track | None:
    best, i = None, 0
    while i < len(found) and x[i] > -5:
        if best is None or found[i].place > best.place:
            best = found[i]
        i += 1
    return best


# ---- found by a loop
def changed_behind(x: Tensor) -> Any:
    found = tracks(x)
    best = best_of(found, x)
    if best is not None:
        best.hits += 1
        best.place = best.place * 2
    return [(t.hits, t.place) for t in found], best is found[2], best is None


def changed_by_two_names(x: Tensor) -> Any:
    found = tracks(x)
    first, last, i = found[0], None, 0
    while i < 4 and x[i] > -5:
        if last is not None:
            last.hits += 2
        first.hits += 1
        if x[i] > 1:
            last = found[i]
        i += 1
    first.name = first.name + 1
    return [(t.hits, t.name) for t in found], last.name if last is not None else None


def the_one_before(x: Tensor) -> Any:
    found, before, i = tracks(x), None, 0
    total = x[0] * 0
    while i < 4 and x[i] > -5:
        if before is not None:
            total = total + found[i].place * before.place
        before = found[i]
        i += 1
    return total


def left_by_break(x: Tensor) -> Any:
    found, first, i = tracks(x), None, 0
    while i < 4:
        if x[i] > 2:
            first = found[i]
            break
        i += 1
    if first is None:
        return x * 0
    first.place = first.place + 1
    return torch.stack([t.place for t in found])


def returned_early(x: Tensor) -> Any:
    found, last, i = tracks(x), None, 0
    while i < 4 and x[i] > -5:
        if last is not None and x[i] > last.place:
            return last.place, i
        last = found[i]
        i += 1
    return None, i


def of_matches(x: Tensor) -> Any:
    found, out, j = tracks(x, 3), [], 0
    while j < 2 and x[j] > -5:
        best, i = None, 0
        while i < 3 and x[i] > -5:
            if found[i].hits == 0 and (best is None or found[i].place > best.place):
                best = found[i]
            i += 1
        if best is not None:
            best.hits += 1
            out.append(best.place)
        j += 1
    return out, [t.hits for t in found]


def of_several_classes(x: Tensor) -> Any:
    steps, step, i = [Scaled(2.0), Moved(3.0)], None, 0
    while i < 4 and x[i] > -5:
        if x[i] > 0:
            step = steps[i % 2]
        if step is not None:
            x = step.of(x)
        i += 1
    return x, type(step).__name__ if step is not None else "none"


def of_functions(x: Tensor) -> Any:
    steps: list[Callable[[Tensor], Tensor]] = [lambda v: v + 1, lambda v: v * 2]
    step, i = None, 0
    while i < 4 and x[i] > -5:
        if x[i] > 0:
            step = steps[i % 2]
        if step is not None:
            x = step(x)
        i += 1
    return x


def of_equal_ones(x: Tensor) -> Any:
    items, item, i, n = [Item(1.0), Item(1.0), Item(2.0), Item(3.0)], None, 0, 0
    while i < 4 and x[i] > -5:
        if item == items[i]:
            n += 1
        item = items[i] if x[i] > 0 else item
        i += 1
    return n, item == items[0], item is items[1], item in items, item != items[0]


def of_lists(x: Tensor) -> Any:
    candidates, best, i = [[x[0], 0], [x[1], 1], [x[2], 2]], None, 0
    while i < 3 and x[i] > -5:
        candidate = candidates[i]
        if best is None or candidate[0] > best[0]:
            best = candidate
        i += 1
    return (best[0], best[1]) if best is not None else None


def one_object_twice(x: Tensor) -> Any:
    first = Track(x[0], 0.0)
    found, last, i = [first, first, Track(x[2], 2.0), first], None, 0
    while i < 4 and x[i] > -5:
        if x[i] > 1:
            last = found[i]
        if last is not None:
            last.hits += 1
        i += 1
    return first.hits, found[2].hits, last is first


def by_a_closure(x: Tensor) -> Any:
    found, best, i = tracks(x), None, 0

    def see(track: Track) -> None:
        nonlocal best
        if best is None or track.place > best.place:
            best = track

    while i < 4 and x[i] > -5:
        see(found[i])
        i += 1
    return best.name if best is not None else None


def in_a_dict(x: Tensor) -> Any:
    found, i = tracks(x), 0
    held: dict[str, Track | None] = {"best": None, "last": found[0]}
    while i < 4 and x[i] > -5:
        if x[i] > 1:
            held["best"] = found[i]
        if x[i] > 2:
            held["last"] = found[i]
        i += 1
    if held["best"] is not None:
        held["best"].hits += 1
    held["last"].hits += 2  # type: ignore[union-attr]  # it is never None
    return [t.hits for t in found], held["last"] is held["best"]


def in_a_tuple(x: Tensor) -> Any:
    found, i = tracks(x), 0
    best: tuple[Track | None, int] = (None, 0)
    while i < 4 and x[i] > -5:
        if x[i] > 1:
            best = (found[i], i)
        i += 1
    if best[0] is not None:
        best[0].hits += 1
    return best[1], [t.hits for t in found]


def in_a_try(x: Tensor) -> Any:
    found, best = tracks(x), None
    try:
        i = 0
        while i < 4 and x[i] > -5:
            if x[i] > 1:
                best = found[i]
            if x[i] > 4:
                raise ValueError("large")
            i += 1
    except ValueError:
        if best is not None:
            best.hits += 10
    return [t.hits for t in found], best.place if best is not None else None


# ---- trees from before the loop
def walked(x: Tensor) -> Any:
    node: Node | None = Node(0.5, Node(-1.0, Node(-2.0)), Node(2.0, None, Node(3.0)))
    depth = path = 0
    while node is not None:
        depth += 1
        path = path * 2 + (1 if x[0] > node.value else 0)
        node = node.right if x[0] > node.value else node.left
    return depth, path


def decided(x: Tensor) -> Any:
    def leaf(number: float) -> dict[str, Any]:
        return {"split": 0.0, "left": None, "right": None, "number": number}

    tree = {"split": 0.0, "left": leaf(2.0), "number": 1.0}
    tree["right"] = {"split": 1.0, "left": leaf(4.0), "right": leaf(5.0), "number": 3.0}
    node, depth = tree, 0
    while node["left"] is not None and node["right"] is not None:
        depth += 1
        node = node["right"] if x[0] > node["split"] else node["left"]
    return node["number"] * x, depth


# ---- by branches
def of_four(x: Tensor) -> Any:
    found, last, n = tracks(x), None, 0
    for track in found:
        if track.place > 0:
            last = track
    for track in found:
        n = n * 2 + (1 if track is last else 0)
    if last is not None:
        last.place = last.place * 3
    return n, [t.place for t in found]


def of_both_arms(x: Tensor) -> Any:
    found, others = tracks(x), tracks(-x)
    best = best_of(found, x) if x.sum() > 0 else best_of(others, x)
    if best is not None:
        best.hits += 5
    return [t.hits for t in found + others], best.place if best is not None else None


LOOPS = [
    *(changed_behind, changed_by_two_names, the_one_before, left_by_break, returned_early, of_matches),
    *(of_several_classes, of_functions, of_equal_ones, of_lists, one_object_twice, by_a_closure, in_a_dict),
    *(in_a_tuple, in_a_try, walked, decided, of_four, of_both_arms),
]


@pytest.mark.parametrize("function", LOOPS)
def test_it_is_that_object(function: Callable[[Tensor], Any]) -> None:
    agree(function, *CALLS)


def changed_meanwhile(x: Tensor) -> Any:
    found, best, i = tracks(x), None, 0
    while i < 4 and x[i] > -5:
        if best is None or found[i].place > best.place:
            best = found[i]
        best.hits += 1
        best.place = best.place - 0.75
        i += 1
    return [(t.hits, t.place) for t in found]


def test_it_is_never_none_behind_the_branch() -> None:
    agree(changed_meanwhile, *CALLS)


def test_an_object_of_the_callers_is_given_back() -> None:
    static = sg.to_static(best_of, backend="eager")
    for x in CALLS:
        found = tracks(x)
        best = best_of(found, x)
        assert static(found, x) is best


def test_it_is_stored_in_an_object_of_the_callers() -> None:
    def store(found: list[Any], x: Tensor) -> None:
        holder, i = found[0], 0
        holder.best = None
        while i < 4 and x[i] > -5:
            if x[i] > 1:
                holder.best = found[i]
            i += 1

    static = sg.to_static(store, backend="eager")
    for x in CALLS:
        found, others = tracks(x), tracks(x)
        store(found, x)
        static(others, x)
        wanted, stored = (each[0].best for each in (found, others))  # type: ignore[attr-defined]  # as above
        assert (stored is None) == (wanted is None)
        assert wanted is None or others.index(stored) == found.index(wanted)


def test_a_program_does_not_keep_them_alive() -> None:
    static = sg.to_static(best_of, backend="eager")
    found = tracks(CALLS[0])
    static(found, CALLS[0])
    alive = [weakref.ref(track) for track in found]
    del found
    gc.collect()
    assert not any(each() for each in alive)


def test_gradients() -> None:
    def squared(x: Tensor) -> Tensor:
        found = tracks(x)
        best = best_of(found, x)
        if best is not None:
            best.place = best.place * best.place
        return torch.stack([t.place for t in found]).sum()

    static = sg.to_static(squared, backend="eager")
    for x in CALLS:
        gradients = []
        for call in (squared, static):
            given = x.clone().requires_grad_()
            gradients += torch.autograd.grad(call(given), given)
        assert torch.equal(*gradients)


# ---- refused
def made_by_each_iteration(x: Tensor) -> Any:
    keep, j = None, 0
    while j < 3 and x[j] > -5:
        keep = best_of(tracks(x * (j + 1), 3), x)
        j += 1
    return keep.place if keep is not None else x[0]


def made_on_a_path(x: Tensor) -> Any:
    best = None
    if x.sum() > 0:
        best = best_of(tracks(x), x)
    return best.place if best is not None else x[0] * 0


@pytest.mark.parametrize(("function", "code"), [(made_by_each_iteration, "SG203"), (made_on_a_path, "SG305")])
def test_objects_that_were_not_there_before(function: Callable[[Tensor], Any], code: str) -> None:
    assert refusal(function, CALLS[0]).reason.code == code


# ---- what the test of a loop rules out
def parts_while_there_is_a_tuple(x: Tensor) -> Any:
    pair: tuple[Tensor, int] | None = (x[1], 0)
    while pair is not None:
        x = x * 2
        pair = (pair[0] + 1, pair[1] + 1) if pair[0] < 5 else None
    return x


def test_a_body_knows_that_the_test_holds() -> None:
    agree(parts_while_there_is_a_tuple, *CALLS)


# ---- names that are those of methods of ours
class Named:
    def __init__(self, number: float) -> None:
        self.asks = number

    def either(self, x: Tensor) -> Tensor:
        return x - self.asks

    def refuse(self, x: Tensor) -> Tensor:
        return x * self.asks


class NamedOtherwise(Named):
    def refuse(self, x: Tensor) -> Tensor:
        return x * 10


def by_names_of_ours(x: Tensor) -> Any:
    one = Named(2.0) if x.sum() > 0 else NamedOtherwise(3.0)
    return one.refuse(x), one.either(x), one.asks


def test_names_of_ours_are_the_users() -> None:
    agree(by_names_of_ours, *CALLS)
