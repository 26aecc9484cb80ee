"""Texts, members of enumerations and other constants of which paths leave one: an index into a table of them."""

from __future__ import annotations

import contextlib
import copy
import enum
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same


class Mode(enum.Enum):
    A = 1
    B = 2
    C = 3


class Colour(enum.IntEnum):
    RED = 1
    GREEN = 2


class Level(enum.IntEnum):
    LOW = 1
    MID = 2
    HIGH = 3


class Planet(enum.Enum):
    EARTH = (1.0, 2.0)
    MARS = (3.0, 4.0)
    VENUS = (5.0, 6.0)

    def __init__(self, mass: float, radius: float) -> None:
        self.mass, self.radius = mass, radius

    @property
    def density(self) -> float:
        return self.mass / self.radius

    def scaled(self, x: Tensor, by: int = 1) -> Tensor:
        return x * self.mass if self is Planet.EARTH else x * by

    def __call__(self, x: Tensor) -> Tensor:
        return x + self.radius


class Signed(enum.Enum):
    NONE = 0
    ONE = 1
    TEXT = "text"

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls.NONE if isinstance(value, int) and value < 0 else None


INPUTS = [torch.tensor(values) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.5, 0.1, 0.1], [9.0, 9.0, -9.5])]
NUMBERS = {"a": 1, "b": 2}
FUNCTIONS = {"a": torch.sin, "b": torch.cos}


# ---- of branches
def used_in_any_way(x: Tensor) -> Any:
    s = "alpha" if x.sum() > 0 else "beta"
    if s.startswith("al"):
        x = x + 1
    print("status", s, f"<{s}>")
    filled = "is %s" % s, "is {}".format(s), "%s %r" % (s, s)  # noqa: UP031, UP032
    return x, s, f"{s}!", s + "x", s.upper(), filled, s[0], len(s), s > "b", s in ("beta", "c")


def asked_and_looked_up(x: Tensor) -> Any:
    s = "a" if x.sum() > 0 else "b"
    mode = Mode.A if s == "a" else Mode.B
    y = FUNCTIONS[s](x) * NUMBERS[s]
    match mode:
        case Mode.A:
            y = y + 1
        case _:
            y = y - 1
    return y, mode, mode.name, NUMBERS.get(s + "q", 7), mode is Mode.B, {"b": 1}.get(s)


def of_unlike_kinds(x: Tensor) -> Any:
    k = "none" if x.sum() > 0 else 3
    flag = True if x.max() > 1 else "auto"
    colour = Colour.RED if x.sum() > 0 else Colour.GREEN
    dtype = torch.float32 if x.sum() > 0 else torch.float64
    label = None if x.sum() > 0 else "low"
    return k, flag, x * colour, colour, colour + 1, colour == 1, x.to(dtype).sum(), dtype, label, isinstance(k, str)


def of_eight(x: Tensor) -> Any:
    v = x.sum()
    if v > 4:
        s = "a"
    elif v > 3:
        s = "b"
    elif v > 2:
        s = "c"
    elif v > 1:
        s = "d"
    elif v > 0:
        s = "e"
    elif v > -1:
        s = "f"
    elif v > -4:
        s = "g"
    else:
        s = "h"
    at = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8}
    return x * at[s], s, s + "!", s in ("g", "h")


def overwritten_in_turn(x: Tensor) -> Any:
    s = "a"
    if x.sum() > 0:
        s = "b"
    if x.max() > 1:
        s = s + "c"
    if x.min() < 0:
        s = s.upper()
    if x.mean() > 1:
        s = "z"
    return x, s


def given_to_torch(x: Tensor) -> Any:
    way = "sum" if x.sum() > 0 else "mean"
    y = F.pad(x[None, None], (1, 1), mode="constant" if way == "sum" else "reflect")
    z = x[None] + torch.zeros(2, 1)
    return y, F.l1_loss(x, x + 1, reduction=way), z.sum(dim=0 if way == "sum" else 1)


def mode_of(x: Tensor) -> Mode:
    return Mode.A if x.sum() > 3 else Mode.B if x.sum() > 0 else Mode.C


def level_of(x: Tensor) -> Level:
    return Level.LOW if x.sum() > 3 else Level.MID if x.sum() > 0 else Level.HIGH


def named_and_valued(x: Tensor) -> Any:
    m = mode_of(x)
    print(m.name, m, repr(m), f"{m!r}")
    named = m.name, m.name.lower(), m.name + "!", {"A": 1, "B": 2, "C": 3}[m.name]
    return named, x * m.value, m.value, type(m).__name__, isinstance(m, Mode)


def members_with_more(x: Tensor) -> Any:
    p = Planet.EARTH if x.sum() > 3 else Planet.MARS if x.sum() > 0 else Planet.VENUS
    return p.mass, p.density, p.scaled(x), p.scaled(x, by=2), p.value, p(x), p.name, p.radius * x


def as_indices(x: Tensor) -> Any:
    m, y, numbers = level_of(x), x.clone(), [1, 2, 3]
    y[:m] = 0
    y[..., m:] += 1
    numbers[:m] = [7, 8]
    del numbers[m:]
    grid = torch.arange(24.0).view(2, 3, 4)
    return x[:m], x[m - 1 :], x[m - 1], y, numbers, (1, 2, 3, 4)[m:], "abcd"[:m], grid[:, :m, 1:m], [1] * m


def as_keys_of_new_ones(x: Tensor) -> Any:
    m, s = mode_of(x), "a" if x.sum() > 0 else "b"
    base = {"A": 1, "q": 2}
    table = {("a", Mode.A): 1, ("a", Mode.B): 2}
    pairs = {(m, 1), (Mode.A, 1)}, {("q", m): m.value}, ("a", m) in table, table.get(("a", m), 7)
    made = {m: 1}, {m, Mode.A}, dict(zip([m, Mode.A], [s, x])), {k: k for k in [m]}, {s: x}, {m.name: m, "z": s}
    base.update({m.name: 7})
    return pairs, made, {**base, m.name: 5}, base


def members_by_value(x: Tensor) -> Any:
    n = int(x[0].clamp(0, 3))
    found = []
    for v in x.clamp(1, 3):
        found.append(Level(int(v)))
    try:
        mode = Mode(n)
    except ValueError:
        mode = Mode.C
    return found, mode, mode.name, Level(level_of(x) % 3 + 1), Level(level_of(x)), Mode[mode_of(x).name]


def members_by_missing_values(x: Tensor) -> Any:
    return Signed(int(x[0])).name, x


def members_in_turn(x: Tensor) -> Any:
    n = 0
    for m in Mode:
        if m is mode_of(x):
            break
        n += 10
    last = None
    for level in Level:
        if x.sum() > level:
            last = level
    return n, m, last, [each.value * x.sum() for each in Level], list(Mode), len(Mode)


def as_keys(x: Tensor) -> Any:
    s = "a" if x.sum() > 0 else "b"
    counts, seen = {"a": 0, "b": 0}, {"b"}
    counts[s] += 1
    seen.add(s)
    for v in x:
        counts["a" if v > 0 else "b"] += 1
    return counts, len(seen)


def with_values_of_the_run(x: Tensor) -> Any:
    s = "up" if x.sum() > 0 else "down"
    n = x.sum().item()
    print(f"{s:>6}: {n:.2f}")
    return f"{s}={n:.1f}", "%s %d" % (s, int(n))  # noqa: UP031


def in_errors(x: Tensor) -> Any:
    s = "high" if x.max() > 2 else "low"
    if x.sum() < -2:
        raise ValueError(f"state {s}", s)
    if x.max() >= 9:
        raise AssertionError(f"it is {s}")
    return x


# ---- of loops
def carried(x: Tensor) -> Any:
    status, n = "start", 0
    while status != "done":
        x, n = x + 1, n + 1
        status = "done" if x.sum() > 9 else "step"
    return x, status, n


def machine(x: Tensor) -> Any:
    state, n = Mode.A, 0
    while n < 9 and state is not Mode.C:
        n += 1
        match state:
            case Mode.A:
                x, state = x + 1, Mode.B
            case Mode.B:
                state = Mode.C if x.sum() > 9 else Mode.A
    return x, n, state


def last_seen(x: Tensor) -> Any:
    best, n = None, 0
    while n < x.abs().sum():
        n += 1
        if x.sum() > n:
            best = "big"
        elif x.sum() < -n:
            best = "low"
    return best, best is None


def set_in_the_loop_alone(x: Tensor) -> Any:
    n = 0
    while n < x.sum():
        n += 1
        s = "one" if n < 2 else "more"
    return s


def grown(x: Tensor) -> Any:
    s = ""
    while x.sum() < 5:
        x = x + 1
        s += "+" if x.sum() > 0 else "-"
    return s


def left_from_the_loop(x: Tensor) -> Any:
    n = 0
    while n < x.abs().sum():
        n += 1
        if x.sum() > 3:
            return Mode.A, x
        if n > 3:
            return 7, x + 1
    return None, x + 2


@dataclass
class Report:
    status: str = "start"
    runs: int = 0


def in_objects(x: Tensor) -> Any:
    report, info = Report(), {"status": "start"}
    while report.runs < 3 or info["status"] == "pos":
        report.runs += 1
        x = x - 1
        info["status"] = report.status = "pos" if x.sum() > 0 else "neg"
    return report, info


def listed(x: Tensor) -> Any:
    names = []
    while x.sum() < 5:
        x = x + 1
        names.append(("pos" if x.sum() > 0 else "neg", x.sum().item()))
    plain = [name for name, _ in names]
    n = 0
    for name in plain:
        n += 1 if name == "pos" else 10
    return names, n, "neg" in plain, "other" in plain, plain.count("pos"), plain[-1] if plain else "none"


FUNCTIONS_OF_PATHS = [
    *(used_in_any_way, asked_and_looked_up, of_unlike_kinds, of_eight, overwritten_in_turn, given_to_torch, as_keys),
    *(with_values_of_the_run, in_errors, carried, machine, last_seen, set_in_the_loop_alone, left_from_the_loop),
    *(in_objects, listed, named_and_valued, members_with_more, as_indices, as_keys_of_new_ones, members_by_value),
    *(members_by_missing_values, members_in_turn, grown),
]


def outcome(function: Callable[..., Any], x: Tensor) -> Any:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = function(x.clone())
        except (ValueError, AssertionError, UnboundLocalError) as error:
            result = type(error), error.args
    return result, printed.getvalue()


@pytest.mark.parametrize("function", FUNCTIONS_OF_PATHS, ids=lambda function: function.__name__)
def test_they_are_what_eager_gives(function: Callable[..., Any]) -> None:
    static = sg.to_static(function, backend="eager", full_graph=True)
    for x in INPUTS:
        expected, actual = outcome(function, x), outcome(static, x)
        assert expected[1] == actual[1]
        assert_same(expected[0], actual[0])


class Kept(nn.Module):
    """What a call leaves in attributes is what the next one begins with."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.status, self.seen = Mode.A, "new", []

    def forward(self, x: Tensor) -> Any:
        if self.state is Mode.A:
            self.state = Mode.B if x.sum() > 0 else Mode.A
        elif self.state is Mode.B:
            self.state = Mode.C if x.sum() < 0 else Mode.B
        else:
            self.state = Mode.A
        n = 0
        while n < 2:
            n += 1
            x = x + 1
            self.status = "pos" if x.sum() > 0 else "neg"
        self.seen.append(self.status)
        return x + self.state.value


def test_they_are_kept_in_attributes() -> None:
    eager = Kept()
    kept = copy.deepcopy(eager)
    static = sg.to_static(kept, backend="eager", full_graph=True)
    for x in (*INPUTS, *reversed(INPUTS)):
        assert torch.equal(eager(x), static(x))
        assert (eager.state, eager.status, eager.seen) == (kept.state, kept.status, kept.seen)


def test_bytes_that_grow_are_refused_by_name() -> None:
    @sg.to_static(backend="eager")
    def grow(x: Tensor) -> Any:
        s = b""
        while x.sum() < 5:
            x = x + 1
            s += b"+" if x.sum() > 0 else b"-"
        return s

    with pytest.raises(sg.CaptureError, match="an iteration makes other constants of those that it finds") as refused:
        grow(INPUTS[1])
    assert "SG205" in str(refused.value)


def test_what_was_asked_of_one_is_known_in_the_arm() -> None:
    def ask(x: Tensor) -> Any:
        s = "a"
        for v in x:
            s = {"a": "b", "b": "c", "c": "a"}[s] if v > 0 else s
        if s == "a":
            return x if s == "a" else "never"
        return x + 1 if s != "a" else "never"

    static = sg.to_static(ask, backend="eager", full_graph=True)
    for x in INPUTS:
        assert torch.equal(static(x), ask(x))
    (program,) = static.programs
    assert "never" not in str(program)
