"""Generator, coroutine and async generator functions without a full graph: Python makes their calls, and says why."""

from __future__ import annotations

import asyncio
import functools
import warnings
from collections.abc import AsyncIterator, Callable, Generator
from types import GeneratorType
from typing import Any

import pytest
import torch
from torch import nn

import stillgraph as sg
from stillgraph.core.reasons import REASONS
from tests.unit.bytecode.segmented import X, agrees, count, held, reasons, to_partial


def doubled(x: Any, seen: list[Any]) -> Generator[Any, Any, str]:
    seen.append("begun")
    try:
        sent = yield x * 2
        seen.append(sent)
        try:
            yield x + 1
        except KeyError:
            yield x - 1
    finally:
        seen.append("closed")
    return "end"


class Holder(nn.Module):
    def forward(self, x: Any, seen: list[Any]) -> Any:
        yield from doubled(x, seen)

    def method(self, x: Any, seen: list[Any]) -> Any:
        yield from doubled(x, seen)


class Called:
    def __call__(self, x: Any, seen: list[Any]) -> Any:
        yield from doubled(x, seen)


async def awaited(x: Any, seen: list[Any]) -> Any:
    seen.append("begun")
    await asyncio.sleep(0)
    seen.append("behind")
    return x + 1


async def streamed(x: Any) -> AsyncIterator[Any]:
    for number in range(3):
        await asyncio.sleep(0)
        yield x * number


GENERATORS: dict[str, Callable[[], Any]] = {
    "a function": lambda: to_partial(doubled),
    "not strict": lambda: to_partial(doubled, strict=False),
    "a bound method": lambda: to_partial(Holder().method),
    "a module": lambda: to_partial(Holder()),
    "an object": lambda: to_partial(Called()),
    "a partial": lambda: functools.partial(to_partial(functools.partial(doubled, X))),
}


@pytest.mark.parametrize("kind", GENERATORS)
def test_a_generator_function_gives_a_generator(kind: str) -> None:
    static = GENERATORS[kind]()
    args = () if kind == "a partial" else (X,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            seen: list[Any] = []
            made = static(*args, seen)
            assert (type(made), seen) == (GeneratorType, [])
            torch.testing.assert_close(next(made), X * 2)
            torch.testing.assert_close(made.send("sent"), X + 1)
            torch.testing.assert_close(made.throw(KeyError), X - 1)
            made.close()
            assert seen == ["begun", "sent", "closed"]


def test_coroutines_and_async_generators() -> None:
    static, stream = to_partial(awaited), to_partial(streamed, strict=False)

    async def both(seen: list[Any]) -> list[Any]:
        return [await static(X, seen), *[each async for each in stream(X)]]

    for _ in range(2):
        seen: list[Any] = []
        made = static(X, seen)
        assert seen == []
        torch.testing.assert_close(asyncio.run(made), X + 1)
        assert seen == ["begun", "behind"]
        torch.testing.assert_close(asyncio.run(both([])), [X + 1, X * 0, X, X * 2])
    assert count(static) == count(stream) == 0


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            doubled,
            "'doubled' is a generator: its body runs where its values are asked for "
            "(SG306, iterator or closure leaves the program)",
        ),
        (awaited, "'awaited' is asynchronous: its body runs where it is awaited (SG103, coroutine)"),
        (streamed, "'streamed' is asynchronous: its body runs where it is awaited (SG103, coroutine)"),
    ],
)
def test_why_is_told(function: Any, text: str) -> None:
    static = to_partial(function)
    found = static.explain()
    (step,) = found.breaks
    assert (step.why, step.place.line) == (text, function.__code__.co_firstlineno)
    assert str(found).startswith(f"{function.__name__}: 0 subgraphs, 1 break\n\nbreak at ")
    assert f"return {step.text}" in static.code
    assert text in static.code
    assert text == f"{step.reason} ({step.code}, {REASONS[step.code].title})"


def test_a_capture_refuses_coroutines_by_name() -> None:
    with pytest.raises(sg.CaptureError, match="'awaited' is asynchronous") as raised:
        to_partial(awaited).get_program(X, [])
    assert raised.value.reason.code == "SG103"


def test_a_coroutine_that_a_segment_has_made_is_run_once() -> None:
    def make(note: Any) -> Any:
        async def add(x: Any) -> Any:
            note("runs")
            await asyncio.sleep(0)
            return x + 1

        def f(x: Any) -> Any:
            y = asyncio.run(add(x * 2))
            return y * 3

        return f

    static = agrees(make, (X,), (-X,))
    assert reasons(static) == {"'add' is asynchronous"}


def test_a_coroutine_as_an_argument() -> None:
    def f(x: Any, given: Any) -> Any:
        return x * 2 + asyncio.run(given)

    static = to_partial(f)
    for _ in range(4):
        torch.testing.assert_close(static(X, awaited(X, [])), X * 3 + 1)
    assert count(static) == 2


def test_a_function_around_a_generator_function() -> None:
    @functools.wraps(doubled)
    def around(x: Any, seen: list[Any]) -> Any:
        seen.append("around")
        return doubled(x, seen)

    static = to_partial(around)
    for _ in range(3):
        seen: list[Any] = []
        made = static(X, seen)
        assert (type(made), seen) == (GeneratorType, ["around"])
        torch.testing.assert_close(next(made), X * 2)
        made.close()
    assert held(static).plan.left is None
