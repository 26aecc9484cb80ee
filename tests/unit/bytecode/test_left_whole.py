"""What is Python's as a whole, and why: generator, coroutine and cached functions, what torch.jit made."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import sys
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


def test_a_coroutine_function_is_known_as_one() -> None:
    for kind in (awaited, streamed, doubled, functools.partial(awaited, X), Holder().forward):
        static = to_partial(kind)
        assert asyncio.iscoroutinefunction(static) == asyncio.iscoroutinefunction(kind)
        if sys.version_info >= (3, 12):
            assert inspect.iscoroutinefunction(static) == inspect.iscoroutinefunction(kind)

    class Waiting:
        async def wait(self, x: Any) -> Any:
            return x

    assert asyncio.iscoroutinefunction(to_partial(Waiting().wait))


# ---- functions with a cache
def ones(size: int) -> Any:
    return torch.ones(size) if size > 1 else torch.zeros(size)


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.called = 0

    @functools.lru_cache  # noqa: B019  # that is what it is for
    def forward(self, size: int) -> Any:
        self.called += 1
        return ones(size) + self.called


class OfAClass:
    __call__ = functools.lru_cache(lambda self, size: ones(size))


CACHED: dict[str, Callable[[], Any]] = {
    "a function": lambda: functools.lru_cache(ones),
    "a lambda": lambda: functools.cache(lambda size: ones(size)),
    "a partial": lambda: functools.partial(functools.lru_cache(ones)),
    "a method": lambda: Cached().forward,
    "a module": Cached,
    "an object": OfAClass,
}


@pytest.mark.parametrize("kind", CACHED)
def test_a_function_with_a_cache_gives_the_same_again(kind: str) -> None:
    eager, static = CACHED[kind](), to_partial(CACHED[kind]())
    for size in (2, 1, 2, 1):
        torch.testing.assert_close(static(size), eager(size))
        assert static(size) is static(size)
    (step,) = (static.forward if isinstance(static, nn.Module) else static).explain().breaks
    assert step.reason.endswith("has a cache: what it has given, it gives again")
    assert count(static) == 0


# ---- what torch.jit made
class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) if bool(x.sum() > 0) else x - 1


COMPILED: dict[str, Callable[[Any], Any]] = {
    "scripted": torch.jit.script,
    "traced": lambda module: torch.jit.trace(module, X, check_trace=False),
    "a method": lambda module: torch.jit.script(module).forward,
}


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", COMPILED)
def test_what_torch_jit_made(kind: str, strict: bool) -> None:
    eager = COMPILED[kind](Branching())
    made = to_partial(copy.deepcopy(eager) if isinstance(eager, nn.Module) else eager, strict=strict)
    for x in (X, -X):
        torch.testing.assert_close(made(x), eager(x))
    told = (made.forward if isinstance(made, nn.Module) else made).explain()
    assert told.breaks[0].code == "SG105"
    assert "its Python is gone" in str(told)
    if isinstance(eager, nn.Module):
        assert sg.symbolic_trace(made, strict=strict) is made
        with pytest.raises(sg.CaptureError, match="its Python is gone"):
            sg.to_static(COMPILED[kind](Branching()))


@pytest.mark.slow
@pytest.mark.parametrize("full_graph", [False, True])
def test_what_torch_compile_made_is_refused(full_graph: bool) -> None:
    """Its calls would run the capture under Dynamo."""

    class Holder:
        @torch.compile(backend="eager")
        def method(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    class Forward(nn.Module):
        @torch.compile(backend="eager")
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    compiled = torch.compile(lambda x: x * 2, backend="eager")
    for made in (compiled, torch.compile(nn.Linear(2, 2)), Holder().method, functools.partial(compiled), Forward()):
        with pytest.raises(TypeError, match=r"takes what torch\.compile was given"):
            sg.to_static(made, full_graph=full_graph)
    disabled = torch.compiler.disable(lambda x: x * 2)

    @functools.wraps(compiled)
    def wrapper(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    for taken in (disabled, wrapper):
        assert sg.to_static(taken, full_graph=full_graph, backend="eager")(torch.ones(2)).tolist() == [2, 2]
