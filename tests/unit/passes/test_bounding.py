"""Loops written out as so many iterations: masked, with a branch for each, or as many as a range says."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.core.diagnostics import ExportError
from stillgraph.passes import pipeline
from stillgraph.passes.loops.bounding import bound_loops, branching_loops, loop_lines, with_bounds
from stillgraph.passes.regions.regions import COND, WHILE, all_regions
from stillgraph.program.interpreter import interpret
from stillgraph.program.program import Program
from stillgraph.program.verify import verify
from tests.unit.passes.captured import SAMPLES, run

X = torch.tensor([1.0, 2.0, 3.0])


def bounded(function: Any, args: tuple[Any, ...], count: int = 4, **options: Any) -> Program:
    program = pipeline.run(with_bounds(sg.export(function, args, **options), count))
    verify(program)
    assert WHILE not in targets(program)
    return program


def targets(program: Program) -> list[object]:
    return [node.target for module in all_regions(program.graph) for node in module.graph.nodes]


def halved(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    steps = 0
    while x.sum() > limit:
        x = x / 2
        steps += 1
    return x, steps


# ---- what a bounded program gives
@pytest.mark.parametrize(
    "name", ["loop", "branch_in_loop", "loop_in_branch", "returned_from_loop", "mutated", "indexed", "listed"]
)
def test_results_are_those_of_the_loop(name: str) -> None:
    sample = SAMPLES[name]
    program, args = sample.capture()
    receiver = args[: len(args) - len(sample.calls[0])]
    lowered = pipeline.run(with_bounds(program, 5 if name in ("loop", "listed") else 8))
    verify(lowered)
    assert WHILE in targets(program)
    assert WHILE not in targets(lowered)
    for call in sample.calls:
        want = run(program, (*receiver, *call))
        torch.testing.assert_close(run(lowered, (*receiver, *call))[: len(want)], want, rtol=0, atol=0)


@pytest.mark.parametrize("iterations", [0, 1, 3, 4])
def test_up_to_the_bound_and_not_beyond(iterations: int) -> None:
    program = bounded(halved, (X, torch.tensor(1.0)))
    assert COND not in targets(program)
    limit = torch.tensor(6.5 / 2**iterations)
    value, steps = run(program, (X, limit))
    want, count = halved(X, limit)
    assert steps == count == iterations
    assert torch.equal(value, want)


def test_one_iteration_more_is_told() -> None:
    program = bounded(halved, (X, torch.tensor(1.0)))
    with pytest.raises(RuntimeError, match=r"the loop at test_bounding.py:\d+ takes more than max_iterations=4 iter"):
        run(program, (X, torch.tensor(0.2)))


def test_a_loop_without_marks_stays() -> None:
    program = sg.export(halved, (X, torch.tensor(1.0)))
    assert bound_loops(program) is program
    assert WHILE in targets(pipeline.run(program))


def test_each_line_has_its_bound() -> None:
    def both(x: Tensor) -> Tensor:
        while x.sum() > 4:
            x = x / 2
        while x.sum() < 40:
            x = x * 2
        return x

    program = sg.export(both, (X,))
    first, second = sorted(loop_lines(program))
    lowered = pipeline.run(with_bounds(program, {first: 1, second: 4}))
    assert torch.equal(run(lowered, (X,))[0], both(X))
    with pytest.raises(RuntimeError, match=f":{first} takes more than max_iterations=1 "):
        run(lowered, (X * 4,))
    with pytest.raises(RuntimeError, match=f":{second} takes more than max_iterations=4 "):
        run(lowered, (X / 4,))
    with pytest.raises(ExportError, match="max_iterations says nothing of this loop") as error:
        with_bounds(program, {first: 1})
    assert f"Add {second}: … to max_iterations" in str(error.value)


def test_nested_loops_tell_of_each_other() -> None:
    def nested(x: Tensor, n: Tensor) -> Tensor:
        for i in range(int(n)):
            while x.sum() > i + 2:
                x = x - 1
            x = x + 2
        return x

    program = bounded(nested, (X, torch.tensor(2)))
    for n in range(5):
        assert torch.equal(run(program, (X, torch.tensor(n)))[0], nested(X, torch.tensor(n)))
    inner, outer = X * 9, torch.tensor(5)
    with pytest.raises(RuntimeError, match="takes more than max_iterations=4"):
        run(program, (inner, torch.tensor(1)))
    with pytest.raises(RuntimeError, match="takes more than max_iterations=4"):
        run(program, (X, outer))
    assert torch.equal(run(program, (inner, torch.tensor(0)))[0], inner)  # the inner loop would, but does not run


def test_a_loop_on_a_path_that_is_not_taken_tells_nothing() -> None:
    def chosen(x: Tensor, limit: Tensor) -> Tensor:
        if limit > 0:
            while x.sum() > limit:
                x = x / 2
        return x

    program = bounded(chosen, (X, torch.tensor(1.0)))
    assert torch.equal(run(program, (X, torch.tensor(-1.0)))[0], X)
    assert torch.equal(run(program, (X, torch.tensor(1.0)))[0], X / 8)
    with pytest.raises(RuntimeError, match="takes more than"):
        run(program, (X, torch.tensor(0.1)))


def leaving(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    count = 0
    while x.sum() < limit:
        x = x + 1
        if x.max() > 9:
            break
        if x.min() < 2:
            continue
        if x.min() > 5:
            return x * 100, -1
        count += 1
    else:
        count += 1000
    return x, count


def test_break_continue_else_and_return() -> None:
    program = bounded(leaving, (X, torch.tensor(10.0)), 5)
    ends = set()
    for x, limit in [(X, 3.0), (X, 10.0), (-X, 2.0), (X * 3, 60.0), (X / 2 + 4, 50.0)]:
        given = (x, torch.tensor(limit))
        value, count = run(program, given)[:2]
        want, ended = leaving(*given)
        assert torch.equal(value, want)
        assert count == ended
        ends.add(ended // 1000 if ended >= 0 else ended)
    assert ends == {-1, 0, 1}


class Counting(nn.Module):
    """Writes to a buffer and a number in its loop."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.steps = 0

    def forward(self, x: Tensor) -> Tensor:
        while x.sum() > 2:
            self.seen += x
            self.seen[0] = x[1]
            self.steps += 1
            x = x / 2
        return x + self.seen


@pytest.mark.parametrize("scale", [0.1, 0.5, 2.0])
def test_state_is_written_in_iterations_of_the_loop_alone(scale: float) -> None:
    module = Counting()
    program = bounded(module, (X,))
    eager = copy.deepcopy(module)
    want = eager(X * scale)
    seen = torch.zeros(3)
    inputs = {"x": X * scale, "seen": seen, "steps": torch.tensor(0)}
    given = [next(value for name, value in inputs.items() if name in each.name) for each in program.inputs]
    outputs = interpret(program, given)
    assert any(torch.equal(each, want) for each in outputs)
    assert any(torch.equal(each, torch.tensor(eager.steps)) for each in outputs if isinstance(each, Tensor))
    written = seen if seen.any() or not eager.seen.any() else next(o for o in outputs if torch.equal(o, eager.seen))
    assert torch.equal(written, eager.seen)


# ---- exceptions
def checked(x: Tensor, limit: Tensor) -> Tensor:
    while x.sum() > limit:
        x = x - 1
        assert x.min() > -2, "too small"
        if x.max() > 50:
            raise ValueError("too large")
    return x


def test_exceptions_are_those_of_iterations_that_there_are() -> None:
    program = bounded(checked, (X, torch.tensor(3.0)), 6)
    assert torch.equal(run(program, (X, torch.tensor(0.0)))[0], X - 2)  # one more would fail
    with pytest.raises(RuntimeError, match="AssertionError: too small"):
        run(program, (X, torch.tensor(-20.0)))
    with pytest.raises(RuntimeError, match="ValueError: too large"):
        run(program, (X * 30, torch.tensor(3.0)))


# ---- what may fail on values of a loop that has ended
def summed(x: Tensor, n: Tensor, by: Tensor) -> tuple[Tensor, int]:
    total, whole = torch.zeros(()), 0
    for i in range(int(n)):
        whole += (i * 7) // int(by[i])
        if i % 2 == 0:
            total = total + x[i]
        else:
            total = total - x[int(by[i]) % 3]
    return total, whole


def test_indices_and_divisors_are_guarded() -> None:
    by = torch.tensor([2, 1, 3])
    program = bounded(summed, (X, torch.tensor(2), by))
    assert branching_loops(program) == []
    for n in range(4):
        given = (X, torch.tensor(n), by)
        assert run(program, given)[:2] == [summed(*given)[0].item(), summed(*given)[1]]
    zeros = (X, torch.tensor(0), torch.zeros(3, dtype=torch.int64))
    assert run(program, zeros)[:2] == [0.0, 0]
    with pytest.raises(RuntimeError, match=r"(?i)zero"):
        run(program, (X, torch.tensor(1), torch.zeros(3, dtype=torch.int64)))
    with pytest.raises(IndexError):
        run(program, (X, torch.tensor(4), by))


def test_what_cannot_be_masked_has_branches() -> None:
    def solving(x: Tensor) -> Tensor:
        while x.sum() > 4:
            x = torch.linalg.inv(torch.diag(x)).sum(0)
        return x

    def drawing(x: Tensor) -> Tensor:
        while x.sum() > 4:
            x = x * torch.rand(3)
        return x

    def growing(x: Tensor, limit: Tensor) -> Tensor:
        while x.sum() < limit:
            x = torch.cat([x, x[-1:] + 1])
        return x

    program = bounded(solving, (X,))
    assert targets(program).count(COND) == 4
    assert branching_loops(program)[0].endswith(": diag may fail where the loop has ended")
    for x in (X, X / 2, torch.zeros(3)):  # the last has no inverse
        assert torch.equal(run(program, (x,))[0], solving(x))
    program = bounded(drawing, (X,))
    torch.manual_seed(3)
    want, after = drawing(X), torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(run(program, (X,))[0], want)
    assert torch.equal(torch.rand(2), after)
    program = bounded(growing, (X, torch.tensor(9.0)))
    assert branching_loops(program)[0].endswith("what it carries changes its shape")
    for limit in (0.0, 7.0, 20.0):
        assert torch.equal(run(program, (X, torch.tensor(limit)))[0], growing(X, torch.tensor(limit)))
    with pytest.raises(RuntimeError, match="takes more than"):
        run(program, (X, torch.tensor(50.0)))


# ---- ranges
def test_a_constant_range_is_written_out_whatever_the_bound() -> None:
    def stepped(x: Tensor) -> Tensor:
        for i in range(2, 300, 4):
            x = x + i
        return x

    program = sg.export(stepped, (X,))
    assert len(loop_lines(program)) == 1
    lowered = pipeline.run(with_bounds(program, 1))
    assert not {WHILE, COND, torch.where, torch._assert_async} & set(targets(lowered))
    assert torch.equal(run(lowered, (X,))[0], stepped(X))


# ---- refusals
def test_too_many_copies_are_refused() -> None:
    program = sg.export(halved, (X, torch.tensor(1.0)))
    with pytest.raises(ExportError, match=r"1000000 iterations of this loop are \d+ operations; 50000 are the most"):
        pipeline.run(with_bounds(program, 1000000))


def test_a_loop_in_a_condition_is_refused() -> None:
    def positive(x: Tensor) -> Tensor:
        while x.sum() > 0:
            x = x - 1
        return x

    def outer(x: Tensor) -> Tensor:
        while positive(x).sum() > -3:
            x = x / 2 - 1
        return x

    with pytest.raises(ExportError, match="a loop is part of the condition of a loop"):
        pipeline.run(with_bounds(sg.export(outer, (X,)), 3))


# ---- gradients
def damped(x: Tensor, w: Tensor) -> Tensor:
    while x.norm() > 1:
        x = torch.sqrt(x.abs() * w)
    return x * w


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_gradients_are_those_of_eager(scale: float) -> None:
    def gradients(function: Any) -> list[Tensor]:
        x, w = (X * scale).requires_grad_(), torch.tensor([0.3, 0.4, 0.2]).requires_grad_()
        y = function(x, w)
        y.backward(torch.tensor([1.0, 2.0, 3.0]))
        assert x.grad is not None
        assert w.grad is not None
        return [y.detach(), x.grad, w.grad]

    example = (X.clone().requires_grad_(), torch.rand(3).requires_grad_())
    program = bounded(damped, example, 6)
    assert COND not in targets(program)
    by_program = gradients(lambda x, w: interpret(program, (x, w))[0])
    torch.testing.assert_close(by_program, gradients(damped))
