"""Generated programs in which names of lists come to lead to other lists, and the lists are changed by any name.

Compared with eager: results, what the caller's lists hold, and which of the names lead to one list.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.front_ends import through_bytecode
from tests.property.programs import Draw
from tests.property.test_programs import folder, load

__all__ = ["folder"]  # the fixture

FEW, MANY = 6, 40
REFUSED = {"SG201", "SG203", "SG205", "SG210", "SG211", "SG301", "SG305"}
NAMES = ("a", "b", "c")
BEGINS: tuple[tuple[str, ...], ...] = ((), ("b = a",), ("a = b = [x[0]]",), ("c = [x[1]]", "b = c"))
LINES = (
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
)


def block(draw: Draw, depth: int, most: int) -> list[str]:
    """Lines of a program; a block in three more holds no other."""
    lines: list[str] = []
    for number in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(("line", "line", "line", "pop", "if", "else", "loop")))
        drawn = {"n": draw(st.sampled_from(NAMES)), "m": draw(st.sampled_from(NAMES))}
        drawn |= {name: draw(st.integers(0, 2)) for name in "ij"}
        if kind == "pop":
            lines.append("if len({n}) > 1: x = x + {n}.pop() * 0.5".format(**drawn))
        elif kind == "line" or depth > 1:
            lines.append(draw(st.sampled_from(LINES)).format(**drawn))
        else:
            begin = "while x.sum() < {i} * 3:" if kind == "loop" else "if x[{i}] > {j} - 1:"
            inner = [f"x = x + {number + 1}"] if kind == "loop" else []
            lines += [begin.format(**drawn), *indented(inner + block(draw, depth + 1, 2))]
            if kind == "else":
                lines += ["else:", *indented(block(draw, depth + 1, 2))]
    return lines


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@st.composite
def programs(draw: Draw) -> str:
    """The source text of a module with one function, ``program(x, a, b, c)``."""
    lines = [*draw(st.sampled_from(BEGINS)), *block(draw, 0, 6), "return x, a, b, c, a is b, b is c, a is c"]
    return "\n".join(["import torch", "", "", "def program(x, a, b, c):", *indented(lines), ""])


def calls() -> list[tuple[Any, ...]]:
    given = ([-3.0, -2.0, 0.5], [2.0, -1.0, -1.0], [0.5, 3.0, 4.0])
    return [(torch.tensor(x), [torch.tensor(1.0)], [torch.tensor(2.0), torch.tensor(5.0)], [torch.tensor(3.0)])
            for x in given]  # fmt: skip


def outcome(function: Any, args: tuple[Any, ...]) -> Any:
    """What a call gives, what the caller has then, and which of the caller's lists it gives; or why it is refused."""
    try:
        given = function(*args)
    except sg.CaptureError as refused:
        return refused.reason.code
    except Exception as error:  # which eager PyTorch raises too, or the two outcomes differ
        return type(error), str(error), args
    lists: tuple[list[Tensor], ...] = given[1:4]
    return given, args, [[each is mine for mine in args[1:]] for each in lists]


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
        for args in calls():
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
def test_programs_give_what_eager_gives(count: int, front_end: str, folder: Any) -> None:
    with through_bytecode() if front_end == "bytecode" else contextlib.nullcontext():
        assert check(count, seed=count, folder=folder) >= count // 3
