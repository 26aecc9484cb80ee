"""The ways that generated programs go: through the source front end, through that for bytecode, and in segments."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

import stillgraph as sg
from tests.cases.harness import Convert, to_static
from tests.front_ends import through_bytecode

SOURCE, BYTECODE, SEGMENTS = "source", "bytecode", "segments"
MANY = 10_000
"""How many programs are enough in segments: each has its own, and a number that was read is a Python argument."""


def to_segments(target: Any, input_spec: list[sg.InputSpec] | None = None) -> Any:
    """The conversion that leaves to Python what cannot be in a program; whatever else fails is an error."""
    return sg.to_static(target, input_spec=input_spec, backend="eager", full_graph=False, strict=True)


@contextlib.contextmanager
def going(way: str) -> Iterator[Convert]:
    """The conversion of a way, to be used inside."""
    with through_bytecode() if way == BYTECODE else contextlib.nullcontext():
        yield to_segments if way == SEGMENTS else to_static


@pytest.fixture
def convert(request: pytest.FixtureRequest) -> Iterator[Convert]:
    """The conversion of the way that is the test's parameter."""
    with going(request.param) as made:
        yield made


def ways(*which: str) -> pytest.MarkDecorator:
    """Runs a test, which takes the fixture `convert`, each of these ways."""
    return pytest.mark.parametrize("convert", which, indirect=True)
