"""Newton's method: a loop to a tolerance, printed as a program, saved to a file and run from it.

Run with ``python examples/solver.py``; it writes ``newton.pt2`` to the working folder.
"""

import torch
from torch import Tensor

import stillgraph as sg


def cube_root(x: Tensor, tolerance: float = 1e-6, max_steps: int = 100) -> tuple[Tensor, int]:
    """The cube root of every element, and the steps it took."""
    root = torch.ones_like(x)
    steps = 0
    while steps < max_steps:
        step = (root - x / (root * root)) / 3
        root = root - step
        steps += 1
        if step.abs().max() <= tolerance * root.abs().max():
            break
    return root, steps


def main() -> None:
    x = torch.tensor([0.5, 8.0, 27.0])
    print(sg.export(cube_root, (x,)))
    sg.save(cube_root, "newton.pt2", args=(x,))
    loaded = sg.load("newton.pt2")
    for problem in (x, torch.tensor([1.0, 1.0, 1.0]), torch.tensor([1000.0, 2.0, 0.01])):
        root, steps = loaded(problem)
        expected, expected_steps = cube_root(problem)
        torch.testing.assert_close(root, expected)
        assert int(steps) == expected_steps
        print(root.tolist(), "after", int(steps), "steps")


if __name__ == "__main__":
    main()
