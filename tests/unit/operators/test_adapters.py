"""Adapters of loggers that the captured call makes: what their ``process`` says is the user's."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg

P, N = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])
LOG = logging.getLogger("stillgraph.tests.adapters")
Adapter: Any = logging.LoggerAdapter  # generic in the stubs alone


class Prefixed(Adapter):  # type: ignore[misc]  # as above
    def process(self, msg: Any, kwargs: Any) -> Any:
        return f"[{self.extra['id']}] {msg}", kwargs


class Counting(Adapter):  # type: ignore[misc]
    count = 0

    def process(self, msg: Any, kwargs: Any) -> Any:
        self.count += 1
        return f"{self.count} {msg}", kwargs


class Own(Adapter):  # type: ignore[misc]
    def info(self, msg: Any, *args: Any) -> None:
        self.logger.info("own " + msg, *args)

    def log(self, level: Any, msg: Any, *args: Any) -> None:
        self.logger.log(level, "logged " + msg, *args)


OUTER = Prefixed(LOG, {"id": 1})


def by_process(x: Tensor) -> Any:
    Prefixed(LOG, {"id": x.max().item()}).info("v")
    Prefixed(LOG, {"id": 3}).warning("v %s", x.max().item())
    return x


def by_extra(x: Tensor) -> Any:
    logging.LoggerAdapter(LOG, {"id": x.max().item()}).info("v %s", 2)
    return x


def counted(x: Tensor) -> Any:
    adapter = Counting(LOG, {})
    adapter.info("a")
    adapter.debug("b")
    adapter.error("c %s", x.sum().item())
    return adapter.count, x


def by_methods_of_its_own(x: Tensor) -> Any:
    Own(LOG, {"id": x.max().item()}).info("v %s", x.max().item())
    Own(LOG, {"id": x.max().item()}).warning("v %s", x.max().item())
    return x


def one_in_another(x: Tensor) -> Any:
    adapter = Prefixed(Prefixed(LOG, {"id": x.max().item()}), {"id": 4})
    adapter.info("v")
    adapter.log(logging.WARNING, "w")
    return x, adapter.isEnabledFor(logging.INFO), adapter.getEffectiveLevel()


def in_arms(x: Tensor) -> Any:
    adapter = Prefixed(LOG, {"id": x.max().item()})
    if x.sum() > 0:
        adapter.info("up")
    else:
        adapter.info("down")
    return x


def from_outside(x: Tensor) -> Any:
    OUTER.extra = {"id": x.sum().item()}
    OUTER.info("v")
    return x


def of_a_stack(x: Tensor) -> Any:
    Prefixed(LOG, {"id": x.max().item()}).exception("v")
    return x


FUNCTIONS = [by_process, by_extra, counted, by_methods_of_its_own, one_in_another, in_arms, from_outside]
Said = Callable[[Callable[..., Any], Tensor], Any]


@pytest.fixture
def said() -> Iterator[Said]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(funcName)s %(lineno)d %(message)s"))
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    LOG.propagate = False

    def of(function: Callable[..., Any], x: Tensor) -> Any:
        result = function(x.clone())
        logged = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return str(result), logged

    yield of
    LOG.removeHandler(handler)


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_logged(function: Any, full_graph: bool, said: Said) -> None:
    static = sg.to_static(function, backend="eager", full_graph=full_graph)
    for x in (P, N, P + 1):
        assert said(static, x) == said(function, x)
    assert len(static.programs) == 1 or not full_graph or function is from_outside  # its state is guarded
    LOG.setLevel(logging.ERROR)  # the method that processes is not called where nothing is said
    assert said(static, P) == said(function, P)


def test_a_stack_is_refused() -> None:
    with pytest.raises(sg.CaptureError, match="shows the stack of the call"):
        sg.to_static(of_a_stack, backend="eager")(P)
