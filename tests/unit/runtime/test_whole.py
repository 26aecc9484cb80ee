"""The whole-graph lowering at run time: one compiled graph gives what the native driver gives, or the driver runs."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx

import stillgraph as sg
from stillgraph.runtime.native import lower
from stillgraph.runtime.whole import compile_whole


def halve(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    steps = 0
    while x.norm() > limit:
        x = x / 2
        steps += 1
    return x, steps


def announce(x: Tensor) -> Tensor:
    if x.sum() > 0:
        print("positive")
    return x + 1


class Graphs:
    """A compiler that keeps what it was given and runs it as it is."""

    def __init__(self, fails: bool = False) -> None:
        self.modules: list[fx.GraphModule] = []
        self.fails = fails

    def __call__(self, module: fx.GraphModule, inputs: list[Any]) -> Any:
        self.modules.append(module)
        if self.fails:
            raise RuntimeError("no code for this")
        return module.forward


def test_a_loop_is_one_graph_and_numbers_come_back_as_numbers() -> None:
    x, limit = torch.full((4,), 10.0), torch.tensor(1.0)
    with torch.no_grad():
        program = sg.export(halve, (x, limit))
        compiler = Graphs()
        run = compile_whole(program, compiler, lower(program, None).run)
        for start in (x, 100 * x, x / 100):
            value, steps = run(start, limit)
            expected, count = halve(start, limit)
            torch.testing.assert_close(value, expected)
            assert (steps, type(steps)) == (count, int)
    assert len(compiler.modules) == 1
    targets = [node.target for node in compiler.modules[0].graph.nodes]
    assert torch.ops.higher_order.while_loop in targets


def test_with_gradients_the_native_driver_runs() -> None:
    program = sg.export(halve, (torch.ones(4), torch.tensor(1.0)))
    native = lower(program, None).run
    assert compile_whole(program, Graphs(), native) is native


def test_a_program_that_prints_runs_natively() -> None:
    with torch.no_grad():
        program = sg.export(announce, (torch.ones(2),))
    native = lower(program, None).run
    assert compile_whole(program, Graphs(), native) is native


def test_a_compiler_that_fails_leaves_the_native_driver() -> None:
    x, limit = torch.full((4,), 10.0), torch.tensor(1.0)
    with torch.no_grad():
        program = sg.export(halve, (x, limit))
        compiler = Graphs(fails=True)
        run = compile_whole(program, compiler, lower(program, None).run)
        for _ in range(2):
            assert run(x, limit)[1] == halve(x, limit)[1]
    assert len(compiler.modules) == 1
