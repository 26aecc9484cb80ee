"""Files of programs that call functions of `math` on numbers of the run, of which torch has no operation."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.front_ends import bytecode  # noqa: F401  # a fixture

INF, NAN = math.inf, math.nan
FLOATS = [(1.5, 2.0), (-1.5, -2.0), (0.0, 0.0), (-0.0, 3.0), (27.0, 3.0), (-3.0, 2.0), (5.0, 1.0)]
FLOATS += [(7.5, -5.0), (2.5, 1.0), (INF, 1.0), (1.0, INF), (-INF, -INF), (NAN, 2.0), (2.0, NAN), (1e308, 1e-308)]
FLOATS += [(5e-324, 0.5), (1.0, 1.0 + 1e-10)]
WHOLE = [(12, 18), (-4, 6), (0, 0), (0, -7), (1, 5), (2**62, 2**61), (2**63 - 1, 3), (3037000499**2, 1), (99, 2)]


def angles(x: Tensor) -> Any:
    return math.degrees(float(x[0])), math.radians(float(x[0]))


def logarithm(x: Tensor) -> Any:
    return math.log(float(x[0]), float(x[1]))


def logarithm_of_two(x: Tensor) -> Any:
    return math.log(float(x[0]), 2), math.log(8, float(x[1]))


def remainder(x: Tensor) -> Any:
    return math.remainder(float(x[0]), float(x[1]))


def cube_root(x: Tensor) -> Any:
    return math.cbrt(float(x[0])), math.cbrt(float(x[1]))


def neighbours(x: Tensor) -> Any:
    a, b = float(x[0]), float(x[1])
    return math.ulp(a), math.ulp(b), math.nextafter(a, b), math.nextafter(b, 0.0)


def near(x: Tensor) -> Any:
    a, b = float(x[0]), float(x[1])
    return math.isclose(a, b), math.isclose(a, a), math.isclose(b, 1.0)


def length(x: Tensor) -> Any:
    return math.hypot(float(x[0]), float(x[1]), 2.0), math.hypot(float(x[0]))


def divisors(x: Tensor) -> Any:
    a, b = int(x[0]), int(x[1])
    return math.gcd(a, b), math.gcd(a, b, 12), math.gcd(a), math.lcm(a % 1000, b % 1000), math.lcm(b)


def whole_root(x: Tensor) -> Any:
    return math.isqrt(int(x[0])), math.isqrt(int(x[0]) - 1)


OF_FLOATS = [angles, logarithm, logarithm_of_two, remainder, cube_root, neighbours, near, length]
CASES = [(function, torch.float64, FLOATS) for function in OF_FLOATS]
CASES += [(function, torch.int64, WHOLE) for function in (divisors, whole_root)]


def outcome(function: Callable[..., Any], x: Tensor) -> Any:
    try:
        return function(x)
    except (ValueError, ArithmeticError) as error:
        return error


def assert_alike(function: Callable[..., Any], loaded: Callable[..., Any], x: Tensor) -> None:
    expected, found = outcome(function, x), outcome(loaded, x)
    if isinstance(expected, Exception):
        assert (type(found), str(found)) == (type(expected), str(expected).partition(", got ")[0])
        return
    pairs = zip(expected, found, strict=True) if isinstance(expected, tuple) else [(expected, found)]
    for one, other in pairs:
        assert type(one) is type(other)
        assert one == other or repr(one) == repr(other) or math.isclose(one, other, rel_tol=1e-15), (x, expected, found)
        assert math.copysign(1.0, one) == math.copysign(1.0, other) or one != one


@pytest.mark.parametrize(("function", "dtype", "calls"), CASES, ids=lambda each: getattr(each, "__name__", ""))
def test_functions_give_and_raise_what_pythons_do(
    function: Callable[..., Any], dtype: torch.dtype, calls: list[Any], tmp_path: Path
) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(torch.tensor([3, 2], dtype=dtype),))
    loaded = sg.load(tmp_path / "program.pt2")
    for call in calls:
        assert_alike(function, loaded, torch.tensor(call, dtype=dtype))


@pytest.mark.usefixtures("bytecode")
@pytest.mark.parametrize("function", [logarithm, remainder])
def test_through_bytecode(function: Callable[..., Any], tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.pt2", args=(torch.tensor([3.0, 2.0]),))
    loaded = sg.load(tmp_path / "program.pt2")
    for call in FLOATS:
        assert_alike(function, loaded, torch.tensor(call))


def handled(x: Tensor) -> Any:
    try:
        found = math.log(float(x[0]), float(x[1]))
    except ValueError:
        found = -1.0
    except ZeroDivisionError:
        found = -2.0
    return found


def test_what_they_raise_reaches_handlers(tmp_path: Path) -> None:
    sg.save(handled, tmp_path / "program.pt2", args=(torch.tensor([3.0, 2.0], dtype=torch.float64),))
    loaded = sg.load(tmp_path / "program.pt2")
    for call in FLOATS:
        assert_alike(handled, loaded, torch.tensor(call, dtype=torch.float64))


# ---- refusals
def gamma(x: Tensor) -> Any:
    return math.gamma(float(x[0]))


def factorial(x: Tensor) -> Any:
    return math.factorial(int(x[0]))


def comb(x: Tensor) -> Any:
    return math.comb(int(x[0]), 2)


def ldexp(x: Tensor) -> Any:
    return math.ldexp(float(x[0]), int(x[1]))


@pytest.mark.parametrize("function", [gamma, factorial, comb, ldexp], ids=lambda each: each.__name__)
def test_others_are_refused_by_name(function: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match=f"{function.__name__} on numbers that only the run knows") as raised:
        sg.save(function, tmp_path / "program.pt2", args=(torch.tensor([3.0, 2.0]),))
    assert raised.value.reason.code == "SG402"
