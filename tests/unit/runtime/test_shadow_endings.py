"""The shadow check where a program does not come to its end: a loop that goes on for ever, a backend that raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, fx

import stillgraph as sg
from stillgraph.runtime.native import limits
from stillgraph.runtime.native.limits import EndlessProgram, LimitFor, Visits, limited
from stillgraph.runtime.native.native import lower
from tests.unit.runtime import checked
from tests.unit.runtime.checked import branched, line_of, looped, miscaptured


def zeros(module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    """A backend after which nothing ever changes."""

    def run(*given: Any) -> Any:
        return [torch.zeros_like(each) if each.is_floating_point() else each for each in module(*given)]

    return run


def test_a_loop_that_a_backend_makes_endless() -> None:
    static = sg.to_static(looped, backend=zeros)
    with pytest.raises(sg.CheckError) as raised:
        static.verify(torch.zeros(2), torch.tensor(30.0))
    line = line_of(looped, "while")
    text = str(raised.value)
    assert f"the program does not end: 'body' of the while at checked.py:{line} has begun 20" in text
    assert "the program as it is run differs from what it means: 'add' in 'body' of the while" in text


@pytest.mark.slow
def test_a_loop_that_the_capture_makes_endless() -> None:
    def counting(x: Tensor) -> Tensor:
        while x < 3:
            x = torch.square(x) + 1
        return x

    static = miscaptured(counting, torch.square, torch.zeros_like)
    with pytest.raises(sg.CheckError) as raised:
        static.verify(torch.zeros(()))
    assert "the program does not end: 'body' of the while" in str(raised.value)
    assert "the capture is not what the function does" in str(raised.value)


def test_long_loops_are_none_that_do_not_end() -> None:
    def long(x: Tensor) -> Tensor:
        n = 0
        while x < 1000:
            x = x + 1
            n += 1
        return x + n

    sg.to_static(long, backend="eager", check=1)(torch.tensor(0.0))


def test_the_limit_follows_what_eager_runs() -> None:
    def lines() -> None:
        for _ in range(100):
            pass

    counted = LimitFor()
    with counted:
        lines()
    assert limits.AT_FIRST + 2000 < counted.limit < limits.AT_FIRST + 2200


def test_a_limited_driver_ends_and_the_driver_itself_does_not() -> None:
    program = sg.to_static(looped, backend="eager").get_program(torch.zeros(2), torch.tensor(30.0))
    driver = lower(program, None).run
    lower_visits = driver.visits
    inputs = (torch.zeros(2), torch.tensor(30.0))
    with pytest.raises(EndlessProgram) as raised:
        limited(driver, 4)(*inputs)
    assert raised.value.args == (2, 3)
    assert lower_visits == [0, 0, 0]
    assert torch.equal(limited(driver, 99)(*inputs)[0], driver(*inputs)[0])
    assert Visits(2, 1) == [0, 0]


def failing(module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    raise NotImplementedError(f"no lowering\n{module.graph}")


def failing_later(module: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    def run(*given: Any) -> Any:
        raise NotImplementedError("no kernel " + "x" * 500)

    return run


def test_a_backend_that_does_not_compile() -> None:
    with pytest.raises(sg.CheckError) as raised:
        sg.to_static(branched, backend=failing).verify(torch.ones(3))
    text = str(raised.value)
    assert "the program raises NotImplementedError: no lowering, eager returns" in text
    place = f"'mul' at checked.py:{line_of(branched, 'x * 2')}"
    assert f"the backend fails on the region that begins with {place}: NotImplementedError: no lowering" in text
    assert "placeholder" not in text
    assert raised.value.location is not None
    assert raised.value.location.file == checked.__file__


def test_a_region_that_fails_when_it_runs() -> None:
    with pytest.raises(sg.CheckError) as raised:
        sg.to_static(branched, backend=failing_later).verify(torch.ones(3))
    text = str(raised.value)
    assert "the backend fails on the region that begins with 'mul' at checked.py" in text
    assert "x" * 200 not in text
