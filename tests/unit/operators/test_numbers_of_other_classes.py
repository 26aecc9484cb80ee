"""Numbers that only the run knows beside numbers of other classes: enums, derived classes, numpy's, fractions."""

from __future__ import annotations

import decimal
import enum
import fractions
import unittest.mock
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor

import stillgraph as sg
from tests.unit.trace.agreement import agree


class Mode(enum.IntEnum):
    TRAIN = 1
    EVAL = 2


class Flags(enum.IntFlag):
    READ = 1
    WRITE = 2


class Whole(int):
    pass


class Real(float):
    pass


class Own(int):
    """Has operators of its own, as Python asks them: before those of an int on the left."""

    def __radd__(self, other: Any) -> Any:
        return ("radd", other)

    def __rmul__(self, other: Any) -> Any:
        return ("rmul", other)

    def __add__(self, other: Any) -> Any:
        return int.__add__(self, other) * 10

    def __sub__(self, other: Any) -> Any:
        return super().__sub__(other) * 10

    def __eq__(self, other: object) -> Any:
        return int.__eq__(self, other) and "equal"  # type: ignore[operator]

    def __lt__(self, other: Any) -> Any:
        return NotImplemented

    __hash__ = int.__hash__


class OwnReal(float):
    def __rmul__(self, other: Any) -> Any:
        return ("rmul", other)

    def __eq__(self, other: object) -> Any:
        return "asked"

    __hash__ = float.__hash__


OWN, OWN_REAL = Own(1), OwnReal(1.0)
LIKE_ONE = (Mode.TRAIN, Flags.READ, Whole(1), Real(1.0), True)
EXACT = (1 + 0j, 1 + 1j, fractions.Fraction(1), fractions.Fraction(1, 2), decimal.Decimal(1), decimal.Decimal("0.5"))
SCALARS = (numpy.int64(1), numpy.uint8(7), numpy.float64(1.0), numpy.True_, numpy.float64(0.5))


def compared(m: Tensor) -> Any:
    n, given = int(m), []
    for c in LIKE_ONE:
        given += [n == c, c == n, n != c, c != n, n < c, c < n, n >= c, m == c, float(n) == c, bool(n == 1) == c]
    return given


def computed_with(m: Tensor) -> Any:
    n, given = int(m), []
    for c in (Mode.EVAL, Whole(2), Real(2.0), True):
        given += [n + c, c + n, n * c, n - c, c - n, n / c, n // c, n % c, n**c, float(n) * c, divmod(n, c)]
        given += [max(n, int(c)), m + c]
    return given, n & Mode.EVAL, n << Whole(2), round(float(n) / 3, Whole(1))


def looked_for(m: Tensor) -> Any:
    n = int(m)
    found = [n in (c, 7) for c in LIKE_ONE] + [n in [7, c] for c in EXACT + SCALARS]
    found += [n == c for c in EXACT] + [c != n for c in EXACT] + [float(n) == fractions.Fraction(1, 2)]
    found += [float(n) in (c,) for c in SCALARS[1:]] + [bool(n == 1) in (numpy.True_,)]
    found += [n in list(Mode), n in set(Mode), n in dict.fromkeys(Mode), m in [torch.tensor(1), 7], n in ("a", None, 2)]
    places = [7, Mode.TRAIN, "a", Mode.EVAL].index(n), (4, Mode.EVAL, 1).index(n), [n, 2].index(2)
    return found, places, (Mode.TRAIN, 1, True, 1.0, 3).count(n)


def of_containers(m: Tensor) -> Any:
    n = int(m)
    pairs = (n, 3) == (Mode.TRAIN, 3), (n,) != (fractions.Fraction(1),)
    return pairs, [n] == [numpy.int64(1)], {"a": n} == {"a": Whole(1)}


def by_key(m: Tensor) -> Any:
    table = {Mode.TRAIN: 10, Mode.EVAL: 20}
    return table[int(m)], table.get(int(m) + 5, "none"), {Whole(1): 1.5, 2.0: 2.5}[int(m)]


def matched(m: Tensor) -> Any:
    match int(m):
        case Mode.TRAIN:
            return "train"
        case Mode.EVAL:
            return "eval"
    return None


def of_own_methods(m: Tensor) -> Any:
    n, given = int(m), [m * OWN, m + OWN, m - OWN, m * OWN_REAL]
    given += [n + OWN, n * OWN, OWN + n, OWN - n, n - OWN, float(m) * OWN, float(m) + OWN, bool(m == 1) * OWN]
    given += [n * OWN_REAL, float(m) * OWN_REAL, n == OWN_REAL, float(n) == OWN_REAL, float(n) == OWN]
    return given, n == OWN, OWN == n, n > OWN  # noqa: SIM300  # either may be asked first


def by_name(m: Tensor) -> Any:
    n = int(m)
    given = [(5).__add__(n), (5).__rsub__(n), int.__mul__(5, n), int.__eq__(1, n), (1.5).__le__(n), int.__add__(n, 4)]
    return given, (5).__add__(float(n)), (5).__eq__(float(n)), float.__radd__(2.5, n), n.__lt__(Whole(2))


def flags(m: Tensor) -> Any:
    n = int(m)
    kept = n & Flags.READ
    told = "read" if n & Flags.READ else "not"
    return kept, Flags.WRITE | n, Flags.READ ^ n, told, isinstance(kept, Flags), isinstance(kept, int), int(kept) + 1


def beside_numpys_scalars(m: Tensor) -> Any:
    n, x = int(m), float(m) / 10
    given = [n == numpy.int64(1), numpy.int64(2) != n, x < numpy.float32(0.1), x == numpy.float64(0.1)]
    return given, n in [numpy.float32(0.1)], x in [numpy.float32(0.1)], x in (numpy.float64(0.1),)


EVERY = (
    *(compared, beside_numpys_scalars, computed_with, looked_for, of_containers, by_key, matched, of_own_methods),
    *(by_name, flags),
)


@pytest.mark.parametrize("function", EVERY)
def test_as_in_eager(function: Any) -> None:
    agree(function, (torch.tensor(1),), (torch.tensor(2),))


@pytest.mark.parametrize("function", EVERY)
def test_without_a_full_graph(function: Any) -> None:
    traced = sg.symbolic_trace(function)
    for value in (1, 2):
        given = torch.tensor(value)
        assert repr(traced(given)) == repr(function(given))


@pytest.mark.parametrize("other", [Mode.EVAL, numpy.int64(2), Whole(2), fractions.Fraction(2)])
def test_open_sizes(other: Any) -> None:
    def double(x: Tensor) -> Any:
        picked = x[x > 0]
        size = x.shape[0] in (other, 9)
        return (x * 2 if size else x), x.shape[0] in [other], len(picked) in (other,), (x > 0).sum().item() in {2}

    static = sg.to_static(double, backend="eager", input_spec=[sg.InputSpec([None])], full_graph=True)
    for size in (2, 3, 4):
        given = torch.ones(size)
        assert repr(static(given)) == repr(double(given))
    assert len(static.programs) == 1


REFUSED = (
    lambda n: n == unittest.mock.ANY,
    lambda n: n < decimal.Decimal(1),
    lambda n: n + fractions.Fraction(1),
    lambda n: float(n) == decimal.Decimal(1),
    lambda n: (n & Flags.READ).name,
    lambda n: type(n & Flags.READ),
)


@pytest.mark.parametrize("index", range(len(REFUSED)))
def test_refused_and_no_answer_of_pythons(index: int) -> None:
    function = REFUSED[index]
    with pytest.raises(sg.CaptureError) as refused:
        sg.to_static(lambda m: function(int(m)), backend="eager", full_graph=True)(torch.tensor(1))
    assert refused.value.reason.code in ("SG301", "SG202")
    traced = sg.symbolic_trace(lambda m: function(int(m)))
    for value in (1, 2):
        assert repr(traced(torch.tensor(value))) == repr(function(value))


@pytest.mark.parametrize("format", ["pt2", "py"])
def test_in_files(format: str, tmp_path: Any) -> None:
    def doubled(x: Tensor, m: Tensor) -> Tensor:
        return x * 2 if m.item() == Mode.TRAIN else x + (m.item() + Mode.EVAL)

    path = tmp_path / f"doubled.{format}"
    sg.save(doubled, path, args=(torch.ones(2), torch.tensor(1)))
    if format == "py":
        namespace: dict[str, Any] = {}
        exec(path.read_text(), namespace)
        loaded = namespace["doubled"]
    else:
        loaded = sg.load(path)
    for value in (1, 2):
        given = (torch.ones(2), torch.tensor(value))
        assert torch.equal(loaded(*given), doubled(*given))


NAN = float("nan")


def found_in(x: Tensor, v: float) -> Tensor:
    return x + 1 if v in (NAN,) else x * 10


def found_as_a_key(x: Tensor, v: float) -> Tensor:
    return x + 1 if v in {NAN: 1} else x * 10


@pytest.mark.parametrize("function", [found_in, found_as_a_key], ids=lambda function: function.__name__)
def test_nan_is_found_by_identity_after_the_number_has_changed(function: Any) -> None:
    static, x = sg.to_static(function, backend="eager"), torch.ones(())
    for value in (1.0, 2.0, 3.0, NAN, float("nan"), 4.0, NAN):
        assert torch.equal(static(x, value), function(x, value))


def of_which_class(m: Tensor) -> Any:
    kept = int(m) & Flags.READ
    asked = isinstance(kept, Flags), isinstance(kept, enum.Flag), isinstance(kept, (str, Flags)), isinstance(kept, str)
    return asked, isinstance(kept, int), isinstance(kept, Flags | None)


def test_a_number_of_the_run_may_be_of_a_class_derived_from_pythons() -> None:
    static = sg.to_static(of_which_class, backend="eager")
    for value in (1, 2):
        assert static(torch.tensor(value)) == of_which_class(torch.tensor(value))
