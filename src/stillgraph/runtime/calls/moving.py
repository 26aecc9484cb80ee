"""A captured call whose program works on copies, also of the objects that the program itself holds."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import fx

from stillgraph.program.acts import Logging, StandardStream, Warning_
from stillgraph.program.graphs import regions
from stillgraph.program.program import Program
from stillgraph.program.sources import Held
from stillgraph.runtime.calls.cache import CapturedCall
from stillgraph.runtime.comparing.worlds import Copied
from stillgraph.runtime.native.limits import limited
from stillgraph.runtime.native.results import compile_result
from stillgraph.runtime.native.settling import compile_settled, settles

Compile = Callable[[Program], Callable[..., Sequence[Any]]]

TOLD = (Logging, StandardStream, Warning_)
"""What a program does to the world outside that a check can hear, and keep from it."""

_TABLES = ("_parameters", "_buffers", "_modules")


def held_objects(program: Program) -> list[Any]:
    """The objects that the graph of a program holds: optimizers, hooks, random generators and the like."""
    return [value for region in regions(program.graph) for _, value in _held(region)]


_OF_OBJECTS = ("inputs", "result", "effects", "midway", "so_far")  # what of a program leads to objects


def on_copies(call: CapturedCall, copied: Copied, compile: Compile, anew: bool, limit: int) -> CapturedCall:
    """A captured call, what its program holds of the user's objects being copies.

    Args:
        call: what was captured.
        copied: the copies.
        compile: makes a function of a program, where the graph holds copied objects.
        anew: whether to compile it in any case.
        limit: how many regions of it may begin, see `limits`.

    Raises:
        CheckError: something cannot be copied (SG503).
    """
    program = call.program
    fields = {name: _moved(getattr(program, name), copied) for name in _OF_OBJECTS}
    graph = _region_on_copies(program.graph, copied, {})
    as_it_is = graph is program.graph and not anew
    program = dataclasses.replace(program, graph=graph, **fields)
    run = limited(call.run if as_it_is else compile(program), limit)
    settled = compile_settled(program, run, contextlib.nullcontext) if settles(program) else None
    finish = compile_result(program.result, program.effects)
    return dataclasses.replace(call, program=program, run=run, finish=finish, settled=settled)


# ---- what the graph holds
def _held(region: fx.GraphModule) -> Iterator[tuple[str, Any]]:
    for name in dict.fromkeys(str(node.target) for node in region.graph.find_nodes(op="get_attr")):
        if "." not in name:
            value = getattr(region, name)
            if not isinstance(value, (fx.GraphModule, *TOLD)):
                yield name, value


def _region_on_copies(region: fx.GraphModule, copied: Copied, done: dict[int, fx.GraphModule]) -> fx.GraphModule:
    """A region with other attributes and the same nodes; the region itself where no attribute is another."""
    if id(region) in done:
        return done[id(region)]
    changed: dict[str, Any] = {}
    for name, value in _held(region):
        changed[name] = copied.copy_of(value)
    for name, inner in region.named_children():
        if isinstance(inner, fx.GraphModule):
            changed[name] = _region_on_copies(inner, copied, done)
    changed = {name: value for name, value in changed.items() if value is not getattr(region, name)}
    done[id(region)] = _with(region, changed) if changed else region
    return done[id(region)]


def _with(region: fx.GraphModule, changed: dict[str, Any]) -> fx.GraphModule:
    # `copy.copy` would make nodes anew, by which much is known.
    made: fx.GraphModule = object.__new__(type(region))
    inside = vars(made)
    inside.update(vars(region))
    inside.update({table: dict(inside[table]) for table in _TABLES})
    for name, value in changed.items():
        owner = next((inside[table] for table in _TABLES if name in inside[table]), inside)
        owner[name] = value
    return made


# ---- what stands beside the graph
def _is_same(one: Any, other: Any) -> bool:
    return one is other


_BY_NAME = (type, dict)  # classes, and the globals of modules: copies stand in them, see `worlds`


def _moved(value: Any, copied: Copied) -> Any:
    """A part of a program, or the same object where it holds nothing."""
    if isinstance(value, Held):
        held = value.value
        if isinstance(held, _BY_NAME) or hasattr(held, "__code__"):
            return value
        return Held(value.name, copied.copy_of(held))
    if isinstance(value, tuple) and type(value) is tuple:
        parts = tuple(_moved(each, copied) for each in value)
        return value if all(map(_is_same, parts, value)) else parts
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith("stillgraph.program"):
        changed = dict(_changed_fields(value, copied))
        return dataclasses.replace(value, **changed) if changed else value  # type: ignore[type-var]  # an instance
    return value


def _changed_fields(value: Any, copied: Copied) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(value):
        if field.name in ("value", "context") and type(value).__name__ in ("Constant", "Container", "Input"):
            continue
        before = getattr(value, field.name)
        after = _moved(before, copied)
        if after is not before:
            yield field.name, after
