"""Iterators of which only the run knows how far they are drawn from: a loop, or ``any`` and ``all``, stops there."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode

DONE = types.SimpleNamespace(count=0)
MODULES = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.ReLU(), torch.nn.Tanh()])


class Counting:
    def __init__(self) -> None:
        self.count = 0

    def __iter__(self) -> Counting:
        return self

    def __next__(self) -> int:
        self.count += 1
        if self.count > 3:
            raise StopIteration
        return self.count - 1


class Until(Counting):
    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.x = x

    def __next__(self) -> int:
        if self.count == 3 or self.x[self.count] > 1:
            raise StopIteration
        return super().__next__()


def search(x: Tensor, items: Any) -> None:
    for i in items:
        if x[int(i)] > 1:
            break


# ---- used again
def of_a_list(x: Tensor) -> Any:
    it = iter([0, 1, 2])
    search(x, it)
    return list(it)


def of_a_text(x: Tensor) -> Any:
    it = iter("012")
    search(x, it)
    return "".join(it)


def of_a_dict(x: Tensor) -> Any:
    it = iter({0: 1, 1: 2, 2: 3})
    search(x, it)
    return next(it, -1)


def of_a_tensor(x: Tensor) -> Any:
    it = iter(x)
    for v in it:
        if v > 1:
            break
    return [v + 1 for v in it]


def of_modules(x: Tensor) -> Any:
    it = iter(MODULES)
    for module in it:
        x = module(x)
        if x[1] > 1:
            break
    for module in it:
        x = module(x)
    return x


def of_zip_twice(x: Tensor) -> Any:
    it = iter([0, 1, 2, 2])
    for i, _ in zip(it, it):
        if x[i] > 1:
            break
    return sum(it)


def behind_another(x: Tensor) -> Any:
    it = iter([0, 1, 2])
    all_of_them = itertools.chain(it, [5])
    search(x, it)
    return list(all_of_them)


def copied(x: Tensor) -> Any:
    it = iter([0, 1, 2])
    search(x, it)
    return list(copy.copy(it))


def asked_for_its_length(x: Tensor) -> Any:
    it = iter([0, 1, 2])
    search(x, it)
    return it.__length_hint__()  # type: ignore[attr-defined]  # a list's has it


def of_enumerate(x: Tensor) -> Any:
    it = enumerate(x)
    for _, v in it:
        if v > 1:
            break
    return [i for i, _ in it]


def of_enumerate_in_zip(x: Tensor) -> Any:
    it = enumerate(x)
    for (_, v), _ in zip(it, x):
        if v > 1:
            break
    return [i for i, _ in it]


def of_a_long_one(x: Tensor) -> Any:
    total, it = x.sum(), enumerate(torch.arange(80.0))
    for _, v in it:
        total = total + v
    return total, [i for i, _ in it]


def in_an_arm(x: Tensor) -> Any:
    total, it = x.sum() * 0, enumerate(x)
    if x.sum() > 0:
        for _, v in it:
            total = total + v
    return total, [i for i, _ in it]


def by_any(x: Tensor) -> Any:
    it = iter(range(3))
    return any(x[i] > 1 for i in it), list(it)


def by_all(x: Tensor) -> Any:
    it = iter([x[0] < 1, x[1] < 1, x[2] < 1])
    return all(it), len(list(it))


def with_a_finally(x: Tensor) -> Any:
    def each() -> Iterator[Any]:
        try:
            yield x[0] > 1
            yield x[1] > 1
            yield x[2] > 1
        finally:
            DONE.count += 1

    return any(each())


def writing_a_variable(x: Tensor) -> Any:
    count = 0

    def each() -> Iterator[int]:
        nonlocal count
        for i in range(3):
            count += 1
            yield i

    for _, i in zip("abc", each()):
        if x[i] > 1:
            break
    return count


def writing_a_variable_in_any(x: Tensor) -> Any:
    count = 0

    def each() -> Iterator[Any]:
        nonlocal count
        for i in range(3):
            count += 1
            yield x[i] > 1

    return any(a for a, _ in zip(each(), "abc")), count


def by_a_method_of_a_list(x: Tensor) -> Any:
    seen: list[int] = []
    search(x, itertools.filterfalse(seen.append, [0, 1, 2]))
    return seen


def zipped_object(x: Tensor) -> Any:
    it = Counting()
    for i, _ in zip(it, "abc"):
        if x[i] > 1:
            break
    return it.count


def ending_in_the_run(x: Tensor) -> Any:
    it, total = Until(x), 0
    for i in it:
        total += i
    return total, it.count


REFUSED: list[Callable[[Tensor], Any]] = [
    *(of_a_tensor, of_modules, behind_another, copied, of_enumerate_in_zip, with_a_finally, writing_a_variable),
    asked_for_its_length,
]


# ---- one program
def of_a_function(x: Tensor) -> Any:
    left = [3, 2, 1, 0]
    for i in iter(left.pop, 3):
        if x[i] > 1:
            break
    return left


def by_a_filter(x: Tensor) -> Any:
    seen = []

    def is_taken(i: int) -> bool:
        seen.append(i)
        return True

    search(x, filter(is_taken, [0, 1, 2]))
    return seen


def by_a_filter_that_prints(x: Tensor) -> Any:
    def is_taken(i: int) -> bool:
        print(i)
        DONE.count += 1
        return True

    return any(x[i] > 1 for i in filter(is_taken, [0, 1, 2]))


def of_an_object(x: Tensor) -> Any:
    it = Counting()
    search(x, it)
    return it.count


def of_an_object_by_any(x: Tensor) -> Any:
    it = Counting()
    return any(x[i] > 1 for i in it), it.count


def the_witness(x: Tensor) -> Any:
    if any((n := v) > 1 for v in x):
        return n
    return None


def the_last_binding(x: Tensor) -> Any:
    for i in ((n := i) for i in range(3)):
        if x[i] > 1:
            break
    return n


def the_last_closure(x: Tensor) -> Any:
    for read in (lambda: i for i in range(3)):  # noqa: B023  # that is what it is about
        if x[read()] > 1:
            break
    return read()


def zipped_with_itself(x: Tensor) -> Any:
    it = enumerate(x)
    return [(i, j) for (i, _), (j, _) in zip(it, it)]


def made_in_the_header(x: Tensor) -> Any:
    found = 0
    for i, (k, _) in enumerate(zip([0, 1, 2], "abc")):
        found = i
        if x[k] > 1:
            break
    return found, any(x[k] > 2 for k, _ in {0: 1, 2: 3}.items())


ONE_PROGRAM: list[Callable[[Tensor], Any]] = [
    *(of_a_function, by_a_filter, by_a_filter_that_prints, of_an_object, of_an_object_by_any, the_witness),
    *(the_last_binding, the_last_closure, zipped_with_itself, made_in_the_header, of_a_list, of_a_text, of_a_dict),
    *(of_zip_twice, of_enumerate, of_a_long_one, in_an_arm, by_any, by_all, zipped_object),
    *(ending_in_the_run, writing_a_variable_in_any, by_a_method_of_a_list),
]

UP = torch.tensor([1.0, 2.0, 3.0])
CALLS = [UP, -UP, UP.flip(0), UP * 0.4, UP]


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value.tolist() if isinstance(value, Tensor) else value


def seen(function: Callable[[Tensor], Any], x: Tensor) -> Any:
    DONE.count = 0
    with contextlib.redirect_stdout(io.StringIO()) as text:
        result = plain(function(x.clone()))
    return result, DONE.count, text.getvalue()


@pytest.mark.parametrize("function", REFUSED)
def test_what_only_the_run_knows_is_refused(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(sg.CaptureError) as caught:
        sg.to_static(function, backend="eager")(UP)
    assert caught.value.reason.code in ("SG305", "SG206")


@pytest.mark.parametrize("function", ONE_PROGRAM)
def test_one_program(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, backend="eager")
    for x in CALLS:
        assert seen(static, x) == seen(function, x)


@pytest.mark.parametrize("function", [*REFUSED, *ONE_PROGRAM])
def test_in_segments(function: Callable[[Tensor], Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    for x in CALLS:
        assert seen(static, x) == seen(function, x)


LAYER = torch.nn.Linear(2, 2)


def first_of_a_generator(x: Tensor) -> Tensor:
    while x.sum() < 10:
        if next(each.device for each in LAYER.parameters()).type != "meta":
            x = x + 1
    return x


def first_of_a_generator_of_a_generator(x: Tensor) -> Tensor:
    for _ in range(int(x[0])):
        inner = (each for each in LAYER.parameters())
        x = x + next(each.dim() for each in inner if each.dim() > 1)
    return x


@pytest.mark.parametrize("function", [first_of_a_generator, first_of_a_generator_of_a_generator])
@pytest.mark.parametrize("front_end", ["source", "bytecode"])
def test_an_iteration_makes_and_draws_from_its_own(
    function: Callable[..., Any], front_end: str
) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        static = sg.to_static(function, backend="eager")
        static(torch.tensor([1.0, 2.0]))
    for given in (torch.tensor([1.0, 2.0]), torch.tensor([3.0, 0.0]), torch.tensor([20.0, 1.0])):
        assert torch.equal(static(given), function(given))
    assert static.cache_info().programs == 1
