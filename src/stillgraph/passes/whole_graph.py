"""The whole-graph lowering for running: one functional graph that a compiler takes in one piece, for inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.passes.exceptions.printing import prints
from stillgraph.passes.exceptions.raising import raises
from stillgraph.passes.kernels.hiding import obstacle_to_inference
from stillgraph.passes.lists.lists import keeps_lists
from stillgraph.passes.regions.regions import Loop, all_regions, controls, outputs, placeholders, set_outputs
from stillgraph.passes.regions.values import kind_of, value_of
from stillgraph.program.operations import Unbound
from stillgraph.program.program import Program


@dataclass(frozen=True)
class Result:
    """One output of a program.

    Attributes:
        output: its position among the module's outputs, or None if it is an input handed back.
        input: the position of that input.
        kind: ``bool``, ``int`` or ``float`` if it is a Python number.
        constant: the value, where it is neither.
    """

    output: int | None = None
    input: int | None = None
    kind: type | None = None
    constant: Any = None


@dataclass(frozen=True)
class Whole:
    """A program as one graph of tensors.

    Attributes:
        module: takes a tensor for every input of the program and gives tensors.
        number_inputs: positions and dtypes of the inputs that are Python numbers: they go in as 0-d tensors.
        results: how the program's outputs are found.
    """

    module: fx.GraphModule
    number_inputs: tuple[tuple[int, torch.dtype], ...]
    results: tuple[Result, ...]


def lower_whole(program: Program) -> Whole | None:
    """Lower a program to one graph, where that is possible and of use.

    Returns:
        None where the native lowering is the right one: the program has no branch or loop, it prints, it raises (as
        ``1 / k`` may), it may return ``None``, it keeps lists of any length, asks for sizes that only the run knows,
        carries tensors that grow, or takes sequences of open length through recurrent layers.
    """
    if not any(True for _ in controls(program.graph)) or prints(program) or raises(program) or keeps_lists(program):
        return None
    try:
        lowered = pipeline.run(program)
    except ExportError:
        return None
    if _asks_for_values(lowered) or obstacle_to_inference(lowered):
        return None
    module = lowered.graph
    results, kept = _results(program, module)
    set_outputs(module, kept)
    numbers = tuple(
        (index, node.meta["val"].dtype)
        for index, (node, given) in enumerate(zip(placeholders(module), program.inputs))
        if kind_of(given.value)
    )
    unwrap_tests(module)
    return Whole(module, numbers, results)


def unwrap_tests(module: fx.GraphModule) -> None:
    """Let the test of a loop give the truth value itself: torch wants it so. Nothing else may follow this."""
    for region in all_regions(module):
        for control in controls(region):
            if isinstance(control, Loop):
                control.test.graph.output_node().args = (outputs(control.test)[0],)
                control.test.recompile()
        region.recompile()


def _asks_for_values(program: Program) -> bool:
    """Whether a graph reads values out of tensors, or stops when one is missing."""
    return any(
        node.target in ("item", torch._assert_async) or isinstance(value_of(node), Unbound)
        for module in all_regions(program.graph)
        for node in module.graph.nodes
    )


def _results(program: Program, module: fx.GraphModule) -> tuple[tuple[Result, ...], list[fx.Node]]:
    inputs = placeholders(module)
    kept: list[fx.Node] = []
    results = []
    for value, original in zip(outputs(module), outputs(program.graph)):
        if not isinstance(value, fx.Node):
            results.append(Result(constant=value))
        elif value in inputs:
            results.append(Result(input=inputs.index(value)))
        else:
            if value not in kept:
                kept.append(value)
            results.append(Result(kept.index(value), None, kind_of(value_of(original))))
    return tuple(results), kept
