# mypy: disable-error-code="return-value"
"""What handlers ask of an exception that Python's own operation on a number of the run raises."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import through_bytecode
from tests.unit.trace.agreement import agree, outcome, same_error

X = torch.tensor([1.0, 2.0, 3.0])
NUMBERS = [torch.tensor(each) for each in (2, 0, -1, 1, 7)]

Told = tuple[Tensor, str, tuple[Any, ...], str]


def handled(operation: Callable[[int], Any], x: Tensor, n: Tensor) -> Told:
    try:
        factor = operation(int(n))
    except Exception as e:
        return x + 1, type(e).__name__, e.args, str(e)
    return x * factor, "", (), ""


OPERATIONS: dict[str, Callable[[int], Any]] = {
    "division": lambda n: 1 / n,
    "division of floats": lambda n: 1.0 / n,
    "whole division": lambda n: 5 // n,
    "remainder": lambda n: 5 % n,
    "both": lambda n: divmod(5, n)[0],
    "power": lambda n: (n - 1) ** (n - 2) + 0,
    "left": lambda n: n << n,
    "right": lambda n: 8 >> n,
    "root": lambda n: math.sqrt(n),
    "logarithm": lambda n: math.log(n),
    "exponential": lambda n: math.exp(n * 400),
    "rounding": lambda n: int(n * math.inf) if n == 2 else int(n * math.nan),
    "list": lambda n: [1.5, 2.5, 3.5][n],
    "tuple": lambda n: (1.5, 2.5, 3.5)[n],
    "several": lambda n: [1.0, 2.0][n] / n + math.sqrt(n),
    "known text": lambda n: float("x") if n > 0 else 1.0,
    "text of paths": lambda n: float("2.5" if n > 1 else "y"),
    "known number": lambda n: math.sqrt(-1.0) if n > 0 else 1.0,
    "missing": lambda n: ["a", "b"].index("c" if n > 1 else "b"),
    "encoding": lambda n: len("é".encode("ascii" if n > 0 else "utf-8")),
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", OPERATIONS)
def test_as_in_eager(name: str, order: int) -> None:
    operation = OPERATIONS[name]

    def function(x: Tensor, n: Tensor) -> Told:
        return handled(operation, x, n)

    calls = [(X, n) for n in NUMBERS][::order]
    agree(function, *calls)
    with through_bytecode():
        agree(function, *calls)


@pytest.mark.parametrize("name", OPERATIONS)
def test_without_a_full_graph(name: str) -> None:
    operation = OPERATIONS[name]
    static = sg.to_static(handled, backend="eager", full_graph=False)
    for n in NUMBERS:
        assert outcome(static, (operation, X, n))["value"][1:] == handled(operation, X, n)[1:]


# ---- what a handler does with it
def shown(x: Tensor, n: Tensor) -> Tensor:
    try:
        return x * (1 // int(n))
    except ArithmeticError as e:
        print(type(e).__name__, e.args, e, repr(e))
    return x


def raised_from_it(x: Tensor, n: Tensor) -> Tensor:
    try:
        return x * [1.0, 2.0][int(n)]
    except LookupError as e:
        raise RuntimeError(f"{type(e).__name__}: {e.args[0]}") from e


def told_in_a_loop(x: Tensor, n: Tensor) -> tuple[Tensor, list[str]]:
    told = []
    for i in range(3):
        try:
            x = x + 1 / (int(n) - i)
            told.append("fine")
        except Exception as e:
            told.append(type(e).__name__)
    return x, told


def kept_in_a_variable(x: Tensor, n: Tensor) -> tuple[Tensor, str | None]:
    error = None
    try:
        factor = math.log(n.item())
    except ValueError as e:
        error, factor = type(e).__name__, 0.0
    return x * factor, error


def other_handlers(x: Tensor, n: Tensor) -> tuple[Tensor, str]:
    try:
        try:
            return x * (1 / int(n)) * [1.0, 2.0, 3.0][int(n)], "fine"
        except ZeroDivisionError as e:
            return x, f"divided: {e}"
    except IndexError as e:
        return x - 1, f"outside: {e}"


def not_handled(x: Tensor, n: Tensor) -> tuple[Tensor, str]:
    try:
        return x * (1 / int(n)), "fine"
    except ValueError as e:
        return x, str(e)


@pytest.mark.parametrize(
    "function", [shown, raised_from_it, told_in_a_loop, kept_in_a_variable, other_handlers, not_handled]
)
def test_uses(function: Any) -> None:
    agree(function, *((X, n) for n in NUMBERS))
    with through_bytecode():
        agree(function, *((X, n) for n in NUMBERS[::-1]))


def test_the_cause_is_the_error_itself() -> None:
    static = sg.to_static(raised_from_it, backend="eager")
    for n in (NUMBERS[0], NUMBERS[4]):
        with pytest.raises(RuntimeError) as raised:
            static(X, n)
        with pytest.raises(RuntimeError) as expected:
            raised_from_it(X, n)
        assert same_error(expected.value.__cause__, raised.value.__cause__)


def test_in_a_file(tmp_path: Path) -> None:
    def function(x: Tensor, n: Tensor) -> Told:
        return handled(OPERATIONS["division"], x, n)

    sg.save(sg.to_static(function, backend="eager"), str(tmp_path / "f.py"), args=(X, NUMBERS[0]))
    spec = importlib.util.spec_from_file_location("saved", tmp_path / "f.py")
    assert spec is not None
    assert spec.loader is not None
    saved = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(saved)
    for n in NUMBERS:
        assert saved.function(X, n)[1:] == function(X, n)[1:]
