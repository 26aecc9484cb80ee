"""Without a capture the interpreter does what CPython does: for every construct, everything that can be seen."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import pytest

from stillgraph.bytecode.code.instruction_set import OPERATIONS
from stillgraph.bytecode.machine.table import CONTROL, HANDLERS, REFUSED
from tests.unit.bytecode.both import compare
from tests.unit.bytecode.constructs import classes, faults, flow, functions, generators, values

CASES = [
    pytest.param(function, args, id=f"{file.__name__.rpartition('.')[2]}-{function.__name__}-{number}")
    for file in (values, flow, faults, functions, generators, classes)
    for number, (function, args) in enumerate(file.CASES.all)
]


@pytest.mark.parametrize(("function", "args"), CASES)
def test_construct(function: FunctionType, args: tuple[Any, ...]) -> None:
    compare(function, *args)


def test_each_operation_has_one_meaning() -> None:
    parts = [set(HANDLERS), set(CONTROL), set(REFUSED)]
    assert sorted(name for part in parts for name in part) == sorted(OPERATIONS)
