"""What Python's arithmetic needs is required, and nothing where that is known before the run."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.passes.checks import CHECKED, hand_out_checks
from stillgraph.passes.loops.loop_tests import check_before_tests
from stillgraph.passes.numbers.arithmetic import check_arithmetic
from stillgraph.passes.numbers.number_errors import said_of
from stillgraph.passes.regions.regions import all_nodes
from stillgraph.program.operations import divisor, require
from stillgraph.program.program import Program
from stillgraph.program.verify import verify
from tests.cases.compare import assert_same
from tests.unit.passes.captured import run
from tests.unit.passes.test_single_passes import targets

X = torch.tensor([6.0, 2.0, 0.5])


def required(program: Program) -> list[str]:
    """The texts of what a program requires, in order."""
    return [str(node.args[1]) for node in all_nodes(program.graph) if node.target is require]


# ---- nothing to require
def collatz(x: Tensor) -> int:
    k, steps = x[0].long().item(), 0
    while k > 1:
        k = k // 2 if k % 2 == 0 else 3 * k + 1
        steps += 1
    return steps


def of_sizes(x: Tensor) -> list[Any]:
    return [len(x) / 2, 7 // len(x), 3 % x.shape[0]]


def of_nothing_negative(x: Tensor) -> list[float]:
    a, b = x[0].item(), x[1].item()
    total = (x * x).sum().item()
    return [
        *(math.sqrt(a * a + b * b), math.sqrt(x.norm().item()), math.sqrt(total), math.sqrt(abs(a))),
        *(a / (abs(b) + 1e-6), a / max(b, 1e-3), math.log(max(a, 1.0)), 1 / (x.norm().item() + 1)),
    ]


def of_whole_numbers(x: Tensor) -> list[Any]:
    k = x[0].long().item()
    return [int(k), round(k), math.floor(k), float(k), math.sin(k)]


def never_raising(x: Tensor) -> list[Any]:
    a, b = x[0].item(), x[1].item()
    return [a + b, a - b, a * b, -a, abs(a), math.atan2(a, b), math.tanh(a), math.isnan(a), max(a, b), a < b]


@pytest.mark.parametrize("function", [collatz, of_sizes, of_nothing_negative, of_whole_numbers, never_raising])
def test_what_cannot_fail_gets_no_node(function: Callable[..., Any]) -> None:
    program = sg.export(function, (X,))
    checked = check_arithmetic(program)
    assert len(list(all_nodes(checked.graph))) == len(list(all_nodes(program.graph)))
    assert required(checked) == []
    assert torch._assert_async not in targets(pipeline.run(program))


def test_constant_operands_need_nothing() -> None:
    def shrunk(x: Tensor) -> list[Any]:
        a, k = x[0].item(), x[1].long().item()
        return [a / 2, a // 2.5, a % 0.5, k / 2, k // -3, k % 7, k >> 1, k << 0, k**1, k**0, a**1, a**0, 0.5 ** abs(a)]

    program = sg.export(shrunk, (X,))
    assert len(list(all_nodes(check_arithmetic(program).graph))) == len(list(all_nodes(program.graph)))


def test_what_is_written_to_is_not_known() -> None:
    def shifted(x: Tensor) -> float:
        size = x.abs()
        size.sub_(5)
        return math.sqrt(size.sum().item())

    assert required(check_arithmetic(sg.export(shifted, (X,)))) == [said_of(math.sqrt, -1.0)]


def test_squares_of_whole_numbers_may_wrap_around() -> None:
    def rooted(x: Tensor) -> list[float]:
        return [math.sqrt((x * x).sum().item()), math.sqrt(x.abs().sum().item())]

    assert required(check_arithmetic(sg.export(rooted, (X.to(torch.int8),)))) == [said_of(math.sqrt, -1)] * 2
    assert required(check_arithmetic(sg.export(rooted, (X,)))) == []


# ---- what is required, in the order in which Python looks
def several(x: Tensor) -> Any:
    a, k = x[0].item(), x[1].long().item()
    return math.sqrt(a) / k + 7 // k + 2**k


def test_requirements_stand_in_pythons_order() -> None:
    checked = check_arithmetic(sg.export(several, (X,)))
    verify(checked)
    texts = required(checked)
    assert texts[:3] == [said_of(math.sqrt, -1.0), said_of(operator.truediv, 1.0, 0), said_of(operator.floordiv, 1, 0)]
    assert [text.partition(":")[0] for text in texts[3:]] == ["RuntimeError", "OverflowError"]
    assert sum(node.target is divisor for node in all_nodes(checked.graph)) == 1
    assert run(checked, (X,)) == [several(X)]
    lowered = pipeline.run(checked)
    for values, text in (([-1.0, 0.0], texts[0]), ([1.0, 0.0], texts[1]), ([1.0, -1.0], "negative power")):
        with pytest.raises(RuntimeError, match=text):
            run(lowered, (torch.tensor(values),))


def test_a_whole_number_of_a_tensor_is_required_to_be_one() -> None:
    def whole(x: Tensor) -> int:
        return int(x[0])

    of_half = required(check_arithmetic(sg.export(whole, (X.half(),))))
    assert of_half == [said_of(int, math.nan), said_of(int, math.inf)]  # which has no larger numbers
    assert len(required(check_arithmetic(sg.export(whole, (X,))))) == 3
    assert required(check_arithmetic(sg.export(whole, (X.long(),)))) == []


def test_an_index_is_required_to_be_in_range() -> None:
    def picked(x: Tensor) -> list[Any]:
        k = int(x[0].long())
        return [(1, 2)[k], (x, -x, x)[k], (1, 2, 3)[k % 3], (4, 5)[k > 1], (1, 2)[k % 3]]

    checked = check_arithmetic(sg.export(picked, (torch.tensor([1.0]),)))
    verify(checked)
    text = "IndexError: tuple index out of range"
    assert required(checked) == [text] * 3
    lowered = pipeline.run(checked)
    assert_same(run(lowered, (torch.tensor([1.0]),)), picked(torch.tensor([1.0])), "picked")
    for value in (2.0, -3.0):
        with pytest.raises(RuntimeError, match=text):
            run(lowered, (torch.tensor([value]),))


def test_a_constant_zero_fails() -> None:
    def never(x: Tensor) -> float:
        return int(x[0].long()) / 0

    lowered = pipeline.run(sg.export(never, (X,)))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run(lowered, (X,))


# ---- where
def in_an_arm(x: Tensor) -> Tensor:
    k = int(x[0].long())
    return x * (10 // k) if x.sum() > 0 else x


def in_a_loop(x: Tensor) -> tuple[int, float]:
    k, y = int(x[0].long()), 0.0
    while k > -3:
        k -= 1
        y = 6 / k
    return k, y


def in_the_condition(x: Tensor) -> int:
    k = int(x[0].long())
    while 12 // k > 2:
        k -= 2
    return k


def in_half_of_a_condition(x: Tensor) -> int:
    k = int(x[0].long())
    while k > 3 or 12 // k > 5:
        k -= 2
    return k


def raised_by_the_condition(x: Tensor) -> Tensor:
    def checked(y: Tensor) -> Tensor:
        if y.max() < 0:
            raise ValueError("below")
        return y.min() > 0

    while checked(x):
        x = x - 5
    return x


def taken(x: Tensor) -> tuple[float, bool]:
    k, a = int(x[0].long()), x[1].item()
    try:
        try:
            y, fine = 6 // k + math.sqrt(a), True
        except ZeroDivisionError:
            y, fine = -1.0, False
    except ValueError:
        y, fine = -2.0, False
    return y, fine


def taken_in_a_loop(x: Tensor) -> tuple[int, int]:
    k, failed, total = int(x[0].long()), 0, 0
    while k > -3:
        try:
            total += 6 // k
        except ArithmeticError:
            failed += 1
        k -= 1
    return failed, total


@pytest.mark.parametrize(
    "function",
    [in_an_arm, in_a_loop, in_the_condition, in_half_of_a_condition, raised_by_the_condition, taken, taken_in_a_loop],
)
def test_it_raises_where_python_does(function: Callable[..., Any]) -> None:
    program = sg.export(function, (X,))
    lowered = pipeline.run(program)
    verify(lowered)
    raised = 0
    for values in ([6.0, 2.0], [0.0, 2.0], [0.0, -2.0], [-2.0, 4.0], [7.0, -4.0], [1.0, 1.0], [3.0, 9.0], [-6.0, -2.0]):
        x = torch.tensor([*values, 0.5])
        try:
            want = function(x)
        except (ArithmeticError, ValueError) as error:
            raised += 1
            with pytest.raises(RuntimeError, match=f"{type(error).__name__}: {error}"):
                run(lowered, (x,))
        else:
            torch.testing.assert_close(run(lowered, (x,)), list(want) if isinstance(want, tuple) else [want])
    assert bool(raised) is (function not in (taken, taken_in_a_loop))


def test_no_handler_takes_what_python_does_not_raise() -> None:
    def caught(x: Tensor) -> float:
        k = int(x[0].long())
        try:
            y = float(3**k)
        except Exception:
            y = -1.0
        return y

    lowered = pipeline.run(sg.export(caught, (X,)))
    assert run(lowered, (X,)) == [729.0]
    for exponent in (-1.0, 100.0):
        with pytest.raises(RuntimeError, match=r"negative power|64 bits"):
            run(lowered, (X * 0 + exponent,))


# ---- conditions of loops
def test_a_condition_without_checks_is_left_alone() -> None:
    program = sg.export(collatz, (X,))
    assert check_before_tests(program) is program


def test_a_condition_that_raises_and_draws_is_refused() -> None:
    def drawn(x: Tensor) -> Tensor:
        while 7 // int(torch.rand(()) * 5) > x.sum():
            x = x + 1
        return x

    with pytest.raises(ExportError, match="the condition of a loop raises, and draws") as caught:
        pipeline.run(sg.export(drawn, (X,)))
    assert caught.value.reason.code == "SG402"


def test_each_is_a_check_of_its_own() -> None:
    def shares(x: Tensor) -> list[float]:
        k = int(x[0].long())
        return [1 / k, 7 % k]

    lowered, checks = hand_out_checks(pipeline.run(sg.export(shares, (X,)), CHECKED))
    names = [said_of(operator.truediv, 1, 0), said_of(operator.mod, 1, 0)]
    assert [check.name for check in checks] == names
    assert run(lowered, (X,))[-2:] == [True, True]
    assert run(lowered, (X * 0,))[-2:] == [False, True]


def test_operands_are_cut_off_a_text() -> None:
    def fails(value: float) -> None:
        raise ValueError(f"expected a positive input, got {value}")

    assert said_of(fails, 0.0) == "ValueError: expected a positive input"
    with pytest.raises(AssertionError, match="does not fail"):
        said_of(math.sqrt, 4.0)
