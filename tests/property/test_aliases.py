"""Generated programs in which names of lists or objects come to lead to others, and these are changed by any name.

Compared with eager: results, what the caller's lists or objects hold, and which of the names lead to one.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.front_ends import through_bytecode
from tests.property.programs import Draw
from tests.property.test_programs import folder, load

__all__ = ["folder"]  # the fixture

FEW, MANY = 6, 40
REFUSED = {"SG201", "SG203", "SG205", "SG210", "SG211", "SG301", "SG305"}
NAMES = ("a", "b", "c")


@dataclass(frozen=True)
class Kind:
    """What the names of a program lead to.

    Attributes:
        preamble: the lines of the module before the function.
        begins: lines that a program may begin with.
        lines: templates of the others.
        shrinks: of one that takes something away.
        given: what a call is given for the names, beside ``x``.
    """

    preamble: tuple[str, ...]
    begins: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...]
    shrinks: str
    given: Callable[[Any], tuple[Any, ...]]


LISTS = Kind(
    preamble=(),
    begins=((), ("b = a",), ("a = b = [x[0]]",), ("c = [x[1]]", "b = c")),
    lines=(
        "{n} = {m}",
        "{n} = {m}",
        "{n} = [x[{i}], x[{j}] * 2]",
        "{n}.append(x[{i}] + {j})",
        "{n}[0] = {m}[-1] + {j}",
        "{n} += [x[{i}] - {j}]",
        "{n}[:] = [x[{i}] * 3, x[{j}]]",
        "{n}.insert(0, x[{i}])",
        "{n}.reverse()",
        "x = x + {n}[0] * 0.25 + len({n})",
    ),
    shrinks="if len({n}) > 1: x = x + {n}.pop() * 0.5",
    given=lambda module: ([torch.tensor(1.0)], [torch.tensor(2.0), torch.tensor(5.0)], [torch.tensor(3.0)]),
)
BOX = """
class Box:
    def __init__(self, held, count):
        self.held, self.count = held, count

    @property
    def sum(self):
        return self.held + self.count

    def scaled(self, factor):
        return Box(self.held * factor, self.count)

    def grow(self, by):
        self.held = self.held + by
        self.count += 1
"""
OBJECTS = Kind(
    preamble=tuple(BOX.strip().splitlines()),
    begins=((), ("b = a",), ("a = b = Box(x[0], 1)",), ("c = Box(x[1], 2)", "b = c")),
    lines=(
        "{n} = {m}",
        "{n} = {m}",
        "{n} = Box(x[{i}], {j})",
        "{n} = {m}.scaled({j})",
        "{n}.grow({m}.held * 0.5)",
        "{n}.held = {m}.sum + {j}",
        "{n}.held, {m}.count = x[{i}], {j}",
        "x = x + {n}.sum * 0.25",
        "x = x + ({n} is {m}) - 0.5 * ({n} == {m})",
    ),
    shrinks="{n}.count -= 1",
    given=lambda module: tuple(module.Box(torch.tensor(each), int(each)) for each in (1.0, 2.0, 3.0)),
)


def block(draw: Draw, of: Kind, depth: int, most: int) -> list[str]:
    """Lines of a program; a block in three more holds no other."""
    lines: list[str] = []
    for number in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(("line", "line", "line", "shrink", "if", "else", "loop", "try")))
        drawn = {"n": draw(st.sampled_from(NAMES)), "m": draw(st.sampled_from(NAMES))}
        drawn |= {name: draw(st.integers(0, 2)) for name in "ij"}
        if kind == "shrink":
            lines.append(of.shrinks.format(**drawn))
        elif kind == "line" or depth > 1:
            lines.append(draw(st.sampled_from(of.lines)).format(**drawn))
        elif kind == "try":
            fails = "if x[{i}] > {j}: raise ValueError".format(**drawn)
            body = [*block(draw, of, depth + 1, 2), fails, *block(draw, of, depth + 1, 2)]
            lines += ["try:", *indented(body), "except ValueError:", *indented(block(draw, of, depth + 1, 2))]
        else:
            begin = "while x.sum() < {i} * 3:" if kind == "loop" else "if x[{i}] > {j} - 1:"
            inner = [f"x = x + {number + 1}"] if kind == "loop" else []
            lines += [begin.format(**drawn), *indented(inner + block(draw, of, depth + 1, 2))]
            if kind == "else":
                lines += ["else:", *indented(block(draw, of, depth + 1, 2))]
    return lines


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@st.composite
def programs(draw: Draw, of: Kind) -> str:
    """The source text of a module with one function, ``program(x, a, b, c)``."""
    lines = [*draw(st.sampled_from(of.begins)), *block(draw, of, 0, 6), "return x, a, b, c, a is b, b is c, a is c"]
    return "\n".join(["import torch", "", "", *of.preamble, "", "", "def program(x, a, b, c):", *indented(lines), ""])


def calls(of: Kind, module: Any) -> list[tuple[Any, ...]]:
    return [(torch.tensor(x), *of.given(module)) for x in ([-3.0, -2.0, 0.5], [2.0, -1.0, -1.0], [0.5, 3.0, 4.0])]


def outcome(function: Any, args: tuple[Any, ...]) -> Any:
    """What a call gives, what the caller has then, and which of the caller's names it gives; or why it is refused."""
    try:
        given = function(*args)
    except sg.CaptureError as refused:
        return refused.reason.code
    except Exception as error:  # which eager PyTorch raises too, or the two outcomes differ
        return type(error), str(error), args
    return given, args, [[each is mine for mine in args[1:]] for each in given[1:4]]


def check(of: Kind, count: int, seed: int, folder: Any) -> int:
    """Compare programs with eager; how many were captured."""
    captured = 0

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(programs(of))
    def agrees(source: str) -> None:
        nonlocal captured
        hypothesis.note(source)
        function = load(source, folder)
        static = sg.to_static(function, backend="eager")
        for args in calls(of, sys.modules[function.__module__]):
            eager, given = outcome(function, copy.deepcopy(args)), outcome(static, copy.deepcopy(args))
            if isinstance(given, str):
                assert given in REFUSED
                return
            assert_same(eager, given)
        captured += 1

    agrees()
    return captured


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("front_end", ["source", "bytecode"])
@pytest.mark.parametrize("of", [LISTS, OBJECTS], ids=["lists", "objects"])
def test_programs_give_what_eager_gives(of: Kind, count: int, front_end: str, folder: Any) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        assert check(of, count, seed=count, folder=folder) >= count // 3
