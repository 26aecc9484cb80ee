"""Generated programs that change elements of lists and dicts whose lengths only the run knows, by one name or another.

Compared with eager: the numbers read on the way, and what the lists, the elements that variables have, and a dict hold.
"""

from __future__ import annotations

import contextlib
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.front_ends import through_bytecode
from tests.property.programs import Draw
from tests.property.test_aliases import indented
from tests.property.test_programs import folder, load

__all__ = ["folder"]  # the fixture

FEW, MANY = 8, 60
REFUSED = {"SG203", "SG205", "SG210", "SG211", "SG305"}

PREAMBLE = """
class Box:
    def __init__(self, held):
        self.held, self.kids = held, [held]

    def __len__(self):
        return len(self.kids)

    def __getitem__(self, index):
        return self.held + self.kids[index]

    def __setitem__(self, index, value):
        self.held = value

    def append(self, value):
        self.kids.append(value)


def shown(rows):
    return [(row[0], row[-1], len(row)) for row in rows]


def touch(rows, index, value):
    rows[index].append(value)
    return len(rows[index])


def both_grown(row):
    same = row
    if isinstance(row, list):
        row *= 2
    return same


def both(row, rows, index):
    rows[index][0] = row[-1] + 1
    return row[0] * 10 + rows[index][0]
"""
LISTS = ("m = [[i, i * 2] for i in range(n)]", "[{v}, {w}]", "list({r})", "[list(row) for row in m]")
BOXES = ("m = [Box(i) for i in range(n)]", "Box({v})", "Box({r}[0])", "[Box(row[0]) for row in m]")

INDICES = ("0", "-1", "n - 1", "p", "p", "j", "j", "(j + 1) % n")
LINES = (
    "{r} = {m}[{i}]",
    "{r} = {m}[{i}]",
    "{r}.append({v})",
    "{r}[0] = {v}",
    "{r} = both_grown({r})",
    "{m}[{i}].append({v})",
    "{m}[{i}][0] = {v}",
    "{m}[{i}][0] += {v} + j",
    "{m}[{i}][0] = {m}[{h}][-1] + {r}[0]",
    "k = m",
    "k = list(m)",
    "k = m[1:] + m[:1]",
    "k = {copied}",
    "k = []",
    "k.append({m}[{i}])",
    "k.append({m}[{i}])",
    "if k: {r} = k[-1]",
    "{m}.append({new})",
    "{m}.append({again})",
    "{m}.append({r})",
    "{m}[{i}] = {new}",
    "{m}[{i}] = {r}",
    "{m}.reverse()",
    "s = s + {r}[0] + len({r})",
    "s = s + {m}[{i}][-1] + len({m}[{h}])",
    "s = s + touch({m}, {i}, {v})",
    "s = s + both({r}, {m}, {i})",
    "s = s + both({m}[{h}], {m}, {i})",
    "d.setdefault({i} % 2, []).append({v})",
    "if {i} in d: d[{i}][0] = {v}",
    "s = s + sum(len(each) for each in d.values())",
)


def block(draw: Draw, kind: tuple[str, ...], depth: int, most: int) -> list[str]:
    """Lines of a program; a block in two more holds no other."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, most))):
        shape = draw(st.sampled_from(("line", "line", "line", "if", "else", "each", "times", "leave")))
        drawn = {name: draw(st.sampled_from(INDICES)) for name in "ih"}
        drawn |= {"m": draw(st.sampled_from("mmk")), "r": draw(st.sampled_from("rq"))}
        drawn |= {name: str(draw(st.integers(0, 5))) for name in "vw"}
        made = dict(zip(("new", "again", "copied"), (each.format(**drawn) for each in kind[1:])))
        if shape == "line" or depth > 1 or (shape == "leave" and depth == 0):
            lines.append(draw(st.sampled_from(LINES)).format(**drawn, **made))
        elif shape == "leave":
            lines.append("if s > 20: return s, shown(m)")
        elif shape in ("if", "else"):
            lines += ["if x[{v}] > {w} - 2:".format(**drawn | {"v": int(drawn["v"]) % 4})]
            lines += indented(block(draw, kind, depth + 1, 2))
            lines += ["else:", *indented(block(draw, kind, depth + 1, 2))] if shape == "else" else []
        elif shape == "times":
            lines += ["for j in range(p + 1):", *indented(block(draw, kind, depth + 1, 3))]
        else:
            ends = "if len({m}) > 12: break".format(**drawn)  # a loop over what it makes longer has no end else
            lines += ["for {r} in {m}:".format(**drawn), *indented([ends, *block(draw, kind, depth + 1, 2)])]
    return lines


@st.composite
def programs(draw: Draw) -> str:
    """The source text of a module with one function, ``program(x)``."""
    kind = draw(st.sampled_from((LISTS, LISTS, BOXES)))
    begin = ["n = int(x[0])", "p = int(x[1]) % n", "s, j, d = 0, 0, {}", kind[0], "k, r, q = m, m[0], m[p]"]
    end = "return s, shown(m), shown(k), (r[0], r[-1], len(r)), (q[0], q[-1], len(q)), d"
    ends = ("return s, shown(m)", "return s, shown(k), shown(m)", "return s, shown(m), r[0], len(q)", end)
    lines = [*begin, *block(draw, kind, 0, 6), draw(st.sampled_from(ends))]
    return "\n".join(["import torch", PREAMBLE, "", "def program(x):", *indented(lines), ""])


CALLS = [torch.tensor(each) for each in ([3, 1, -2, 4], [1, 0, 5, -3], [2, 5, 0, 0], [4, 2, 3, 2])]


def outcome(function: Any, x: torch.Tensor) -> Any:
    """What a call gives; or why it is refused."""
    try:
        return function(x)
    except sg.CaptureError as refused:
        return refused.reason.code
    except Exception as error:  # which eager PyTorch raises too, or the two outcomes differ
        return type(error), str(error)


def check(count: int, seed: int, folder: Any) -> int:
    """Compare programs with eager; how many were captured."""
    captured = 0

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(programs())
    def agrees(source: str) -> None:
        nonlocal captured
        hypothesis.note(source)
        function = load(source, folder)
        static = sg.to_static(function, backend="eager")
        for x in CALLS:
            given = outcome(static, x)
            if isinstance(given, str):
                assert given in REFUSED
                return
            assert_same(outcome(function, x), given)
        captured += 1

    agrees()
    return captured


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("front_end", ["source", "bytecode"])
def test_programs_give_what_eager_gives(count: int, front_end: str, folder: Any) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        assert check(count, seed=count, folder=folder) >= count // 8
