"""Generated programs with variables that hold None or one of some objects: which, loops and branches decide.

Compared with eager: what the objects hold in the end, which of them the variables hold, and what was read on the way.
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
from tests.property.test_elements import outcome
from tests.property.test_programs import folder, load

__all__ = ["folder"]  # the fixture

FEW, MANY = 8, 60
REFUSED = {"SG201", "SG203", "SG204", "SG205", "SG209", "SG210", "SG301", "SG305"}

PREAMBLE = """
class Node:
    def __init__(self, v, w):
        self.v, self.n, self.next, self.other = v, w, None, None

    def value(self):
        return self.n


class Other(Node):
    def value(self):
        return self.n + 100


def which(nodes, one):
    return next((i for i, node in enumerate(nodes) if node is one), -1)


def seen(nodes):
    return [(node.v, node.n) for node in nodes]


def touch(one, by):
    if one is not None:
        one.n += by
    return one
"""
BEGIN = (
    "nodes = [Node(x[0], 0), Other(x[1], 1), Node(x[2], 2), Other(x[3], 3)]",
    "nodes[0].next, nodes[1].next, nodes[2].next = nodes[1], nodes[2], nodes[3]",
    "nodes[1].other, nodes[2].other, nodes[3].other = nodes[0], nodes[0], nodes[2]",
    "a, b, k, s, held = {a}, {b}, 0, 0, {{'c': {c}}}",
)
FIRST = ("None", "None", "nodes[0]", "nodes[3]")
VALUES = ("nodes[k % 4]", "nodes[(k + 1) % 4]", "nodes[1]", "None", "{o}", "held['c']", "touch({r}, 3)")
LINES = (
    "{r} = {v}",
    "{r} = {v}",
    "held['c'] = {v}",
    "if {r} is not None: {r}.n += {w}",
    "if {r} is not None: {r}.v = {r}.v + x[{i}]",
    "if {r} is not None: {r} = {r}.next",
    "if {r} is not None: {r} = {r}.other if x[{i}] > 0 else {r}.next",
    "if {r} is not None and {r} is {o}: s = s + 7",
    "if {r} is None or nodes[k % 4].v > {r}.v: {r} = nodes[k % 4]",
    "s = s * 2 + ({r}.value() if {r} is not None else 1)",
    "nodes[{i}].n += {w}",
    "if {r} is None: {r} = {v}",
    "{r}, {o} = {o}, {r}",
    "if {r} in nodes[:2]: s = s + 3",
    "if isinstance({r}, Other): s = s + 5",
)
TESTS = ("k < 3 and x[k] > -3", "k < 4 and ({r} is None or {r}.v < x[1])", "{r} is not None and k < 5 and x[0] > k")


def block(draw: Draw, depth: int, most: int) -> list[str]:
    """Lines of a program; a block in two more holds no other."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, most))):
        shape = draw(st.sampled_from(("line", "line", "if", "while", "for", "leave")))
        r = draw(st.sampled_from("ab"))
        drawn = {"r": r, "o": "b" if r == "a" else "a", "i": draw(st.integers(0, 3)), "w": draw(st.integers(1, 5))}
        drawn["v"] = draw(st.sampled_from(VALUES)).format(**drawn)
        if shape == "line" or depth > 1:
            lines.append(draw(st.sampled_from(LINES)).format(**drawn))
        elif shape == "leave":
            lines.append("if s > 90: return s, seen(nodes), which(nodes, {r})".format(**drawn))
        elif shape == "if":
            lines += ["if x[{i}] > {w} - 3:".format(**drawn), *indented(block(draw, depth + 1, 2))]
            lines += ["else:", *indented(block(draw, depth + 1, 2))]
        elif shape == "for":
            lines += ["for j in range(int(x[0]) + 1):", *indented(block(draw, depth + 1, 3))]
        else:
            at = "kh"[depth]  # a loop in a loop counts by another name, or none would end
            test = draw(st.sampled_from(TESTS)).format(**drawn).replace("k", at)
            lines += [f"{at} = 0", f"while {test}:", *indented([*block(draw, depth + 1, 3), f"{at} += 1"])]
    return lines


@st.composite
def programs(draw: Draw) -> str:
    """The source text of a module with one function, ``program(x)``."""
    first = {name: draw(st.sampled_from(FIRST)) for name in "abc"}
    lines = [line.format(**first) for line in BEGIN[:3]] + [BEGIN[3].format(**first)]
    lines += [*block(draw, 0, 4), "return s, seen(nodes), which(nodes, a), which(nodes, b), which(nodes, held['c'])"]
    return "\n".join(["import torch", PREAMBLE, "", "def program(x):", *indented(lines), ""])


CALLS = [torch.tensor(each) for each in ([2.0, 1, -2, 4], [1.0, 3, 5, -4], [-1.0, 5, 0, 0], [3.0, -5, 3, 2])]


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
