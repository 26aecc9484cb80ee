"""Classes that are registered with an abstract one between two calls."""

from __future__ import annotations

import abc
import collections.abc
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.unit.soundness.turns import Turns, agrees

Question = Callable[[Any, Any], bool]

QUESTIONS: dict[str, Question] = {
    "an object": lambda value, base: isinstance(value, base),
    "a class": lambda value, base: issubclass(type(value), base),
    "one of several": lambda value, base: isinstance(value, (int, (str, base))),
    "a union": lambda value, base: isinstance(value, int | base),
}


def asking(ask: Question, own: bool) -> Callable[[], Turns]:
    def make() -> Turns:
        class Abstract(abc.ABC): ...  # noqa: B024  # nothing is asked of it but what it counts as its own

        class Value: ...

        base: Any = Abstract if own else collections.abc.Sequence
        value = Value()

        def change(number: int) -> None:
            if number == 2:
                base.register(Value)

        return lambda x: x * 2 if ask(value, base) else x, change

    return make


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_class_that_is_registered_later_counts(question: str, own: bool, full: bool) -> None:
    agrees(asking(QUESTIONS[question], own), full)


def test_another_registration_needs_no_new_program() -> None:
    class Other: ...

    value = object()
    static = sg.to_static(lambda x: x if isinstance(value, collections.abc.Sequence) else -x, backend="eager")
    static(torch.ones(1))
    collections.abc.Sequence.register(Other)
    static(torch.ones(1))
    assert static.cache_info().programs == 1
