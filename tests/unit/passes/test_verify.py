from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import fx

import stillgraph as sg
from stillgraph.core.diagnostics import InternalError
from stillgraph.passes.regions.regions import Branch, Loop, controls, copied, outputs, placeholders, set_outputs
from stillgraph.program.effects import SetAttribute
from stillgraph.program.outputs import Output
from stillgraph.program.sources import Argument
from stillgraph.program.verify import verify
from tests.unit.passes.captured import SAMPLES


@pytest.mark.parametrize("name", SAMPLES)
def test_what_capture_makes_is_valid(name: str) -> None:
    verify(SAMPLES[name].capture()[0])


def _branch(program: sg.Program) -> Branch:
    return next(c for c in controls(program.graph) if isinstance(c, Branch))


def _loop(program: sg.Program) -> Loop:
    return next(c for c in controls(program.graph) if isinstance(c, Loop))


def fewer_inputs(program: sg.Program) -> sg.Program:
    return replace(program, inputs=program.inputs[:1])


def no_such_output(program: sg.Program) -> sg.Program:
    return replace(program, result=Output(7))


def no_such_output_in_an_effect(program: sg.Program) -> sg.Program:
    return replace(program, effects=(SetAttribute(Argument(0), "x", Output(7)),))


def used_before_it_is_made(program: sg.Program) -> sg.Program:
    nodes = [n for n in program.graph.graph.nodes if n.op == "call_function"]
    placeholders(program.graph)[-1].append(nodes[-1])
    return program


def an_operation_without_value(program: sg.Program) -> sg.Program:
    del _branch(program).node.prev.prev.prev.meta["val"]
    return program


def an_arm_that_gives_less(program: sg.Program) -> sg.Program:
    set_outputs(_branch(program).arms[1], [])
    return program


def an_arm_that_takes_more(program: sg.Program) -> sg.Program:
    arm = _branch(program).arms[0]
    with arm.graph.inserting_after(placeholders(arm)[0]):
        extra = arm.graph.placeholder("extra")
    extra.meta["val"] = torch.ones(())
    return program


def an_arm_that_is_not_there(program: sg.Program) -> sg.Program:
    node = _branch(program).node
    node.args = (node.args[0], node.args[1], node.args[0], node.args[3])
    return program


def a_result_that_is_not_there(program: sg.Program) -> sg.Program:
    node = _branch(program).node
    user = next(iter(node.users))
    user.args = (node, 5)
    return program


def a_single_output(program: sg.Program) -> sg.Program:
    program.graph.graph.output_node().args = (outputs(program.graph)[0],)
    return program


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (fewer_inputs, "has 1 inputs, its graph 2 placeholders"),
        (no_such_output, "refers to output 7"),
        (no_such_output_in_an_effect, "refers to output 7"),
        (used_before_it_is_made, "no well-formed graph"),
        (an_operation_without_value, "does not say what"),
        (an_arm_that_gives_less, "the false arm of .* gives 0 values"),
        (an_arm_that_takes_more, "the true arm of .* takes 4 values and is given 3"),
        (an_arm_that_is_not_there, "is no region"),
        (a_result_that_is_not_there, "takes result 5"),
        (a_single_output, "does not give a tuple"),
    ],
)
def test_what_is_wrong_with_a_branch(harm: Callable[[sg.Program], sg.Program], text: str) -> None:
    def chosen(x: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
        double = x * 2
        if x.sum() > limit:
            return double + x - limit
        return x

    program = copied(sg.export(chosen, (torch.ones(2), torch.tensor(1.0))))
    verify(program)
    with pytest.raises(InternalError, match=text):
        verify(harm(program))


def test_what_is_wrong_with_a_loop() -> None:
    program = copied(SAMPLES["loop"].capture()[0])
    loop = _loop(program)
    set_outputs(loop.body, outputs(loop.body)[:1])
    with pytest.raises(InternalError, match=r"the body of .* gives 1 values, not 2"):
        verify(program)
    program = copied(SAMPLES["loop"].capture()[0])
    loop = _loop(program)
    set_outputs(loop.test, [*outputs(loop.test), True])
    with pytest.raises(InternalError, match=r"the test of .* gives 2 values, not 1"):
        verify(program)


def test_a_call_of_a_module_is_no_operation() -> None:
    program = copied(SAMPLES["loop"].capture()[0])
    graph: fx.Graph = program.graph.graph
    program.graph.add_module("inner", torch.nn.ReLU())
    with graph.inserting_before(graph.output_node()):
        graph.call_module("inner", (placeholders(program.graph)[0],))
    with pytest.raises(InternalError, match="calls a module"):
        verify(program)
