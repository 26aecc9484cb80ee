"""A `weakref.proxy` and the object behind it are one: what is written by one is read by the other."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch

import stillgraph as sg
from tests.unit.bytecode.segmented import agrees


class Meter:
    def __init__(self) -> None:
        self.count, self.total = 0, torch.zeros(3)
        self.writer = Writer(weakref.proxy(self))

    @property
    def mean(self) -> Any:
        return self.total / self.count

    def add(self, x: Any) -> None:
        self.total = self.total + x
        if x.sum() > 0:
            self.count += 1
        else:
            self.count += 2


class Writer:
    def __init__(self, meter: Any) -> None:
        self.meter = meter
        self.scale = 2


def read_behind(meter: Meter, x: Any) -> Any:
    meter.count += 1
    return x * meter.writer.meter.count


def written_in_front(meter: Meter, x: Any) -> Any:
    meter.writer.meter.count += 1
    return x * meter.count


def written_on_one_path(meter: Meter, x: Any) -> Any:
    if x.sum() > 0:
        meter.writer.meter.total = x
        meter.count = 3
    else:
        meter.total = -x
        meter.writer.meter.count = 5
    return meter.total + meter.writer.meter.total, meter.count, meter.writer.meter.count


def by_methods(meter: Meter, x: Any) -> Any:
    meter.writer.meter.add(x)
    meter.add(x)
    return meter.writer.meter.mean + meter.mean


def removed(meter: Meter, x: Any) -> Any:
    meter.writer.meter.extra = x
    del meter.writer.meter.extra
    return hasattr(meter, "extra"), x + 1


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("function", [read_behind, written_in_front, written_on_one_path, by_methods, removed])
def test_as_in_eager(function: Any, full: bool) -> None:
    def make(record: Any) -> Any:
        meter = Meter()

        def f(x: Any) -> Any:
            value = function(meter, x)
            record((meter.count, meter.total))
            return value

        def g(x: Any) -> Any:
            return function(meter, x)

        return g if full else f

    x = torch.tensor([1.0, 2.0, 3.0])
    agrees(make, (x,), (-x,), (x * 2,), full_graph=full, strict=not full, settled=3)


@pytest.mark.parametrize("full", [True, False])
def test_one_whose_object_is_gone_is_no_hindrance(full: bool) -> None:
    writer = Meter().writer

    def f(x: Any) -> Any:
        return x * writer.scale

    def g(x: Any) -> Any:
        writer.scale += 1
        return x * writer.scale

    for function in (f, g):
        static = sg.to_static(function, backend="eager", full_graph=full)
        for _ in range(3):
            before = writer.scale
            expected = function(torch.ones(2))
            writer.scale = before
            torch.testing.assert_close(static(torch.ones(2)), expected)
