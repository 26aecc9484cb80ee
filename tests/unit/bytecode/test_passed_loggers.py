"""Loggers, and other objects that a capture does not look into, as arguments: they are handed on as they are."""
from __future__ import annotations

import contextlib
import functools
import io
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import stillgraph as sg
from tests.unit.bytecode.segmented import to_partial

Log = Any
Told = list[tuple[str, str]]


class Noting(logging.Handler):
    """Keeps who has said what."""

    def __init__(self) -> None:
        super().__init__()
        self.told: Told = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append((record.name, record.getMessage()))


@pytest.fixture
def noting() -> Iterator[Noting]:
    handler = Noting()
    for name in ("passed.one", "passed.other"):
        log = logging.getLogger(name)
        log.setLevel(logging.INFO)
        log.addHandler(handler)
    yield handler
    for name in ("passed.one", "passed.other"):
        logging.getLogger(name).removeHandler(handler)


class Holder:
    def __init__(self, log: Log) -> None:
        self.log = log


def after(x: Any, log: Log) -> Any:
    x = x + 1
    print("a")
    log.info("after")
    return x * 2, log.name


def before_and_after(x: Any, log: Log) -> Any:
    log.info("before")
    y = x * 2
    print("a", y.sum().item())
    log.info("after %s", y.sum().item())
    return y + 1, log.name


def in_a_branch(x: Any, log: Log) -> Any:
    if x.sum() > 0:
        log.info("positive")
        x = x * 2
    else:
        x = x * 3
    print("a")
    log.info("after")
    return x, log.name


def by_an_inner_function(x: Any, log: Log) -> Any:
    def tell() -> None:
        log.info("inner")

    print("a")
    tell()
    return x * 2, log.name


def in_an_object(x: Any, log: Log) -> Any:
    holder = Holder(log)
    print("a")
    holder.log.info("held")
    return x * 2, holder.log.name


def returned(x: Any, log: Log) -> Any:
    print("a")
    return x * 2, log.name, log


def behind_stars(x: Any, *logs: Log) -> Any:
    print("a")
    logs[0].info("stars")
    return x * 2, logs[0].name


def by_name(x: Any, log: Log) -> Any:
    return _by_names(x, log=log)


def _by_names(x: Any, **named: Log) -> Any:
    x = x - 1
    print("a")
    named["log"].info("named")
    return x * 2, named["log"].name


FUNCTIONS = [
    *(after, before_and_after, in_a_branch, by_an_inner_function, in_an_object, returned, behind_stars, by_name),
    functools.partial(after),
]


def same(given: Log) -> Log:
    return given


def adapter(given: Log) -> Log:
    class Named(logging.LoggerAdapter):
        @property
        def name(self) -> str:
            return str(self.logger.name)

    return Named(given, {})


@pytest.mark.parametrize("wrap", [same, adapter])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_logger_is_an_argument(function: Callable[..., Any], wrap: Callable[[Log], Log], noting: Noting) -> None:
    made: list[tuple[Any, Told]] = []
    logs = [wrap(logging.getLogger(name)) for name in ("passed.one", "passed.other")]
    for each in (function, to_partial(function)):
        results = []
        noting.told = []
        with contextlib.redirect_stdout(io.StringIO()):
            for sign, log in ((1, 0), (-1, 0), (1, 1), (-1, 1), (1, 0)):
                value, *rest = each(torch.ones(3) * sign, logs[log])
                results.append((value.tolist(), rest))
        made.append((results, noting.told))
    assert made[0] == made[1]


def test_adapters_of_each_call_make_no_program_each(noting: Noting) -> None:
    static = to_partial(in_a_branch)
    with contextlib.redirect_stdout(io.StringIO()):
        for _ in range(30):
            static(torch.ones(3), logging.LoggerAdapter(logging.getLogger("passed.one"), {}))
    assert static.explain().gave_up is None
    assert len(noting.told) == 60


def test_a_logger_in_what_is_passed(noting: Noting) -> None:
    def step(x: Any, holder: Holder) -> Any:
        log = holder.log
        print("a")
        log.info("taken")
        holder.log.info("asked for")
        return x * 2

    static = to_partial(step)
    with contextlib.redirect_stdout(io.StringIO()):
        for name in ("passed.one", "passed.other", "passed.one"):
            assert static(torch.ones(2), Holder(logging.getLogger(name))).tolist() == [2, 2]
    names = [name for name, _ in noting.told]
    assert names == ["passed.one"] * 2 + ["passed.other"] * 2 + ["passed.one"] * 2


def test_a_logger_of_a_module(noting: Noting) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.log = logging.getLogger("passed.one")

        def forward(self, x: Any) -> Any:
            log = self.log
            y = x * 2
            print("a")
            log.info("taken")
            self.log.info("asked for")
            return y + 1

    model = Model()
    static = to_partial(model)
    with contextlib.redirect_stdout(io.StringIO()):
        assert static(torch.ones(2)).tolist() == [3, 3]
        model.log = logging.getLogger("passed.other")
        assert static(torch.ones(2)).tolist() == [3, 3]
    assert [name for name, _ in noting.told] == ["passed.one"] * 2 + ["passed.other"] * 2


def test_one_program_returns_the_logger_that_it_was_given() -> None:
    static = sg.to_static(lambda x, log: (x * 2, log), backend="eager")
    for name in ("passed.one", "passed.other", "passed.one"):
        log = logging.getLogger(name)
        assert static(torch.ones(2), log)[1] is log
