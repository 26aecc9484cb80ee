"""Functions that raise errors in what they call, in each of the ways that Python has of calling. (No test module.)

Each is a function of ``(x, i)`` that raises for a large ``i``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

FUNCTIONS: dict[str, Callable[..., Any]] = {}


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    FUNCTIONS[function.__name__] = function
    return function


def picked(x: Tensor, i: Any) -> Tensor:
    return x[i]


# ---- generators
def two(x: Tensor, i: Any) -> Iterator[Tensor]:
    yield x
    y = x[i]
    yield y


def delegating(x: Tensor, i: Any) -> Iterator[Tensor]:
    yield x
    yield from two(x, i)


def deciding(x: Tensor, i: Any) -> Iterator[Tensor]:
    if x.sum() > 0:
        yield x[i]
    k = i
    while k > 0:
        yield x[k]
        k = k - 1


def calling(x: Tensor, i: Any) -> Iterator[Tensor]:
    yield picked(x, i)


def with_an_answer(x: Tensor, i: Any) -> Iterator[Tensor]:
    answer = yield x
    yield x[i] if answer is None else answer


def walked(x: Tensor, i: Any, depth: int) -> Iterator[Tensor]:
    if depth > 0:
        yield from walked(x, i, depth - 1)
    yield x[i] + depth


@case
def a_loop_over_a_generator(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in two(x, i):
        total = total + each.sum()
    return total


@case
def a_list_of_a_generator(x: Tensor, i: Tensor) -> Any:
    values = list(two(x, i))
    return values[0].sum() + values[1]


@case
def a_sum_of_a_generator(x: Tensor, i: Tensor) -> Any:
    return sum(two(x, i))


@case
def a_generator_expression(x: Tensor, i: Tensor) -> Any:
    return sum(x[i + k] for k in range(2))


@case
def a_loop_over_a_generator_expression(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in (x[i + k] for k in range(2)):
        total = total + each
    return total


@case
def a_generator_expression_over_a_generator(x: Tensor, i: Tensor) -> Any:
    return sum(each.sum() for each in two(x, i))


@case
def the_element_over_a_generator(x: Tensor, i: Tensor) -> Any:
    return sum(x[i] + each.sum() for each in deciding(x, torch.tensor(1)))


@case
def a_comprehension_over_a_generator(x: Tensor, i: Tensor) -> Any:
    return torch.stack([each.sum() for each in deciding(x, i)])


@case
def nested_generators(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in delegating(x, i):
        total = total + each.sum()
    return total


@case
def a_list_of_nested_generators(x: Tensor, i: Tensor) -> Any:
    return list(delegating(x, i))[2] + 1


@case
def a_generator_in_itself(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in walked(x, i, 2):
        total = total + each
    return total


@case
def drawn_by_hand(x: Tensor, i: Tensor) -> Any:
    generator = two(x, i)
    next(generator)
    return next(generator) + 1


@case
def drawn_by_zip(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each, factor in zip(two(x, i), [1, 2]):
        total = total + each.sum() * factor
    return total


@case
def drawn_by_enumerate(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for index, each in enumerate(two(x, i)):
        total = total + each.sum() * index
    return total


@case
def mapped_over_a_generator(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in map(lambda each: x[i] + each, deciding(x, torch.tensor(1))):  # noqa: C417 - it is map that is meant
        total = total + each.sum()
    return total


@case
def a_generator_that_decides(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in deciding(x, i):
        total = total + each.sum()
    return total


@case
def a_body_of_a_loop_over_a_generator(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in deciding(x, torch.tensor(1)):
        if each.sum() > 0:
            total = total + x[i]
    return total


@case
def a_function_that_a_generator_calls(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in calling(x, i):
        total = total + each
    return total


@case
def a_generator_with_an_answer(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in with_an_answer(x, i):
        total = total + each.sum()
    return total


@case
def generators_in_both_arms(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    if total > 0:
        for each in two(x, i):
            total = total + each.sum()
    else:
        for each in delegating(x, i):
            total = total - each.sum()
    return total


@case
def a_generator_in_a_loop(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    while total < 30:
        for each in two(x, i):
            total = total + each.sum()
        total = total + 10
    return total


# ---- comprehensions
@case
def a_list_comprehension(x: Tensor, i: Tensor) -> Any:
    return sum([x[i + k] for k in range(2)])


@case
def a_list_comprehension_with_two_loops(x: Tensor, i: Tensor) -> Any:
    return sum([x[i + k + n] for k in range(2) for n in range(k + 1)])


@case
def a_list_comprehension_in_another(x: Tensor, i: Tensor) -> Any:
    return [[x[i + k + n] for k in range(2)] for n in range(2)][0][0]  # noqa: RUF015 - it is the comprehension that is meant


@case
def a_dict_comprehension(x: Tensor, i: Tensor) -> Any:
    return {k: x[i + k] for k in range(2)}[0]


@case
def a_set_comprehension(x: Tensor, i: Tensor) -> Any:
    return len({str(k) for k in range(2) if x[i] is not None}) + x


@case
def the_first_iterable_of_a_comprehension(x: Tensor, i: Tensor) -> Any:
    return sum([each for each in x[i].reshape(1)])  # noqa: C416 - it is the comprehension that is meant


# ---- chains
class Builder:
    def __init__(self, value: Tensor) -> None:
        self.value = value

    def doubled(self) -> Builder:
        return Builder(self.value * 2)

    def picked(self, i: Tensor) -> Builder:
        return Builder(self.value[i])


@case
def a_chain(x: Tensor, i: Tensor) -> Any:
    return (
        x.relu()
        .repeat(2)
        .index_select(
            0,
            i.reshape(1),
        )
        .cos()
    )


@case
def chains_in_both_arms(x: Tensor, i: Tensor) -> Any:
    if x.sum() > 0:
        y = (
            x.relu()
            .index_select(0, i.reshape(1))
            .cos()
        )  # fmt: skip
    else:
        y = (
            x.relu()
            .sin()
            .index_select(0, i.reshape(1))
        )  # fmt: skip
    return y


@case
def a_chain_in_a_loop(x: Tensor, i: Tensor) -> Any:
    while x.sum() < 30:
        x = (
            x.relu()
            .repeat(3)
            .index_select(0, i + torch.arange(4))
            .mul(3)
        )  # fmt: skip
    return x


@case
def a_chain_of_the_users(x: Tensor, i: Tensor) -> Any:
    return (
        Builder(x)
        .doubled()
        .picked(i)
        .value
    )  # fmt: skip


@case
def a_chain_with_a_star(x: Tensor, i: Tensor) -> Any:
    given = (0, i.reshape(1))
    return (
        x.relu()
        .index_select(*given)
        .cos()
    )  # fmt: skip


@case
def a_chain_with_an_index(x: Tensor, i: Tensor) -> Any:
    return (
        x.relu()
        .sin()[i]
        .cos()
    )  # fmt: skip


@case
def an_element_of_a_list_on_lines_of_its_own(x: Tensor, i: Tensor) -> Any:
    return torch.stack(
        [
            x[0],
            x[
                i
            ],
        ]
    )  # fmt: skip


# ---- functions and methods
def passed_on(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


@passed_on
def decorated(x: Tensor, i: Tensor) -> Tensor:
    return x[i]


class Closing:
    def __init__(self, x: Tensor, i: Tensor) -> None:
        self.x, self.i = x, i

    def __enter__(self) -> Closing:
        return self

    def __exit__(self, *error: object) -> None:
        self.y = self.x[self.i]


class Opening(Closing):
    def __enter__(self) -> Closing:
        self.y = self.x[self.i]
        return self

    def __exit__(self, *error: object) -> None:
        pass


@contextlib.contextmanager
def entered(x: Tensor, i: Tensor) -> Iterator[Tensor]:
    yield x[i]


@contextlib.contextmanager
def left(x: Tensor, i: Tensor) -> Iterator[Tensor]:
    yield x
    x[i] + 1


class Holder:
    def __init__(self, x: Tensor, i: Tensor) -> None:
        self.x, self.i = x, i

    @property
    def last(self) -> Tensor:
        return self.x[self.i]

    def __getattr__(self, name: str) -> Tensor:
        if name != "computed":
            raise AttributeError(name)
        return self.x[self.i]

    def __call__(self, i: Tensor) -> Tensor:
        return self.x[i]

    def __getitem__(self, i: Tensor) -> Tensor:
        return self.x[i]

    def __add__(self, i: Tensor) -> Tensor:
        return self.x[i]

    def __iter__(self) -> Iterator[Tensor]:
        yield self.x[self.i]

    def __bool__(self) -> bool:
        return bool(self.x[self.i] > 0)

    def __eq__(self, i: object) -> Any:
        return self.x[i] > 0  # type: ignore[index]  # a tensor


class Base(nn.Module):
    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        return x[i]


class Derived(Base):
    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        return super().forward(x, i) + 1


DERIVED = Derived()


@case
def a_lambda(x: Tensor, i: Tensor) -> Any:
    function = lambda k: x[k]  # noqa: E731
    return function(i) + 1


@case
def a_lambda_given_to_map(x: Tensor, i: Tensor) -> Any:
    return sum(map(lambda k: x[k], [i, i]))  # noqa: C417 - it is map that is meant


@case
def a_function_given_to_map(x: Tensor, i: Tensor) -> Any:
    return sum(map(functools.partial(picked, x), [i, i]))


@case
def a_lambda_given_to_sorted(x: Tensor, i: Tensor) -> Any:
    return x[sorted([1, 0], key=lambda k: float(x[i] + k))[0]]


@case
def a_decorated_function(x: Tensor, i: Tensor) -> Any:
    return decorated(x, i) + 1


@case
def a_manager_that_closes(x: Tensor, i: Tensor) -> Any:
    with Closing(x, i) as manager:
        z = x * 2
    return manager.y + z


@case
def a_manager_that_opens(x: Tensor, i: Tensor) -> Any:
    with Opening(x, i) as manager:
        z = x * 2
    return manager.y + z


@case
def a_generator_as_a_manager_that_opens(x: Tensor, i: Tensor) -> Any:
    with entered(x, i) as y:
        z = x * y
    return z


@case
def a_generator_as_a_manager_that_closes(x: Tensor, i: Tensor) -> Any:
    with left(x, i) as y:
        z = x * y
    return z


@case
def a_property(x: Tensor, i: Tensor) -> Any:
    return Holder(x, i).last + 1


@case
def an_attribute_that_is_computed(x: Tensor, i: Tensor) -> Any:
    return Holder(x, i).computed + 1


@case
def an_object_that_is_called(x: Tensor, i: Tensor) -> Any:
    return Holder(x, i)(i) + 1


@case
def an_index_of_an_object(x: Tensor, i: Tensor) -> Any:
    return Holder(x, i)[i] + 1


@case
def an_operator_of_an_object(x: Tensor, i: Tensor) -> Any:
    return Holder(x, i) + i


@case
def a_loop_over_an_object(x: Tensor, i: Tensor) -> Any:
    total = x.sum()
    for each in Holder(x, i):
        total = total + each
    return total


@case
def the_truth_of_an_object(x: Tensor, i: Tensor) -> Any:
    if Holder(x, i):
        return x
    return x + 1


@case
def an_object_compared(x: Tensor, i: Tensor) -> Any:
    if Holder(x, i) == i:
        return x
    return x + 1


@case
def a_nested_function(x: Tensor, i: Tensor) -> Any:
    def inner(k: Tensor) -> Tensor:
        return x[k]

    return inner(i) + 1


def again(x: Tensor, i: Tensor, depth: int) -> Tensor:
    if depth == 0:
        return x[i]
    return again(x, i, depth - 1) + 1


@case
def a_function_in_itself(x: Tensor, i: Tensor) -> Any:
    return again(x, i, 3)


@case
def a_method_of_the_base(x: Tensor, i: Tensor) -> Any:
    return DERIVED(x, i) + 1


@case
def operands(x: Tensor, i: Tensor) -> Any:
    if x.sum() > 0 and x[i] > 0:
        return x
    return x + 1


# ---- exceptions that are raised once more
class TooLarge(Exception):
    pass


def checked(x: Tensor) -> Tensor:
    if x.sum() > 3:
        raise TooLarge("a sum")
    return x


def passing_on(x: Tensor) -> Tensor:
    try:
        return checked(x)
    except TooLarge as error:
        raise error


@case
def raised_once_more(x: Tensor, i: Tensor) -> Any:
    try:
        y = checked(x * i)
    except TooLarge as error:
        raise error
    return y


@case
def raised_once_more_without_a_name(x: Tensor, i: Tensor) -> Any:
    try:
        y = checked(x * i)
    except TooLarge:
        raise
    return y


@case
def raised_once_more_on_the_spot(x: Tensor, i: Tensor) -> Any:
    try:
        if (x * i).sum() > 3:
            raise TooLarge("here")
    except TooLarge as error:
        raise error
    return x


@case
def an_error_of_torch_raised_once_more(x: Tensor, i: Tensor) -> Any:
    try:
        y = x[i]
    except IndexError as error:
        raise error
    return y


@case
def raised_once_more_in_each_function(x: Tensor, i: Tensor) -> Any:
    try:
        y = passing_on(x * i)
    except TooLarge as error:
        raise error
    return y


@case
def raised_once_more_by_a_function(x: Tensor, i: Tensor) -> Any:
    y = passing_on(x * i)
    return y + 1


@case
def raised_once_more_in_both_arms(x: Tensor, i: Tensor) -> Any:
    try:
        y = checked(x * i)
    except TooLarge as error:
        if x.sum() > 10:
            raise error
        else:  # noqa: RET506 - an arm of its own
            raise error
    return y


@case
def raised_once_more_in_a_loop(x: Tensor, i: Tensor) -> Any:
    for _ in range(2):
        while x.sum() < 10:
            try:
                y = checked(x * i)
            except TooLarge as error:
                raise error
            x = x + y + 30
    return x


@case
def raised_once_more_through_finally(x: Tensor, i: Tensor) -> Any:
    try:
        try:
            y = checked(x * i)
        except TooLarge as error:
            raise error
    finally:
        x = x + 1
    return y + x


@case
def raised_once_more_at_once(x: Tensor, i: Tensor) -> Any:
    if (x * i).sum() > 3:
        try:
            raise TooLarge("here")
        except TooLarge as error:
            raise error
    return x


@case
def raised_once_more_at_once_without_a_name(x: Tensor, i: Tensor) -> Any:
    if (x * i).sum() > 3:
        try:
            raise TooLarge("here")
        except TooLarge:
            raise
    return x


def always() -> None:
    try:
        raise TooLarge("always")
    except TooLarge as error:
        raise error


@case
def a_function_that_always_raises_once_more(x: Tensor, i: Tensor) -> Any:
    if (x * i).sum() > 3:
        try:
            always()
        except TooLarge as error:
            raise error
    return x


@case
def raised_once_more_from_another(x: Tensor, i: Tensor) -> Any:
    try:
        y = checked(x * i)
    except TooLarge as error:
        raise ValueError("another") from error
    return y


# ---- what a capture refuses
class Refused(Exception):
    """As eager raises it where a capture refuses."""


def refusing(i: Tensor | None) -> Callable[[float], float]:
    """The argument of a method that a capture refuses; without a tensor, that fails."""
    if i is None:
        raise Refused
    return float


def refused_parts(x: Tensor, i: Tensor | None) -> Iterator[Tensor]:
    yield x
    yield x.apply_(refusing(i))


def refused_in_a_generator(x: Tensor, i: Tensor | None) -> Any:
    total = x.sum()
    for each in refused_parts(x, i):
        total = total + each.sum()
    return total


def refused_in_a_chain(x: Tensor, i: Tensor | None) -> Any:
    return (
        x.relu()
        .sin()
        .apply_(refusing(i))
        .cos()
    )  # fmt: skip
