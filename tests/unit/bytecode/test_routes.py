"""What Python does between two programs: the third call takes a generated route, and is still what eager would be."""

from __future__ import annotations

import functools
import io
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

LOG: list[Any] = []


def note(value: Any, *, twice: bool = False) -> Any:
    LOG.append(value)
    if twice:
        LOG.append(value)
    return value


class Box:
    def __init__(self) -> None:
        self.count = 0
        self.held: dict[str, Any] = {}


def texts(x: Tensor, box: Box, out: Any) -> Tensor:
    y = x.sum().item()
    print(f"{y:.1f} and {y!r}", "a" + "b", file=out, end="|\n")
    return x * 2


def with_keywords(x: Tensor, box: Box, out: Any) -> Tensor:
    print(x.sum().item(), file=out, end="|\n")
    return x * 2


def runs_over(x: Tensor, box: Box, out: Any) -> tuple[Tensor, list[str]]:
    found = []
    for k in range(int(x.sum().item()) % 4):
        x = x * 2
        found.append(f"{k}: {x.sum().item():.0f}")
    return x, found


@sg.not_to_static
def shown(step: int, total: float) -> str:
    return f"step {step}: {total:.2f}"


def three_texts(x: Tensor, box: Box, out: Any) -> tuple[Tensor, list[str]]:
    found = []
    for k in range(3):
        x = torch.tanh(x) * 2
        found.append(shown(k, x.sum().item()))
    return x, found


def grows_under_its_loop(x: Tensor, box: Box, out: Any) -> Tensor:
    steps = [1, 2]
    for step in steps:
        x = x + step
        print(f"{step}: {x.sum().item():.0f}", file=out)
        if x.sum().item() < 10:
            steps.append(step + 1)
    return x * len(steps)


@functools.cache
def limited(value: float, *, limit: float) -> float:
    if value > limit:
        raise ValueError(f"{value} of {limit}")
    return value


def raises_with_keywords(x: Tensor, box: Box, out: Any) -> Tensor:
    return x * limited(x.sum().item(), limit=5.0)


def stores(x: Tensor, box: Box, out: Any) -> Tensor:
    text = f"{x.sum().item():.0f}"
    box.held[text] = (text, len(text))
    out.write(text)
    box.count += 1
    return x + box.count


def decides(x: Tensor, box: Box, out: Any) -> Tensor:
    text = f"{x.sum().item():.0f}"
    if out.write(text) > 1:
        out.write("long")
        return x * 2
    out.write("short")
    return x * 3


def inner(x: Tensor, out: Any) -> Tensor:
    y = x + 1
    out.write(f"{y.sum().item()}")
    return y * 2


def nested(x: Tensor, box: Box, out: Any) -> Tensor:
    return inner(x * 3, out) - 1


def raises(x: Tensor, box: Box, out: Any) -> Tensor:
    text = f"{x.sum().item():.0f}"
    out.write(text)
    number = int(text.replace("6", "six"))
    return x * number


def handles(x: Tensor, box: Box, out: Any) -> Tensor:
    text = f"{x.sum().item():.0f}"
    try:
        out.write(text)
        number = int(text.replace("6", "six"))
    except ValueError as error:
        out.write(str(error))
        number = -1
    return x * number


def asks_of_each(x: Tensor, box: Box, out: Any) -> Tensor:
    rows = [x[0], x[1]]
    return x * any(row.item() > 2 for row in rows)


def sorts_and_pops(x: Tensor, box: Box, out: Any) -> tuple[Any, ...]:
    seen = box.held.setdefault("seen", [])
    for _k in range(2):
        x = x + 1
        seen.append(f"{x.sum().item():.0f}")
        seen.sort()
        x = x * len(seen)
    last = [3]
    try:
        out.write(f"{x.sum().item():.0f}")
        last.pop(int(x.sum().item()) % 2)
    except IndexError as error:
        out.write(str(error))
    return x, last, seen[0].join("ab")


FUNCTIONS = [
    *(texts, with_keywords, raises_with_keywords, runs_over, grows_under_its_loop, three_texts),
    *(stores, decides, nested, raises, handles, asks_of_each, sorts_and_pops),
]
SUMS = (3.0, 9.0, 4.0, 6.0, 5.0, 12.0, 6.0, 36.0, 8.0)


def _outcome(function: Callable[..., Any], total: float, box: Box) -> Any:
    out = io.StringIO()
    try:
        value = repr(function(torch.full((2,), total / 2), box, out))
    except Exception as error:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == __file__]
        value = (type(error), str(error), lines[1:])
    return value, out.getvalue(), box.count, dict(box.held)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_call_is_as_in_eager(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    eagers, ours = Box(), Box()
    for total in SUMS:
        assert _outcome(static, total, ours) == _outcome(function, total, eagers), total


def _routes(static: Any) -> list[Any]:
    return [each.route for each in static.plan.ends if each.route is not None]


@pytest.mark.parametrize("function", [texts, with_keywords], ids=lambda each: each.__name__)
def test_a_way_that_is_taken_again_becomes_a_route(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, full_graph=False, strict=True, backend="eager")
    counts = []
    for total in SUMS[:4]:
        static(torch.full((2,), total / 2), Box(), io.StringIO())
        counts.append(len(_routes(static)))
    assert counts[0] == 0
    assert counts[-1] == len(static.plan.ends) > 0
    assert all(route.source.startswith("def route(values):") for route in _routes(static))


def test_a_loop_over_a_sequence_is_part_of_a_route() -> None:
    static = sg.to_static(three_texts, full_graph=False, strict=True, backend="eager")
    for _ in range(4):
        static(torch.full((2,), 1.5), Box(), io.StringIO())
    assert any("len(" in route.source for route in _routes(static))


def test_lists_of_texts_are_made_by_the_way() -> None:
    static = sg.to_static(three_texts, full_graph=False, strict=True, backend="eager")
    counts = []
    for total in (2.0, 3.0, 4.0, 5.0, 6.0):
        x = torch.full((2,), total)
        assert repr(static(x, Box(), io.StringIO())) == repr(three_texts(x, Box(), io.StringIO()))
        counts.append(len(static.programs))
    assert counts == [2] * 5  # the beginning, and what the loop computes
    info = static.cache_info()
    assert (info.hits, info.misses) == (13, 2)  # one for each step of the loop


def calls_a_global(x: Tensor) -> Tensor:
    note(x.sum().item())
    print("noted", file=io.StringIO())
    return x + len(LOG)


def test_a_global_that_is_exchanged_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    static = sg.to_static(calls_a_global, full_graph=False, strict=True, backend="eager")
    LOG.clear()
    for _ in range(3):
        static(torch.ones(2))
    seen = []
    monkeypatch.setitem(globals(), "print", lambda *args, **kwargs: seen.append(args))
    torch.testing.assert_close(static(torch.ones(2)), torch.ones(2) + len(LOG))
    assert seen == [("noted",)]


def looks(x: Tensor) -> tuple[Tensor, Any]:
    total = x.sum().item()
    print(total, file=io.StringIO())
    return x * 2, sorted(locals())


def test_a_function_that_looks_at_the_frame_sees_the_users() -> None:
    static = sg.to_static(looks, full_graph=False, strict=True, backend="eager")
    for _ in range(4):
        assert static(torch.ones(2))[1] == looks(torch.ones(2))[1] == ["total", "x"]
