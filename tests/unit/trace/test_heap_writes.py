"""What arms and loop bodies do to objects that outlive them: joined like locals, or refused, never done by both."""

from __future__ import annotations

import collections
import functools
import io
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.unit.trace.agreement import agree, agree_fresh, program_of, refusal

UP = torch.tensor([3.0, 1.0, 2.0, 5.0])
DOWN = torch.tensor([-3.0, -1.0, -2.0, -1.0])
LOW = torch.full((4,), 0.1)
CALLS = (DOWN, UP, LOW)


# ---- lists whose length only the run knows
def starred(x: Tensor) -> Any:
    kept = [v for v in x if v > 0]
    if not kept:
        return None
    first, *rest = kept
    *most, last = kept
    return first, rest, most, last


def too_few(x: Tensor) -> Any:
    kept = [v for v in x if v > 0]
    first, *rest = kept
    return first, rest


def compared(x: Tensor) -> Any:
    kept = [i for i in range(4) if x[i] > 0]
    return kept == [0, 1, 2, 3], kept != [0, 1, 2, 3], kept == [0, 1, 2, 3], (kept, 1) == ([], 1), [0] in [kept]


def compared_tensors(x: Tensor) -> Any:
    a, b = [x[0], x[1]], [x[1], x[0]]
    return a == b, a == a, a != b, {"a": x.sum().item()} == {"a": 11.0}


def grows_while_iterated(x: Tensor) -> Any:
    kept = [v for v in x if v > 2]
    for v in kept:
        if len(kept) < 5:
            kept.append(v - 1)
    return kept


def shrinks_while_iterated(x: Tensor) -> Any:
    kept = [v for v in x if v > 0]
    count = 0
    for _ in kept:
        kept.pop()
        count += 1
    for i, _ in enumerate(kept):
        kept.pop(i)
    return kept, count


class Stack(list[Any]):
    def push(self, value: Any) -> None:
        self.append(value)


def own_class(x: Tensor) -> Any:
    stack = Stack()
    if x.sum() > 5:
        stack.push(1)
    return len(stack)


def reversed_while_it_grows(x: Tensor) -> Any:
    numbers = [1, 2]
    for number in reversed(numbers):
        numbers.append(number)
        x = x + number
        if x.sum() > 1000:
            break
    return x


def handled_outside_exception(x: Tensor) -> Any:
    class Stop(BaseException):
        pass

    try:
        raise Stop
    except Stop:
        y = x
    try:
        if x.sum() > 0:
            raise ValueError
    except ValueError:
        y = y + 1
    return y


def iterators_of_the_arm(x: Tensor) -> Any:
    """An iterator made in the arm that advances it."""
    layers = nn.ModuleList([nn.Identity(), nn.Identity()])
    if x.sum() > 0:
        for i, layer in enumerate(layers):
            x = layer(x) + i
        for name, value in zip("ab", [1, 2]):
            x = x + value if name == "a" else x
        first = next(iter([5, 6]))
        for value in filter(None, map(abs, [first, 0])):
            x = x * value
    return x


@functools.lru_cache
def table(length: int) -> Tensor:
    return torch.arange(length) * 1.0


def cached(x: Tensor) -> Tensor:
    return x + table(4)


def numbers_of_numpy(x: Tensor) -> Any:
    array = x.clone().numpy()
    first = array[0]
    array += 1
    return np.sqrt(4.0) * x, first, array


# ---- objects
def through_its_dict(x: Tensor) -> Any:
    class Box:
        value = 0

    box = Box()
    box.__dict__["value"] = 1
    if x.sum() > 5:
        box.__dict__["value"] = 9
    return box.value


def past_the_class(x: Tensor) -> Any:
    class Box:
        value: int

    box = Box()
    box.value = 0
    if x.sum() > 5:
        object.__setattr__(box, "value", 9)
    return box.value


def containers_of_the_library(x: Tensor) -> Any:
    user_list, user_dict = collections.UserList([1]), collections.UserDict({"a": 1})
    counter = collections.Counter("aab")
    if x.sum() > 5:
        user_list.append(2)
        user_dict["a"] = 5
        counter["a"] += 7
    return len(user_list.data), user_dict["a"], counter["a"]


def seeded_in_an_arm(x: Tensor) -> Tensor:
    if x.sum() > 5:
        torch.manual_seed(5)
    return torch.rand(1)


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Any:
        if x.sum() > 5:
            self.drop.eval()
        return self.drop(x), self.drop.training


def made_by_reading(x: Tensor) -> Any:
    found: dict[str, list[int]] = collections.defaultdict(list)
    if x.sum() > 5:
        found["a"].append(1)
    return dict(found)


# ---- exceptions
def of_none(x: Tensor) -> Any:
    best = None
    if x.sum() > 5:
        best = x
    try:
        return best + 1  # type: ignore[operator]  # the user's way
    except TypeError:
        return x


def unbound(x: Tensor) -> Any:
    if x.sum() > 5:
        y = x
    try:
        return y + 1
    except NameError:
        return x


def out_of_range(x: Tensor) -> Any:
    try:
        return x[int(x[3])]
    except IndexError:
        return x[0]


def not_one_element(x: Tensor) -> Any:
    try:
        return x[x > 0].item()
    except RuntimeError:
        return 0.0


def sizes_that_do_not_fit(x: Tensor) -> Any:
    try:
        return x[x > 0] + torch.ones(3)
    except RuntimeError:
        return x


def zipped_unevenly(x: Tensor) -> Any:
    kept = [v for v in x if v > 0]
    count = 0
    for _, _ in zip(kept, [x, x + 1]):
        count += 1
    return count


def chained(x: Tensor) -> Any:
    return len(list(itertools.chain([v for v in x if v > 0], [x])))


class Halves:
    def __init__(self, value: Tensor) -> None:
        self.value = value

    def __iter__(self) -> Halves:
        return self

    def __next__(self) -> Tensor:
        self.value = self.value / 2
        if self.value.norm() < 1:
            raise StopIteration
        return self.value


def halved(x: Tensor) -> Any:
    return list(Halves(x))


@pytest.mark.parametrize(
    "function",
    [
        *(starred, too_few, compared, compared_tensors, grows_while_iterated, shrinks_while_iterated, own_class),
        *(through_its_dict, past_the_class, containers_of_the_library, seeded_in_an_arm, of_none, unbound),
        *(reversed_while_it_grows, handled_outside_exception, cached, numbers_of_numpy, iterators_of_the_arm),
        *(out_of_range, not_one_element, sizes_that_do_not_fit, made_by_reading, zipped_unevenly),
        *(chained, halved),
    ],
)
def test_as_in_eager(function: Any) -> None:
    agree(function, *CALLS)


def test_the_mode_of_a_module_is_state_like_any_other() -> None:
    agree_fresh(Dropping, *CALLS, programs=2)


# ---- refused
def written_array(x: Tensor) -> Any:
    array = np.zeros(2)
    if x.sum() > 5:
        array[0] = 7
    return float(array[0])


def written_text(x: Tensor) -> Any:
    buffer = io.StringIO()
    if x.sum() > 5:
        print("big", file=buffer)
    return buffer.getvalue()


def identity(x: Tensor) -> Any:
    y = x if x.sum() > 0 else x + 1
    return id(x) == id(y)


def used_up_by_trying(x: Tensor) -> Any:
    numbers = iter(range(1000))
    i = 0
    while i < 70:
        x = x + next(numbers)
        i += 1
    return x


class Lazy:
    def __init__(self) -> None:
        self.weight = torch.ones(4)
        self.reads = 0

    @functools.cached_property
    def tripled(self) -> Tensor:
        return self.weight * 3

    def __getitem__(self, index: int) -> Tensor:
        self.reads += 1
        return self.weight[index]


LAZY = Lazy()


def test_an_array_that_one_arm_writes() -> None:
    agree(written_array, UP, DOWN)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (used_up_by_trying, "SG305"),
        (lambda x: x.int().numpy() / 2, "SG310"),
        (written_text, "SG305"),
        (identity, "SG301"),
    ],
)
def test_refused(function: Any, code: str) -> None:
    assert refusal(function, UP).reason.code == code


def test_nothing_of_a_capture_stays() -> None:
    program_of(lambda x: x * LAZY.tripled, UP)
    assert vars(LAZY).keys() == {"weight", "reads"}
    agree(cached, UP)
    assert type(table(4)) is Tensor


def test_what_an_object_keeps_for_itself_is_an_effect() -> None:
    def make() -> Any:
        lazy = Lazy()
        return lambda x: (x * lazy.tripled * lazy[0], vars(lazy))

    agree_fresh(make, UP, DOWN, programs=2)


# ---- state that the journal keeps, and state that it does not
class Keeping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last: collections.deque[Tensor] = collections.deque(maxlen=2)
        self.seen: set[int] = set()
        self.table = np.ones(4, np.float32)

    def forward(self, x: Tensor) -> Any:
        self.last.append(x.sum())
        self.seen.add(len(self.seen) % 3)
        return sum(self.last), len(self.seen), x * float(self.table.sum())


def test_deques_sets_and_arrays_are_guarded() -> None:
    def write_array(module: Any) -> None:
        module.table[:] = 5

    agree_fresh(Keeping, *CALLS, *CALLS, write_array, UP, programs=8)
