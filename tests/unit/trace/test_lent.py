"""Iterators from outside that code which is left alone draws from: each call advances them, as eager PyTorch does."""

from __future__ import annotations

import dataclasses
import io
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.program.upcoming import LookAhead
from tests.cases.compare import assert_same
from tests.front_ends import through_bytecode

Made = tuple[Callable[[Tensor], Any], list[Any]]


@sg.not_to_static
def drawn_from(numbers: Any) -> Any:
    return next(numbers)


class Holder:
    numbers: Any = None

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    @sg.not_to_static
    def draw(self) -> Any:
        return next(self.numbers)


class Slotted:
    __slots__ = ("numbers",)


class Pair(NamedTuple):
    numbers: Any
    other: int = 3


@dataclasses.dataclass(frozen=True)
class Frozen:
    numbers: Any


NUMBERS: Any = None


def draws_a_global() -> Any:
    return next(NUMBERS)


@sg.not_to_static
def draws_through_another() -> Any:
    return draws_a_global()


@sg.not_to_static
def draws_in_a_lambda() -> Any:
    return (lambda: next(NUMBERS))()


# ---- where the code finds it
def a_variable() -> Made:
    numbers = iter(range(1, 30))
    draw = sg.not_to_static(lambda: next(numbers))
    return lambda x: x * draw() + next(numbers), [numbers]


def only_there() -> Made:
    numbers = iter(range(1, 30))
    draw = sg.not_to_static(lambda: next(numbers))
    return lambda x: x * draw(), [numbers]


def behind_the_code() -> Made:
    numbers = iter(range(1, 30))
    draw = sg.not_to_static(lambda: next(numbers))
    return lambda x: x * next(numbers) + draw(), [numbers]


def an_argument() -> Made:
    numbers = itertools.count(3)
    return lambda x: x * drawn_from(numbers) + next(numbers), [numbers]


def a_named_argument() -> Made:
    numbers = itertools.count(3)
    return lambda x: x * drawn_from(numbers=numbers) + next(numbers), [numbers]


def an_attribute() -> Made:
    holder = Holder(iter(dict.fromkeys(range(3, 20))))
    return lambda x: x * holder.draw() + next(holder.numbers), [holder.numbers]


def a_slot() -> Made:
    holder = Slotted()
    holder.numbers = itertools.cycle([1, 2, 3])
    draw = sg.not_to_static(lambda: next(holder.numbers))
    return lambda x: x * draw() + next(holder.numbers), [holder.numbers]


def an_attribute_of_a_class() -> Made:
    kind = type("Kind", (Holder,), {"numbers": iter(range(1, 30))})
    draw = sg.not_to_static(lambda: next(kind.numbers))
    return lambda x: x * draw() + next(kind.numbers), [kind.numbers]


def a_frozen_one() -> Made:
    held = Frozen(itertools.chain([1, 2], iter(range(9))))
    draw = sg.not_to_static(lambda: next(held.numbers))
    return lambda x: x * draw() + next(held.numbers), [held.numbers]


def containers() -> Made:
    held = {"a": [iter(range(1, 30)), 3], "b": (iter(range(2, 30)), 4), "c": Pair(iter(range(3, 30)))}
    draw = sg.not_to_static(lambda: next(held["a"][0]) + 2 * next(held["b"][0]) + next(held["c"].numbers))
    return lambda x: x * draw() + next(held["b"][0]), [held["a"][0], held["b"][0], held["c"].numbers]


def a_container_that_is_made() -> Made:
    numbers = iter(range(1, 30))
    draw = sg.not_to_static(lambda held: next(held[0]) + next(held[1]["k"]))
    return lambda x: x * draw([numbers, {"k": numbers}]) + next(numbers), [numbers]


def a_tuple_that_is_handed_over() -> Made:
    numbers = iter(range(1, 30))
    draw = sg.not_to_static(lambda held: next(held[0]) + held[1])
    return lambda x: x * draw((numbers, 2)) + next(numbers), [numbers]


def by_several_names() -> Made:
    numbers = iter(range(1, 30))
    holder, held = Holder(numbers), [numbers]
    draw = sg.not_to_static(lambda: (next(numbers), next(holder.numbers), next(held[0]), holder.numbers is held[0]))
    return lambda x: (x * sum(draw()) + next(held[0]), draw()), [numbers]


def a_module() -> Made:
    module = types.ModuleType("of_numbers")
    module.numbers = iter(range(1, 30))  # type: ignore[attr-defined]  # of a module that is made here
    draw = sg.not_to_static(lambda: next(module.numbers))
    return lambda x: x * draw() + next(module.numbers), [module.numbers]  # type: ignore[attr-defined]  # as above


def a_global() -> Made:
    global NUMBERS
    NUMBERS = numbers = iter(range(1, 30))

    def function(x: Tensor) -> Any:
        global NUMBERS
        NUMBERS = numbers
        return x * draws_through_another() + draws_in_a_lambda() + next(numbers)

    return function, [numbers]


def made_by_a_class_that_is_left_alone() -> Made:
    numbers = iter(range(1, 30))

    class Numbered:
        @sg.not_to_static
        def __init__(self) -> None:
            self.number = next(numbers)

    return lambda x: x * Numbered().number + next(numbers), [numbers]


def one_that_draws_from_another() -> Made:
    numbers = iter(range(1, 30))
    pairs = zip(numbers, numbers)
    draw = sg.not_to_static(lambda: next(pairs))
    return lambda x: (x * sum(draw()), draw()), [numbers]


# ---- how it draws
def in_a_loop() -> Made:
    numbers = iter(range(1, 30))

    @sg.not_to_static
    def draw() -> Any:
        found = []
        for number in numbers:
            found.append(number)
            if number % 4 == 0:
                break
        return found

    return lambda x: (x + sum(draw()), next(numbers)), [numbers]


def several_at_once() -> Made:
    numbers = iter(range(1, 40))
    draw = sg.not_to_static(lambda: [*itertools.islice(numbers, 2), *(n for n, _ in zip(numbers, "ab"))])
    return lambda x: (x + sum(draw()), next(numbers)), [numbers]


def up_to_the_end() -> Made:
    numbers = iter(range(1, 6))
    draw = sg.not_to_static(lambda: next(numbers, None))
    return lambda x: (x + (draw() or 0), next(numbers, None)), [numbers]


def in_a_generator() -> Made:
    numbers = iter(range(1, 30))

    @sg.not_to_static
    def draw() -> Iterator[Any]:
        yield next(numbers)
        yield next(numbers)

    return lambda x: (x + sum(draw()), next(numbers)), [numbers]


def tensors() -> Made:
    rows = iter([torch.full((2,), float(k)) for k in range(20)])
    draw = sg.not_to_static(lambda: next(rows) * 2)
    return lambda x: x + draw() * next(rows), [rows]


def on_one_path() -> Made:
    numbers = iter(range(1, 30))
    draw = sg.not_to_static(lambda: next(numbers))
    return lambda x: x * draw() if x.sum() > 0 else x, [numbers]


def on_both_paths() -> Made:
    numbers = iter(range(1, 30))
    draw = sg.not_to_static(lambda: next(numbers))

    def function(x: Tensor) -> Any:
        y = x * draw() if x.sum() > 0 else x + draw()
        return y, next(numbers)

    return function, [numbers]


def put_elsewhere() -> Made:
    numbers = iter(range(1, 30))
    holder = Holder(None)

    @sg.not_to_static
    def keep() -> Any:
        holder.numbers = numbers
        return next(holder.numbers), numbers

    def function(x: Tensor) -> Any:
        number, given = keep()
        return x * number, next(given), given is numbers or next(given)

    return function, [numbers]


def exchanged_for_another() -> Made:
    holder = Holder(iter(range(1, 30)))
    other = iter(range(5, 30))
    first = holder.numbers

    @sg.not_to_static
    def draw() -> Any:
        return next(holder.numbers), next(other)

    def function(x: Tensor) -> Any:
        holder.numbers = first
        return x * sum(draw()) + next(other)

    return function, [first, other]


FOUND = (
    *(a_variable, only_there, behind_the_code, an_argument, a_named_argument, an_attribute, a_slot),
    *(an_attribute_of_a_class, a_frozen_one, containers, a_container_that_is_made, a_tuple_that_is_handed_over),
    *(by_several_names, a_module, a_global, made_by_a_class_that_is_left_alone, one_that_draws_from_another),
    *(in_a_loop, several_at_once, up_to_the_end, in_a_generator, tensors, on_one_path, on_both_paths),
    *(put_elsewhere, exchanged_for_another),
)


def stands(iterators: list[Any]) -> Any:
    """How far iterators are."""
    return [[LookAhead(each)[position] for position in range(3)] for each in iterators]


INPUTS = [torch.ones(2), -torch.ones(2), torch.ones(2) * 3, torch.ones(2)]


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("interpreted", [False, True], ids=["source", "bytecode"])
@pytest.mark.parametrize("make", FOUND, ids=lambda make: make.__name__)
def test_each_call_advances_it_as_eager_does(make: Any, interpreted: bool, full_graph: bool) -> None:
    (eager, theirs), (original, ours) = make(), make()
    strict = {} if full_graph else {"strict": True}
    with through_bytecode() if interpreted else torch.no_grad():
        static = sg.to_static(original, backend="eager", full_graph=full_graph, **strict)
        for x in INPUTS:
            assert_same(eager(x), static(x), "value")
            assert str(stands(ours)) == str(stands(theirs))


# ---- what cannot be looked into
def generators() -> Made:
    numbers = (number for number in range(1, 30))
    draw = sg.not_to_static(lambda: next(numbers))
    return lambda x: x * draw(), [numbers]


def one_that_is_handed_over() -> Made:
    numbers = map(abs, range(1, 30))
    return lambda x: x * drawn_from(numbers), [numbers]


def with_a_handler() -> Made:
    numbers = (number for number in range(1, 30))

    @sg.not_to_static
    def draw() -> Any:
        try:
            return next(numbers)
        except BaseException:
            return 0

    return lambda x: x * draw(), [numbers]


def sent_to() -> Made:
    def running() -> Any:
        total = 0
        while True:
            total += (yield total) or 1

    numbers = running()
    next(numbers)
    draw = sg.not_to_static(lambda: numbers.send(2))
    return lambda x: x * draw(), [numbers]


def a_loader() -> Made:
    batches = iter(torch.utils.data.DataLoader(list(range(1, 30)), batch_size=2))
    draw = sg.not_to_static(lambda: next(batches))
    return lambda x: x * draw(), [map(Tensor.tolist, batches)]


def a_file() -> Made:
    lines = io.StringIO("1 \n2 \n3 \n4 \n5 \n6 \n")
    read = sg.not_to_static(lambda: int(next(lines)))
    return lambda x: x * read(), [lines]


def a_file_as_a_whole() -> Made:
    lines = io.StringIO("1 \n2 \n3 \n4 \n5 \n6 \n")
    read = sg.not_to_static(lambda: int(lines.readline()))
    return lambda x: x * read(), [lines]


OPAQUE = (generators, one_that_is_handed_over, with_a_handler, sent_to, a_loader, a_file, a_file_as_a_whole)


@pytest.mark.parametrize("interpreted", [False, True], ids=["source", "bytecode"])
@pytest.mark.parametrize("make", OPAQUE)
def test_nobody_draws_from_what_cannot_be_looked_into(make: Any, interpreted: bool) -> None:
    (original, ours), (eager, theirs) = make(), make()
    with through_bytecode() if interpreted else torch.no_grad():
        with pytest.raises(sg.CaptureError, match=r"only drawing tells|from outside the function is r") as caught:
            sg.to_static(original, backend="eager")(torch.ones(2))
        assert caught.value.reason.code == "SG305"
        static = sg.to_static(original, backend="eager", full_graph=False, strict=True)
        for x in INPUTS:
            assert_same(eager(x), static(x), "value")
        assert next(ours[0]) == next(theirs[0])


def test_how_far_it_is_is_not_told() -> None:
    numbers = iter([1, 2, 3])
    looks = sg.not_to_static(lambda: numbers.__length_hint__())
    with pytest.raises(sg.CaptureError, match="it is looked at how far a list_iterator"):
        sg.to_static(lambda x: x + looks(), backend="eager")(torch.ones(2))


def test_what_nobody_can_see_is_refused_and_put_back() -> None:
    numbers = iter([1, 2, 3])
    hidden = frozenset([numbers])
    draw = sg.not_to_static(lambda: next(*hidden))
    with pytest.raises(sg.CaptureError, match="found where nobody looks"):
        sg.to_static(lambda x: x + draw(), backend="eager")(torch.ones(2))
    static = sg.to_static(lambda x: x + draw(), backend="eager", full_graph=False, strict=True)
    assert [static(torch.zeros(())).item() for _ in range(3)] == [1, 2, 3]


def test_what_is_not_drawn_from_is_left_alone() -> None:
    held = Holder([iter([1, 2, 3]), (n for n in range(3)), open])
    looks = sg.not_to_static(lambda: (held.numbers[0] is held.numbers[0], isinstance(held.numbers[1], Iterator)))
    static = sg.to_static(lambda x: (x + 1, *looks()), backend="eager")
    assert static(torch.zeros(()))[1:] == (True, True)
    assert [type(each).__name__ for each in held.numbers[:2]] == ["list_iterator", "generator"]
    assert [*held.numbers[0], *held.numbers[1]] == [1, 2, 3, 0, 1, 2]
