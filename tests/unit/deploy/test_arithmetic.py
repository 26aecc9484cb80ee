"""Arithmetic on Python numbers in files: what raises in Python raises in the file, what does not gives the same."""

from __future__ import annotations

import importlib.util
import math
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.passes.numbers.number_errors import said_of

Function = Callable[[Any, Any], Any]

ON_INTS: dict[str, tuple[Function, list[tuple[int, int]]]] = {
    "truediv": (operator.truediv, [(7, 0), (0, 0), (7, 2), (-7, 2)]),
    "one_over": (lambda a, b: 1 / b, [(0, 0), (0, 4)]),
    "floordiv": (operator.floordiv, [(7, 0), (7, 2), (-7, 2), (7, -2)]),
    "mod": (operator.mod, [(7, 0), (7, 2), (-7, 2), (7, -2)]),
    "seven_mod": (lambda a, b: 7 % b, [(0, 0), (0, 4)]),
    "half": (lambda a, b: a // 2, [(7, 0), (-7, 0)]),
    "by_float": (lambda a, b: a // 2.5 + 1.0 / b, [(7, 0), (7, 2)]),
    "pow": (operator.pow, [(0, -1), (3, 4), (-3, 3), (0, 0), (-2, 63), (7, 22)]),
    "two_to": (lambda a, b: 2**b, [(0, 0), (0, 62)]),
    "to_minus_two": (lambda a, b: a**-2, [(0, 0), (-3, 0), (3, 0)]),
    "squared": (lambda a, b: a**2, [(-5, 0), (3037000499, 0)]),
    "cubed": (lambda a, b: a**3, [(-5, 0), (-2097152, 0)]),
    "lshift": (operator.lshift, [(1, -1), (0, -1), (3, 4), (-3, 4), (0, 99), (1, 62), (-1, 63)]),
    "one_shifted": (lambda a, b: 1 << b, [(0, -1), (0, 0), (0, 62)]),
    "shifted_by_three": (lambda a, b: a << 3, [(5, 0), (-5, 0), (2**59, 0)]),
    "rshift": (operator.rshift, [(1, -1), (9, 2), (-9, 2), (9, 99)]),
    "sqrt": (lambda a, b: math.sqrt(a), [(-1, 0), (0, 0), (9, 0)]),
    "log": (lambda a, b: math.log(a), [(0, 0), (-1, 0), (3, 0)]),
    "log2": (lambda a, b: math.log2(a), [(0, 0), (8, 0)]),
    "exp": (lambda a, b: math.exp(a), [(1000, 0), (-1000, 0), (2, 0)]),
    "float_to_int": (lambda a, b: 0.5**a * 2.0**b, [(1, 2000), (-2000, 1), (-3, 2)]),
    "first_of_two": (lambda a, b: math.sqrt(a) / b, [(-1, 0), (1, 0), (4, 2)]),
    "divided_sum": (lambda a, b: 10 // (a // b), [(1, 0), (1, 2), (4, 2)]),
}
"""By name: a function of two whole numbers, and operands for some of which it raises."""

INF, NAN = math.inf, math.nan
ON_FLOATS: dict[str, tuple[Function, list[tuple[float, float]]]] = {
    "truediv": (operator.truediv, [(1.0, 0.0), (NAN, 0.0), (1.0, -0.0), (1.0, NAN), (3.0, 2.0)]),
    "floordiv": (operator.floordiv, [(1.0, 0.0), (7.5, 2.0), (-7.5, 2.0)]),
    "mod": (operator.mod, [(1.0, 0.0), (7.5, 2.0), (-7.5, 2.0)]),
    "pow": (operator.pow, [(0.0, -1.0), (1e200, 2.0), (0.5, -2000.0), (0.5, 2000.0), (2.0, 0.5), (-8.0, 3.0)]),
    "pow_of_special": (operator.pow, [(0.0, -INF), (INF, 2.0), (2.0, INF), (-INF, 0.5), (NAN, 0.5), (1.0, NAN)]),
    "math_pow": (math.pow, [(0.0, -1.0), (-8.0, 0.5), (1e200, 2.0), (0.0, -INF), (-8.0, 3.0), (-INF, 0.5), (2.0, 0.5)]),
    "squared": (lambda a, b: a**2, [(1e200, 0.0), (-3.0, 0.0), (INF, 0.0), (NAN, 0.0)]),
    "root": (lambda a, b: a**0.5, [(4.0, 0.0), (0.0, 0.0), (INF, 0.0)]),
    "inverse": (lambda a, b: a**-1, [(0.0, 0.0), (4.0, 0.0), (INF, 0.0), (5e-324, 0.0)]),
    "int": (lambda a, b: int(a), [(NAN, 0.0), (INF, 0.0), (-INF, 0.0), (-2.5, 0.0), (2.0**62, 0.0), (-(2.0**63), 0.0)]),
    "round": (lambda a, b: round(a), [(NAN, 0.0), (INF, 0.0), (2.5, 0.0)]),
    "floor": (lambda a, b: math.floor(a), [(NAN, 0.0), (INF, 0.0), (-2.5, 0.0)]),
    "ceil": (lambda a, b: math.ceil(a), [(NAN, 0.0), (-INF, 0.0), (-2.5, 0.0)]),
    "trunc": (lambda a, b: math.trunc(a), [(NAN, 0.0), (-INF, 0.0), (-2.5, 0.0)]),
    "sqrt": (lambda a, b: math.sqrt(a), [(-1.0, 0.0), (-INF, 0.0), (-0.0, 0.0), (NAN, 0.0), (INF, 0.0), (2.0, 0.0)]),
    "log": (lambda a, b: math.log(a), [(0.0, 0.0), (-1.0, 0.0), (INF, 0.0), (NAN, 0.0), (2.0, 0.0)]),
    "log2": (lambda a, b: math.log2(a), [(0.0, 0.0), (2.0, 0.0)]),
    "log10": (lambda a, b: math.log10(a), [(-1.0, 0.0), (2.0, 0.0)]),
    "log1p": (lambda a, b: math.log1p(a), [(-1.0, 0.0), (-2.0, 0.0), (-0.5, 0.0)]),
    "acos": (lambda a, b: math.acos(a), [(2.0, 0.0), (-2.0, 0.0), (1.0, 0.0), (NAN, 0.0)]),
    "asin": (lambda a, b: math.asin(a), [(2.0, 0.0), (0.5, 0.0)]),
    "acosh": (lambda a, b: math.acosh(a), [(0.5, 0.0), (1.0, 0.0), (INF, 0.0)]),
    "atanh": (lambda a, b: math.atanh(a), [(1.0, 0.0), (-1.0, 0.0), (2.0, 0.0), (0.5, 0.0)]),
    "sin": (lambda a, b: math.sin(a), [(INF, 0.0), (NAN, 0.0), (0.5, 0.0)]),
    "cos": (lambda a, b: math.cos(a), [(-INF, 0.0), (0.5, 0.0)]),
    "tan": (lambda a, b: math.tan(a), [(INF, 0.0), (0.5, 0.0)]),
    "exp": (lambda a, b: math.exp(a), [(1000.0, 0.0), (-1000.0, 0.0), (INF, 0.0), (-INF, 0.0), (NAN, 0.0), (0.5, 0.0)]),
    "exp2": (lambda a, b: math.exp2(a), [(2000.0, 0.0), (0.5, 0.0)]),
    "expm1": (lambda a, b: math.expm1(a), [(1000.0, 0.0), (0.5, 0.0)]),
    "sinh": (lambda a, b: math.sinh(a), [(-1000.0, 0.0), (0.5, 0.0)]),
    "cosh": (lambda a, b: math.cosh(a), [(-1000.0, 0.0), (0.5, 0.0)]),
    "fmod": (math.fmod, [(1.0, 0.0), (INF, 2.0), (INF, NAN), (NAN, 0.0), (7.5, 2.0), (-7.5, 2.0)]),
    "atan2": (math.atan2, [(0.0, 0.0), (1.0, 2.0)]),
}

NO_KERNEL = ("acos", "asin", "acosh", "atanh", "tan", "sinh", "cosh", "atan2")
"""What onnxruntime has no kernel for in double precision."""
IN_ONNX = {name: entry for name, entry in ON_FLOATS.items() if name not in NO_KERNEL}

LIMITS: list[tuple[type, str, tuple[Any, Any], type[Exception], str]] = [
    (int, "pow", (-3, -2), RuntimeError, "negative power"),
    (int, "pow", (3, 41), OverflowError, "64 bits"),
    (int, "pow", (2, 63), OverflowError, "64 bits"),
    (int, "pow", (10, 400), OverflowError, "64 bits"),
    (int, "two_to", (0, 63), OverflowError, "64 bits"),
    (int, "two_to", (0, -1), RuntimeError, "negative power"),
    (int, "squared", (3037000500, 0), OverflowError, "64 bits"),
    (int, "cubed", (-2097153, 0), OverflowError, "64 bits"),
    (int, "lshift", (1, 63), OverflowError, "64 bits"),
    (int, "lshift", (5, 64), OverflowError, "64 bits"),
    (int, "one_shifted", (0, 63), OverflowError, "64 bits"),
    (int, "shifted_by_three", (2**60, 0), OverflowError, "64 bits"),
    (float, "pow", (-8.0, 0.5), RuntimeError, "complex"),
    (float, "root", (-8.0, 0.0), RuntimeError, "complex"),
    (float, "int", (1e300, 0.0), OverflowError, "64 bits"),
    (float, "floor", (2.0**63, 0.0), OverflowError, "64 bits"),
]
"""What Python has numbers for and a file has not: an error."""


def on_ints(which: Tensor, left: Tensor, right: Tensor) -> float:
    a, b = left.item(), right.item()
    y = 0.0
    for index, (function, _) in enumerate(ON_INTS.values()):
        if which == index:
            y = function(a, b) * 1.0
    return y


def on_floats(which: Tensor, left: Tensor, right: Tensor) -> float:
    a, b = left.item(), right.item()
    y = 0.0
    for index, (function, _) in enumerate(ON_FLOATS.values()):
        if which == index:
            y = function(a, b) * 1.0
    return y


def on_floats_in_onnx(which: Tensor, left: Tensor, right: Tensor) -> float:
    a, b = left.item(), right.item()
    y = 0.0
    for index, (function, _) in enumerate(IN_ONNX.values()):
        if which == index:
            y = function(a, b) * 1.0
    return y


TABLES: dict[type, tuple[Function, dict[str, Any], torch.dtype]] = {
    int: (on_ints, ON_INTS, torch.int64),
    float: (on_floats, ON_FLOATS, torch.float64),
}


def _picking(table: dict[str, tuple[Function, Any]]) -> Function:
    def picks(which: Tensor, left: Tensor, right: Tensor) -> float:
        a, b = left.item(), right.item()
        y = 0.0
        for index, (function, _) in enumerate(table.values()):
            if which == index:
                y = function(a, b) * 1.0
        return y

    return picks


def _few(kind: type, *names: str) -> tuple[Function, dict[str, Any], torch.dtype]:
    """What the fast suite saves of a table: each operation takes half a second."""
    _, table, dtype = TABLES[kind]
    chosen = {name: table[name] for name in names}
    return _picking(chosen), chosen, dtype


_LIMITED = ("pow", "two_to", "squared", "cubed", "lshift", "one_shifted", "shifted_by_three")
FEW_TABLES = {
    int: _few(int, *_LIMITED, "floordiv", "sqrt"),
    float: _few(float, "pow", "root", "int", "floor", "truediv", "exp"),
}
ONNX_TABLES = {int: TABLES[int], float: (on_floats_in_onnx, IN_ONNX, torch.float64)}


def _arguments(kind: type, name: str, pair: tuple[Any, Any], tables: dict[type, Any] = TABLES) -> tuple[Tensor, ...]:
    _, table, dtype = tables[kind]
    return (torch.tensor(list(table).index(name)), *(torch.tensor(value, dtype=dtype) for value in pair))


def _call(function: Any, args: tuple[Any, ...]) -> Any:
    """What a call gives, or type and text of what it raises."""
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def _save(folder: Path, suffix: str, tables: dict[type, Any] = TABLES) -> dict[type, Path]:
    made = {}
    for kind, (function, _, dtype) in tables.items():
        made[kind] = folder / f"on_{kind.__name__}{suffix}"
        args = (torch.tensor(0), torch.tensor(3, dtype=dtype), torch.tensor(2, dtype=dtype))
        sg.save(function, made[kind], args=args)
    return made


def _loaded(path: Path) -> Any:
    if path.suffix != ".py":
        return sg.load(path, native=True) if path.name.endswith(".aoti.pt2") else sg.load(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, path.stem + "s")


def _check(got: Any, want: Any, case: Any, says_which: bool = True) -> None:
    if not isinstance(want, tuple):
        assert not isinstance(got, tuple), f"{case}: {got} instead of {want}"
        # ONNX's logarithms of other bases are made of a constant in single precision
        same = math.isclose(got, want, rel_tol=1e-12 if says_which else 1e-7) or (math.isnan(got) and math.isnan(want))
        assert same, f"{case}: {got} instead of {want}"
    elif says_which:
        assert got == want, case
    else:
        assert isinstance(got, tuple), f"{case}: {got} instead of {want}"


@pytest.fixture(scope="module")
def pt2(tmp_path_factory: pytest.TempPathFactory) -> dict[type, Any]:
    return {kind: _loaded(path) for kind, path in _save(tmp_path_factory.mktemp("pt2"), ".pt2").items()}


@pytest.fixture(scope="module")
def few_pt2(tmp_path_factory: pytest.TempPathFactory) -> dict[type, Any]:
    return {kind: _loaded(path) for kind, path in _save(tmp_path_factory.mktemp("few"), ".pt2", FEW_TABLES).items()}


def _compare(loaded: dict[type, Any], kind: type, name: str, tables: dict[type, Any]) -> None:
    function, table, _ = tables[kind]
    for pair in table[name][1]:
        args = _arguments(kind, name, pair, tables)
        _check(_call(loaded[kind], args), _call(function, args), (name, pair))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in TABLES for name in TABLES[kind][1]], ids=str)
def test_a_file_raises_what_python_raises(pt2: dict[type, Any], kind: type, name: str) -> None:
    _compare(pt2, kind, name, TABLES)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FEW_TABLES for name in FEW_TABLES[kind][1]])
def test_a_file_of_a_few_raises_what_python_raises(few_pt2: dict[type, Any], kind: type, name: str) -> None:
    _compare(few_pt2, kind, name, FEW_TABLES)


@pytest.mark.parametrize(("kind", "name", "pair", "error", "text"), LIMITS)
def test_what_a_file_has_no_number_for(
    few_pt2: dict[type, Any], kind: type, name: str, pair: tuple[Any, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        few_pt2[kind](*_arguments(kind, name, pair, FEW_TABLES))


def test_the_poles_of_lgamma(tmp_path: Path) -> None:
    def lgamma(x: Tensor) -> float:
        return math.lgamma(x.item())

    sg.save(lgamma, tmp_path / "lgamma.pt2", args=(torch.tensor(2.0, dtype=torch.float64),))
    loaded = sg.load(tmp_path / "lgamma.pt2")
    for value in (0.0, -3.0, 1e308, -INF, -0.5, 4.0, NAN):
        x = torch.tensor(value, dtype=torch.float64)
        _check(_call(loaded, (x,)), _call(lgamma, (x,)), value)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".onnx", ".py", ".aoti.pt2"])
def test_in_other_formats(suffix: str, tmp_path: Path) -> None:
    onnx = suffix == ".onnx"
    tables: dict[type, Any] = ONNX_TABLES if onnx else TABLES
    loaded = {kind: _loaded(path) for kind, path in _save(tmp_path, suffix, tables).items()}
    for kind, (function, table, _) in tables.items():
        for name, (_, pairs) in table.items():
            for pair in pairs:
                args = _arguments(kind, name, pair, tables)
                _check(_call(loaded[kind], args), _call(function, args), (suffix, kind, name, pair), not onnx)
    for kind, name, pair, error, _ in LIMITS if suffix != ".py" else ():
        got = _call(loaded[kind], _arguments(kind, name, pair, tables))
        assert got[0] == ("RuntimeError" if onnx else error.__name__), (suffix, name, pair)


def shares(x: Tensor) -> tuple[float, int]:
    k, y = int(x[0]), 0
    while k < 3:
        y += 6 // (k - 1)
        k += 1
    return 1 / (k - 5), y


def test_each_may_be_a_result(tmp_path: Path) -> None:
    sg.save(shares, tmp_path / "shares.pt2", args=(torch.tensor([2.0]),), assertions="return")
    loaded = sg.load(tmp_path / "shares.pt2")
    assert loaded.checks[0] == said_of(int, math.nan)
    assert loaded.checks[-2:] == (said_of(operator.floordiv, 1, 0), said_of(operator.truediv, 1, 0))
    for value in (2.0, 1.0, -1.0, 5.0, NAN, INF, 7.0):
        x = torch.tensor([value])
        want = _call(shares, (x,))
        got = _call(loaded, (x,))
        assert got == want
        *_, checks = loaded.module(x)
        failed = [name for name, flag in checks.items() if not flag]
        assert failed == ([": ".join(want)] if isinstance(want[0], str) else [])


def test_without_assertions_it_raises_still(tmp_path: Path) -> None:
    sg.save(shares, tmp_path / "shares.pt2", args=(torch.tensor([2.0]),), assertions="drop")
    with pytest.raises(ZeroDivisionError):
        sg.load(tmp_path / "shares.pt2")(torch.tensor([5.0]))


def settled(x: Tensor) -> int:
    k, a = int(x[0]), x[1].item()
    while 12 // k > math.sqrt(a):
        k -= 2
    return k


@pytest.mark.parametrize("suffix", [".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
def test_what_a_condition_raises(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"condition{suffix}"
    sg.save(settled, path, args=(torch.tensor([6.0, 1.0]),))
    loaded = sg.load(path)
    for values in ([6.0, 1.0], [5.0, 1.0], [0.0, 1.0], [5.0, -1.0], [0.0, -1.0], [4.0, 16.0]):
        x = torch.tensor(values)
        _check(_call(loaded, (x,)), _call(settled, (x,)), values, suffix != ".onnx")
