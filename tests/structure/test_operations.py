"""Every operation of our own that can stand in a graph has a meaning for the reference interpreter."""

from __future__ import annotations

import dis
import inspect
from types import FunctionType

from stillgraph.program import exceptions, operations
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.program.facts import rerouting
from stillgraph.program.interpreter import CONTROL

NOT_IN_GRAPHS = {
    "reroute": "what runs a program",
    "settling": "what runs a program",
    "take_left": "what carries out effects",
}


def in_graphs() -> dict[str, FunctionType]:
    """The public functions of the modules, less those that no node calls."""
    modules = (operations, exceptions, rerouting)
    public = [each for module in modules for each in inspect.getmembers(module, inspect.isfunction)]
    ours = {n: f for n, f in public if f.__module__ in [m.__name__ for m in modules] and not n.startswith("_")}
    return {name: function for name, function in ours.items() if name not in NOT_IN_GRAPHS}


def runs_as_it_stands(function: FunctionType) -> bool:
    return "NotImplementedError" not in {each.argval for each in dis.get_instructions(function)}


def test_every_operation_runs_as_it_stands_or_is_handled() -> None:
    unhandled = {name for name, f in in_graphs().items() if not runs_as_it_stands(f) and f not in CONTROL}
    assert unhandled == set()


def test_what_is_handled_is_an_operation_that_does_not_run_as_it_stands() -> None:
    ours = {f for f in CONTROL if isinstance(f, FunctionType)}
    assert ours == {f for f in in_graphs().values() if not runs_as_it_stands(f)}


def test_every_construct_with_regions_is_handled() -> None:
    assert set(CONSTRUCTS) <= set(CONTROL)
