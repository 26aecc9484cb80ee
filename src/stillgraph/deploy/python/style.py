"""Which control flow a file is written with: torch's operators, or Python's own statements; and why."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from stillgraph.core.diagnostics import ExportError, refuse
from stillgraph.deploy.description.identities import may_be_joined
from stillgraph.deploy.description.whereabouts import Whereabouts
from stillgraph.passes import pipeline
from stillgraph.passes.exceptions.catching import handles
from stillgraph.passes.exceptions.printing import prints
from stillgraph.passes.exceptions.raising import raises
from stillgraph.passes.kernels.hiding import obstacle_to_inference
from stillgraph.passes.lists.lists import keeps_lists
from stillgraph.passes.numbers.kinds import mixes_kinds
from stillgraph.passes.regions.regions import all_regions
from stillgraph.passes.regions.values import is_number, is_optional, value_of
from stillgraph.passes.state.sharing import writes_what_may_be_shared
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.program.graphs import arguments
from stillgraph.program.guards import ModeGuard
from stillgraph.program.outputs import Choice, Container, Instance, Maybe, Repeated, Template
from stillgraph.program.program import Program


@dataclass(frozen=True)
class Style:
    """How control flow is written.

    Attributes:
        torch: with `torch.cond` and ``while_loop``.
        program: what is written: for torch's operators, lowered by the passes.
        why: a clause for the file's head.
    """

    torch: bool
    program: Program
    why: str


def style_of(program: Program, wanted: str | None, where: Whereabouts) -> Style:
    """The style of a program's file.

    Args:
        program: as captured.
        wanted: ``"torch"``, ``"python"``, or None for torch's operators wherever they say the same.
        where: which places of the example call are one.

    Raises:
        ExportError: torch's operators are wanted and cannot say what the program does.
    """
    if wanted == "python":
        return Style(False, program, "this was asked for")
    if not any(node.target in CONSTRUCTS for module in all_regions(program.graph) for node in module.graph.nodes):
        return Style(False, program, "it has no branch and no loop")
    obstacle = _obstacle(program, where)
    lowered = None
    if obstacle is None:
        try:
            lowered = pipeline.run(program)
        except ExportError as error:
            obstacle = error.message
        else:
            obstacle = _obstacle_in(lowered)
    if obstacle is None:
        assert lowered is not None
        return Style(True, lowered, "")
    if wanted == "torch":
        raise refuse("SG402", f"torch.cond and while_loop cannot express this: {obstacle}", location=program.location)
    return Style(False, program, obstacle)


def _obstacle(program: Program, where: Whereabouts) -> str | None:
    """What torch's operators would drop, do at another time, or give otherwise."""
    if _takes_gradients(program):
        return "it takes gradients, which torch's while_loop gets wrong where a loop never runs"
    if prints(program):
        return "it prints, logs or warns"
    if raises(program):
        return "it raises exceptions"
    if any(is_number(item.value) for item in program.inputs):
        return "it reads or writes Python numbers"
    if handles(program):
        return "it handles an exception"
    if keeps_lists(program):
        return "it keeps a list of which only the run knows the length"
    if mixes_kinds(program.graph):
        return "paths differ in the kind of a number, or one has a number where another has a tensor"
    if may_be_joined(program, where):
        return "it depends on which objects are one, and torch's operators give copies"
    if writes_what_may_be_shared(program.graph):
        return "it writes in place to what may share memory with what a branch or loop gives"
    if _asks_for_sizes(program):
        return "a branch depends on a size, and torch.cond looks at both arms with the sizes of the call"
    values = [program.result, *(effect.value for effect in program.effects if hasattr(effect, "value"))]
    if any(_differs_between_paths(value) for value in values):
        return "paths differ in the structure of what they return or write, or only the run knows it"
    if any(is_optional(value_of(node)) for module in all_regions(program.graph) for node in module.graph.nodes):
        return "a variable is None or without a value on some path"
    return None


def _asks_for_sizes(program: Program) -> bool:
    """Whether a branch depends on sizes alone: one of its arms may fail for sizes with which a call takes the other."""
    branches = (
        node
        for module in all_regions(program.graph)
        for node in module.graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond)
    )
    return any(isinstance(value_of(arguments(node)[0]), torch.SymBool) for node in branches)


def _takes_gradients(program: Program) -> bool:
    """Whether what a program computes may be differentiated, or differentiates itself."""
    ambient = next((guard.context.grad for guard in program.guards if isinstance(guard, ModeGuard)), True)
    nodes = [node for module in all_regions(program.graph) for node in module.graph.nodes]
    if any(node.meta["context"].grad != ambient for node in nodes if node.meta.get("context") is not None):
        return True
    values = (value_of(node) for node in nodes)
    return bool(ambient) and any(isinstance(value, torch.Tensor) and value.requires_grad for value in values)


def _differs_between_paths(template: Template) -> bool:
    match template:
        case Choice() | Maybe() | Repeated():
            return True
        case Container(children=children):
            return any(_differs_between_paths(child) for child in children)
        case Instance(attributes=attributes):
            return any(_differs_between_paths(child) for _, child in attributes)
    return False


def _obstacle_in(lowered: Program) -> str | None:
    if obstacle := obstacle_to_inference(lowered):
        return obstacle.reason
    nodes = [node for module in all_regions(lowered.graph) for node in module.graph.nodes]
    if any(node.target is torch._assert_async for node in nodes):
        return "it raises exceptions"
    return None
