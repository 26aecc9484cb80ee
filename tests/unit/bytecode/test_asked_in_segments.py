"""Functions with a cache, and loggers: programs ask them where that does nothing, and end before them where it does."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.unit.bytecode.segmented import CALLS, Record, agrees

XS = [torch.arange(4.0) - 1, torch.arange(4.0), torch.arange(6.0) - 3, torch.arange(4.0) * 2]


def static_of(function: Callable[..., Any]) -> Any:
    return sg.to_static(function, full_graph=False, strict=True, backend="eager")


# ---- caches
def positions(maxsize: int | None, made: list[int]) -> Any:
    @functools.lru_cache(maxsize)
    def found(width: int, scale: float = 1.0) -> Tensor:
        made.append(width)
        return torch.arange(width) * scale

    return found


def story_of_a_cache(make_static: Callable[..., Any], maxsize: int | None) -> Any:
    made: list[int] = []
    positions_of = positions(maxsize, made)
    kept = []

    def f(x: Tensor) -> Tensor:
        kept.append(positions_of(x.shape[0], scale=2.0))
        return x * kept[-1] + positions_of(3).sum()

    g = make_static(f)
    results = [g(x) for x in (*XS, *XS)]
    assert positions_of.cache_info().maxsize == maxsize
    return [each.tolist() for each in results], [sum(each is other for other in kept) for each in kept], g


@pytest.mark.parametrize("maxsize", [None, 128, 1, 0])
def test_what_a_cache_gives_is_one_object(maxsize: int | None) -> None:
    found, same, _ = story_of_a_cache(static_of, maxsize)
    expected, expected_same, _ = story_of_a_cache(lambda f: f, maxsize)
    assert (found, same) == (expected, expected_same)


@functools.lru_cache
def frequencies(length: int, width: int) -> Tensor:
    return torch.outer(torch.arange(length).float(), torch.arange(width).float())


@functools.cache
def parsed(pattern: str) -> tuple[list[str], ...]:
    return tuple(side.split() for side in pattern.split("->"))


class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    @functools.lru_cache(8)  # noqa: B019 (that is how they are written)
    def scale(self, n: int) -> int:
        return n * 2

    def forward(self, x: Tensor) -> Tensor:
        left, right = parsed("a b -> b a")
        y = self.linear(x) * frequencies(x.shape[0], 3) * self.scale(3)
        return y.permute([left.index(each) for each in right])


def test_a_helper_with_a_cache_does_not_end_a_program() -> None:
    torch.manual_seed(0)
    model = Rotary()
    static = sg.to_static(model, full_graph=False, strict=True, backend="eager", dynamic=False)
    for shape in ((2, 3), (2, 3), (4, 3)):
        x = torch.randn(shape)
        assert torch.equal(static(x), model(x))
    assert static.forward.explain().breaks == ()


def test_a_helper_with_a_cache_that_is_given_a_size_is_pythons() -> None:
    torch.manual_seed(0)
    model = Rotary()
    static = sg.to_static(model, full_graph=False, strict=True, backend="eager")
    for rows in (2, 3, 4, 5, 6, 7):
        x = torch.randn(rows, 3)
        assert torch.equal(static(x), model(x))
    assert static.forward.cache_info().programs == 6  # two of each segment


def test_what_a_cached_function_does_is_done_once() -> None:
    def story(make_static: Callable[..., Any]) -> Any:
        seen: list[Any] = []

        @functools.cache
        def table(n: int) -> int:
            print("table", n)
            seen.append(n)
            return n * 2

        g = make_static(lambda x: x * table(2) + table(len(x)))
        return [g(x).tolist() for x in XS], seen

    assert story(static_of) == story(lambda f: f)


def test_a_cache_that_is_cleared_is_asked_anew() -> None:
    def story(make_static: Callable[..., Any]) -> Any:
        factor = [1]

        @functools.cache
        def scale(n: int) -> int:
            return n * factor[0]

        g = make_static(lambda x: x * scale(2))
        found = [g(XS[0]).tolist()]
        factor[0] = 5
        found.append(g(XS[0]).tolist())
        scale.cache_clear()
        return [*found, g(XS[0]).tolist()]

    assert story(static_of) == story(lambda f: f)


def test_a_cache_that_a_value_of_the_run_is_put_into_is_pythons() -> None:
    @functools.cache
    def twice(n: float) -> float:
        return n * 2

    static = static_of(lambda x: x * twice(x.sum().item()))
    for x in XS:
        assert torch.equal(static(x), x * (x.sum().item() * 2))
    (told,) = static.explain().breaks
    assert told.reason == "twice has a cache, which only Python may fill"
    assert twice.cache_info().currsize == len({x.sum().item() for x in XS})


# ---- loggers
LOG = logging.getLogger(__name__)


def logs(x: Tensor) -> Tensor:
    if LOG.isEnabledFor(logging.DEBUG):
        LOG.debug("shape %s", tuple(x.shape))
    y = x * 2
    LOG.info("mean %.2f", y.mean().item())
    return y + 1


def test_a_log_that_nobody_reads_does_not_end_a_program(caplog: pytest.LogCaptureFixture) -> None:
    static = static_of(logs)
    caplog.set_level(logging.WARNING)
    for x in XS:
        assert torch.equal(static(x), logs(x))
    assert static.explain().breaks == ()
    assert not caplog.records


@pytest.mark.parametrize("levels", [(40, 20, 10, 40), (10, 40, 20, 10), (40, 40, 20, 20)])
def test_what_is_logged_follows_the_level(levels: tuple[int, ...], caplog: pytest.LogCaptureFixture) -> None:
    def told(function: Callable[[Tensor], Tensor]) -> Any:
        caplog.clear()
        found = []
        for x, level in zip(XS, levels, strict=True):
            LOG.setLevel(level)
            found.append(function(x).tolist())
        return found, [(each.levelname, each.getMessage(), each.lineno) for each in caplog.records]

    try:
        assert told(static_of(logs)) == told(logs)
    finally:
        LOG.setLevel(logging.NOTSET)


def test_a_log_that_somebody_reads_is_pythons_for_that_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    static = static_of(logs)
    static(XS[0])
    assert [each.reason for each in static.explain().breaks] == ["info does something outside the program"]


@pytest.mark.parametrize("full_graph", [False, True])
def test_what_a_cached_function_writes_it_writes_when_it_is_asked_first(full_graph: bool) -> None:
    def story(make_static: Callable[..., Any]) -> Any:
        seen: list[int] = []
        count = [0]

        @functools.cache
        def known(n: int) -> int:
            seen.append(n)
            count[0] += 1
            return n * 2

        def f(x: Tensor) -> Tensor:
            known(2)
            return x * 2

        g = make_static(f)
        return [(g(x).tolist(), list(seen), list(count)) for x in XS]

    options: Any = {} if full_graph else {"strict": True}
    assert story(lambda f: sg.to_static(f, full_graph=full_graph, backend="eager", **options)) == story(lambda f: f)


def test_a_cache_behind_what_the_program_does() -> None:
    """It is Python's: the guard would ask before the writes and draws that stand in front of the call."""

    def make(record: Record) -> Any:
        settings = {"n": 1}

        @functools.lru_cache
        def mask(n: int) -> Any:
            return torch.ones(n) * settings["n"]

        @functools.lru_cache
        def drawn(n: int) -> Any:
            return torch.rand(n)

        def f(x: Any) -> Any:
            settings["n"] += 1
            if settings["n"] == 4:
                mask.cache_clear()
                drawn.cache_clear()
            settings["m"] = x.sum().item()
            y = torch.rand(2)
            return x[:2] * mask(2) + drawn(2) + y

        return f

    agrees(make, *CALLS, settled=99)
