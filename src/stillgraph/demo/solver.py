"""A fixed-point solver that iterates to a tolerance, exported to ``.pt2`` and run from the file."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

import stillgraph as sg
from stillgraph.demo.outcome import Outcome, largest_difference, timed_capture, write_listing

_SIZE = 32


def solve(x: Tensor, weight: Tensor, tolerance: float = 1e-5, max_steps: int = 500) -> tuple[Tensor, int]:
    """Solve ``z = tanh(weight @ z + x)`` by damped iteration."""
    z = torch.zeros_like(x)
    steps = 0
    while steps < max_steps:
        z_next = 0.5 * z + 0.5 * torch.tanh(weight @ z + x)
        steps += 1
        if (z_next - z).abs().max() < tolerance:
            return z_next, steps
        z = z_next
    return z, steps


def run(out: Path) -> Outcome:
    """Save the solver, load the file, and compare problems that need different numbers of steps."""
    torch.manual_seed(0)
    problems = [(torch.randn(_SIZE), stiffness * _contraction()) for stiffness in (0.1, 0.5, 0.8, 0.95)]
    expected = [solve(*problem) for problem in problems]
    program, seconds = timed_capture(lambda: sg.export(solve, problems[0]))
    file = out / "solver.pt2"
    sg.save(solve, file, args=problems[0])
    loaded = sg.load(file)
    # A file holds tensors alone: its step count comes back as a 0-d tensor.
    found = [(z, int(steps)) for z, steps in (loaded(*problem) for problem in problems)]
    steps = [count for _, count in expected]
    return Outcome(
        program=program,
        capture_seconds=seconds,
        difference=largest_difference(expected, found),
        tolerance=1e-6,
        files=(file, write_listing(program, out / "solver.txt")),
        remarks=(f"{len(problems)} problems", f"{min(steps)} to {max(steps)} steps"),
        faults=() if min(steps) < max(steps) else ("all problems need the same number of steps",),
    )


def _contraction() -> Tensor:
    weight = torch.randn(_SIZE, _SIZE)
    norm: Tensor = torch.linalg.matrix_norm(weight, ord=2)
    return weight / norm
