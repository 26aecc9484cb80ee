"""The ways that generated programs go: through the source front end, through that for bytecode, and in segments."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

import stillgraph as sg
from tests.cases.case import Case
from tests.cases.harness import Convert, check_static, has_given_up, to_static
from tests.front_ends import through_bytecode
from tests.property.steps import KEPT, with_steps

MANY = 10_000
"""How many programs are enough in segments: each has its own, and a number that was read is a Python argument."""


def to_segments(target: Any, input_spec: list[sg.InputSpec] | None = None) -> Any:
    """The conversion that leaves to Python what cannot be in a program; whatever else fails is an error."""
    return sg.to_static(target, input_spec=input_spec, backend="eager", full_graph=False, strict=True)


def to_regions(target: Any, input_spec: list[sg.InputSpec] | None = None) -> Any:
    """The conversion whose backend compiles regions, and differentiates them."""
    return sg.to_static(target, input_spec=input_spec, backend="aot_eager")


@dataclass(frozen=True)
class Way:
    """How generated programs are made static functions, and what is asked of these."""

    name: str
    convert: Convert
    through_bytecode: bool = False
    is_whole: bool = True
    """Whether all calls that share their Python numbers are one program, and what cannot be in one is refused."""
    has_steps: bool = False

    def written(self, programs: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        """The programs, with steps for Python in them where the way has some."""
        return with_steps(programs) if self.has_steps else programs

    def check(self, make: Callable[[], Any], calls: list[tuple[Any, ...]], grad: bool) -> bool:
        """Assert that every call gives what eager gives; with steps, also when all are made once more.

        Returns:
            Whether the function was left to Python in the end.
        """
        options: dict[str, Any] = {} if self.is_whole else {"programs": MANY}
        if self.has_steps:  # what outlives a call may be other in each
            options |= {"may_give_up": True, "attrs": KEPT}
        calls = calls * 2 if self.has_steps else calls
        static = check_static(Case("a generated program", make, calls, grad=grad, **options), self.convert)
        return self.has_steps and has_given_up(static)


SOURCE = Way("source", to_static)
BYTECODE = Way("bytecode", to_static, through_bytecode=True)
SIZED = Way("sized", to_static, is_whole=False)
"""As the first, but with as many programs as sizes may need."""
COMPILED = Way("compiled", to_regions, is_whole=False)
"""As the second, but what is between branches and loops goes through AOTAutograd."""
SEGMENTS = Way("segments", to_segments, is_whole=False)
STEPS = Way("steps", to_segments, is_whole=False, has_steps=True)


@contextlib.contextmanager
def going(way: Way) -> Iterator[Way]:
    """Inside, captures go that way."""
    with through_bytecode() if way.through_bytecode else contextlib.nullcontext():
        yield way


@pytest.fixture
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    """The way that is the test's parameter."""
    with going(request.param) as chosen:
        yield chosen


def ways(*which: Way) -> pytest.MarkDecorator:
    """Runs a test, which takes the fixture `way`, each of these ways."""
    return pytest.mark.parametrize("way", which, indirect=True, ids=lambda way: way.name)
