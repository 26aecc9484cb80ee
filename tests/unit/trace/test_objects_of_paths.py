"""Objects of the user's classes that loops, handlers and arms leave: made anew, kept, changed by any of their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, LogNormal, Normal

import stillgraph as sg
from tests.unit.trace.agreement import agree, refusal

CALLS = [torch.tensor(each) for each in ([1.0, 2.0], [-1.0, 3.0], [-1.0, -2.0], [3.0, 4.0], [30.0, 3.0], [0.5, 0.7])]


class Box:
    def __init__(self, held: Any, count: Any) -> None:
        self.held, self.count = held, count

    def scaled(self, factor: Any) -> Box:
        return Box(self.held * factor, self.count)

    def grow(self) -> None:
        self.held = self.held + 1
        self.count += 1


class Counted:
    """Has a property that writes, and an attribute that is computed."""

    def __init__(self, held: Any) -> None:
        self._held, self.writes = held, 0

    @property
    def held(self) -> Any:
        return self._held

    @held.setter
    def held(self, value: Any) -> None:
        self._held = value
        self.writes += 1

    def __getattr__(self, name: str) -> Any:
        if name == "twice":
            return self._held * 2
        raise AttributeError(name)


# ---- loops
def in_a_loop(x: Tensor) -> Any:
    box, n = Box(x, 1.0), 0
    while box.held.sum() < 10 and n < 5:
        box = Box(box.held * 2, box.count + 1)
        n += 1
    return box.held * box.count


def returned(x: Tensor) -> Any:
    box, n = Box(x, 1.0), 0
    while box.held.sum() < 10 and n < 5:
        box = box.scaled(3)
        n += 1
    return box


def returned_from_it(x: Tensor) -> Any:
    box, n = Box(x, 0), 0
    while n < 4:
        if box.held.sum() > 5:
            return box, n
        if x.sum() > n:
            box = Box(box.held * 2, n)
        n += 1
    return box, n


def on_a_path_of_it(x: Tensor) -> Any:
    best = Box(x, 0.0)
    for i in range(int(x.abs().sum())):
        found = Box(x * i, i)
        if found.held.sum() > best.held.sum():
            best = found
    return best.held, best.count


def none_before(x: Tensor) -> Any:
    n, box = 0, None
    while n < x.sum():
        box = Box(x * n, n)
        n += 1
    return box if box is None else (box.held, box.count)


def nested(x: Tensor) -> Any:
    box, n = Box(Box(x, 1.0), [x]), 0
    while box.held.held.sum() < 10 and n < 4:
        box = Box(Box(box.held.held * 2, n), [*box.count, x])
        n += 1
    return box.held.held, box.held.count, len(box.count)


def in_a_list(x: Tensor) -> Any:
    boxes, n = [Box(x, 1.0), Box(x * 2, 2.0)], 0
    while boxes[0].held.sum() < 10 and n < 4:
        boxes = [boxes[1], Box(boxes[0].held * 2, n)]
        n += 1
    return boxes[0].held, boxes[1].count


def in_an_attribute(x: Tensor) -> Any:
    state, n = Box(None, Box(x, 1.0)), 0
    while state.count.held.sum() < 10 and n < 4:
        state.count = Box(state.count.held * 2, n)
        n += 1
    return state.count.held, state.count.count


def computed_attributes(x: Tensor) -> Any:
    box, n = Counted(x), 0
    first = box
    while box.twice.sum() < 10 and n < 5:
        if x.sum() > n:
            box = Counted(box.twice)
        box.held = box.held + 1
        n += 1
    return box.held, box.writes, first.held, first.writes


# ---- names
def changed_behind_a_branch(x: Tensor) -> Any:
    box = first = Box(x, 1.0)
    if x.sum() > 0:
        box = Box(x * 2, 2.0)
    box.held = box.held + 1
    return box.held, first.held, box is first


def changed_in_a_loop(x: Tensor) -> Any:
    box, n = Box(x, 1.0), 0
    first = box
    while box.held.sum() < 10 and n < 5:
        if x.sum() > n:
            box = Box(box.held * 2, box.count + 1)
        box.grow()
        n += 1
    box.count = box.count + 7
    return box.held, first.held, box.count, first.count, box is first


def by_a_method_and_a_closure(x: Tensor) -> Any:
    first = box = Box(x, 1.0)
    grow, n = first.grow, 0
    while n < 3 and x.sum() > n:
        if x.sum() > 2:
            box = Box(box.held * 2, box.count + 1)
        grow()
        n += 1
    return box.count, (lambda: first.count)()


def two_names(x: Tensor) -> Any:
    a, b, n = Box(x, 1.0), Box(x * 3, 5), 0
    while a.held.sum() < 10 and n < 3:
        b = a
        a = Box(a.held * 2, n)
        n += 1
    b.count = 9
    return a.count, b.count, b.held


def exchanged(x: Tensor) -> Any:
    a, b, n = Box(x, 1.0), Box(x * 2, 2.0), 0
    while a.held.sum() < 10 and n < 3:
        a, b = b, a
        a.grow()
        n += 1
    return a.held, b.held, a.count, b.count


def an_object_in_two(x: Tensor) -> Any:
    first = box = Box(Box(x, 1), 1.0)
    n = 0
    while n < 3 and x.sum() > n:
        if x.sum() > 2:
            box = Box(first.held, box.count + 1)
        box.held.count = box.held.count + n
        n += 1
    return box.held.count, first.held.count, box.held is first.held


def compared(x: Tensor) -> Any:
    first = box = Box(x, 1.0)
    n = 0
    while box.held.sum() < 10 and n < 5:
        if x.sum() > n:
            box = Box(box.held * 2, box.count + 1)
        n += 1
    held = [first]
    return box == first, box != first, box is first, box in held, held.count(box), (1, box) == (1, first)


def with_a_list_inside(x: Tensor) -> Any:
    a, b = Box([1], 0), Box([2], 0)
    box = b
    while x.sum() < 10:
        box = a
        x = x + 4
    box.held.append(5)
    return a.held, b.held


def with_an_object_inside(x: Tensor) -> Any:
    a, b = Box(Box(1, 0), 0), Box(Box(2, 0), 0)
    box = b
    while x.sum() < 10:
        box = a
        x = x + 4
    box.held.count = 5
    return a.held.count, b.held.count, box.held is a.held, box.held is b.held


def put_into_a_list_too(x: Tensor) -> Any:
    boxes, box = [], Box(0, 0)
    while x.sum() < 10:
        box = Box(box.held + 1, 1)
        boxes.append(box)
        x = x + 4
    return [each.held for each in boxes], box.held


# ---- handlers
def made_in_a_body(x: Tensor) -> Any:
    box = Box(x, 1.0)
    try:
        box = Box(x * 2, 1.0)
        if x.sum() > 3:
            raise ValueError("big")
    except ValueError:
        box = Box(box.held + 1, box.count)
    return box.held


def made_on_a_path_of_it(x: Tensor) -> Any:
    box = Box(x, 1.0)
    try:
        if x.sum() > 0:
            box = Box(x * 2, 3.0)
        if x.sum() > 3:
            raise ValueError("big")
    except ValueError:
        return box.held + box.count
    return box.held


def in_a_loop_of_handlers(x: Tensor) -> Any:
    box = first = Box(x, 0)
    for i in range(3):
        try:
            if box.held.sum() > i * 2:
                raise KeyError
            box = Box(box.held + 3, i)
        except KeyError:
            box.count = box.count + 10
    return box.count, box.held, first.count, first is box


def two_names_in_a_handler(x: Tensor) -> Any:
    first = other = Box(x, 5)
    try:
        box = Box(x[0], 0)
        if x[1] > 2:
            raise ValueError
    except ValueError:
        other = box
    n = 0
    while x.sum() < 2:
        x = x + 2
        other, n = other, n + 1
    same = box is other, other is first
    other.held = x[1]
    return same, box.held, other.held, first.held


def two_names_of_a_list_in_a_handler(x: Tensor) -> Any:
    first = other = [x]
    if x[0] > -2:
        try:
            box = [x[0], x[1]]
            if x[1] > 2:
                raise ValueError
        except ValueError:
            other = box
    return box is other, other is first, box, other


# ---- distributions
def of_two_distributions(x: Tensor) -> Any:
    chosen = Normal(x, 1.0) if x.sum() > 0 else Normal(x * 2, 2.0)
    other = LogNormal(x, 1.0) if x.sum() > 3 else LogNormal(x, 2.0)
    return chosen.log_prob(x), chosen.mean, chosen, other.log_prob(x.abs() + 1)


def of_unlike_ones(x: Tensor) -> Any:
    chosen = Categorical(logits=x) if x.sum() > 0 else Normal(x, 1.0)
    return chosen.log_prob(torch.tensor(1.0)), type(chosen).__name__


def distributions_in_a_loop(x: Tensor) -> Any:
    held, n = {"fn": Normal(x, 1.0)}, 0
    while held["fn"].loc.sum() < 10 and n < 5:
        held["fn"] = Normal(held["fn"].loc * 2, held["fn"].scale + 1)
        n += 1
    return held["fn"].log_prob(x), n


FUNCTIONS: list[Callable[[Tensor], Any]] = [
    *(in_a_loop, returned, returned_from_it, on_a_path_of_it, none_before, nested, in_a_list, in_an_attribute),
    *(computed_attributes, changed_behind_a_branch, changed_in_a_loop, by_a_method_and_a_closure, two_names, exchanged),
    *(with_a_list_inside, with_an_object_inside, put_into_a_list_too),
    *(an_object_in_two, compared, made_in_a_body, made_on_a_path_of_it, in_a_loop_of_handlers, two_names_in_a_handler),
    *(two_names_of_a_list_in_a_handler, of_two_distributions, of_unlike_ones, distributions_in_a_loop),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


def of_the_caller(x: Tensor, box: Box) -> Any:
    n = 0
    while box.held.sum() < 10 and n < 5:
        box = Box(box.held * 2, box.count)
        n += 1
    box.count = 5
    return box


def test_one_of_the_caller_is_changed_where_it_is_still_that() -> None:
    agree(of_the_caller, *((x, Box(x * 2, 1.0)) for x in CALLS))


# ---- refused
def moved(x: Tensor) -> tuple[Box, Box]:
    first = box = Box(x, 1.0)
    other = Box(x, 2.0)
    while x.sum() < 10:
        box = other
        x = x + 4
    return first, box


def as_a_key(x: Tensor) -> Any:
    first, box = moved(x)
    return {first: 1}.get(box, 5)


def in_a_set(x: Tensor) -> Any:
    first, box = moved(x)
    return box in {first}


def put_into_a_set(x: Tensor) -> Any:
    first, box = moved(x)
    return len({box, first})


def put_into_a_set_with_others(x: Tensor) -> Any:
    first, box = moved(x)
    boxes = {first}
    boxes.update([box])
    return len(boxes)


def looked_for_with_others(x: Tensor) -> Any:
    first, box = moved(x)
    return len({first}.intersection([box]))


def made_keys_of(x: Tensor) -> Any:
    first, box = moved(x)
    return dict.fromkeys([box], 3).get(first, 0)


def hashed(x: Tensor) -> Any:
    first, box = moved(x)
    return hash(first) == hash(box)


@pytest.mark.parametrize(
    "function",
    [as_a_key, in_a_set, put_into_a_set, put_into_a_set_with_others, looked_for_with_others, made_keys_of, hashed],
)
def test_refused_as_a_key(function: Any) -> None:
    error = refusal(function, CALLS[0])
    assert error.reason.code == "SG305"
    assert "is a key, or looked up" in str(error)


def linked(x: Tensor) -> Any:
    head, n = None, 0
    while n < 3 and x.sum() > n:
        head = Box(x * n, head)
        n += 1
    return n


class Tree:
    def __init__(self, held: Any) -> None:
        self.held, self.parent, self.inner = held, None, None


def that_leads_to_itself(x: Tensor) -> Any:
    tree, n = Tree(x), 0
    tree.inner = tree
    while tree.held.sum() < 10 and n < 5:
        tree = Tree(tree.held * 2)
        tree.inner = tree
        n += 1
    return tree.held


@pytest.mark.parametrize("function", [linked, that_leads_to_itself])
def test_refused(function: Any) -> None:
    assert refusal(function, CALLS[0]).reason.code == "SG203"


def changed_behind_a_list(x: Tensor) -> Any:
    boxes, box = [], Box(0, 0)
    while x.sum() < 10:
        box = Box(1, 0)
        boxes.append(box)
        x = x + 4
    box.held = 5
    return [each.held for each in boxes]


def changed_in_the_next_iteration(x: Tensor) -> Any:
    boxes, box = {1: Box(0, 0)}, Box(0, 0)
    while x.sum() < 10:
        box.held = box.held + 3
        box = Box(1, 0)
        boxes[1] = box
        x = x + 4
    return boxes[1].held


@pytest.mark.parametrize("function", [changed_behind_a_list, changed_in_the_next_iteration])
def test_a_change_of_what_a_container_has_too_is_refused(function: Any) -> None:
    assert refusal(function, CALLS[0]).reason.code == "SG305"


def test_gradients() -> None:
    for values in CALLS:
        expected, actual = (values.clone().requires_grad_() for _ in range(2))
        in_a_loop(expected).sum().backward()
        sg.to_static(in_a_loop, backend="eager")(actual).sum().backward()
        assert torch.equal(expected.grad, actual.grad)  # type: ignore[arg-type]  # both have one
