"""An attribute that changes its rank in the body of a ``try``: a handler that does not ask for it is told nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree

INPUTS = [(torch.tensor(each),) for each in ([1.0, 2.0, -1.0], [7.0, 2.0, -1.0], [2.0, 2.0, 5.0])]


class Cache:
    def __init__(self) -> None:
        self.keys: Any = None

    def update(self, x: Tensor) -> Tensor:
        self.keys = torch.tensor([])
        self.keys = torch.cat([self.keys, x[x > 0]])
        self.keys = self.keys[None]
        return x[int(x[0].abs())]  # raises


SHARED = Cache()


def raised_again(x: Tensor) -> Any:
    cache = Cache()
    try:
        y = cache.update(x)
    except IndexError as error:
        raise ValueError("no such element") from error
    return cache.keys, y


def cleaned_up(x: Tensor) -> Any:
    cache, count = Cache(), 0
    try:
        y = cache.update(x)
    finally:
        count += 1
    return cache.keys, y, count


def listed(x: Tensor) -> Any:
    cache = Cache()
    try:
        y = cache.update(x)
    except IndexError:
        y = x
    return sorted(vars(cache)), y


@pytest.mark.parametrize("function", [raised_again, cleaned_up, listed], ids=lambda each: each.__name__)
def test_who_does_not_ask_is_told_nothing(function: Any) -> None:
    agree(function, *INPUTS)


def asked_behind(x: Tensor) -> Any:
    cache = Cache()
    try:
        y = cache.update(x)
    except IndexError:
        y = x
    return cache.keys, y


def asked_in_the_handler(x: Tensor) -> Any:
    cache = Cache()
    try:
        return cache.update(x)
    except IndexError:
        return x if cache.keys is None else cache.keys


def of_an_outer_object(x: Tensor) -> Any:
    try:
        return SHARED.update(x)
    except IndexError:
        return x


@pytest.mark.parametrize("function", [asked_behind, asked_in_the_handler, of_an_outer_object], ids=lambda e: e.__name__)
def test_who_asks_is_refused(function: Any) -> None:
    with pytest.raises(sg.CaptureError, match="keys' cannot be handed to the handler"):
        sg.to_static(function, backend="eager")(*INPUTS[0])


class Holder:
    def __init__(self) -> None:
        self.held: Any = 0


def test_what_a_finally_puts_back_is_not_lost_to_the_handler_around_it() -> None:
    def function(x: Tensor) -> Any:
        holder = Holder()
        try:
            holder.held = x
            try:
                if x[0] > 1.5:
                    raise ValueError
                y = holder.held * 2
            finally:
                holder.held = 0
        except ValueError:
            y = x + 1
        return y, holder.held

    agree(function, *INPUTS)
