"""Python's own structures: stacks, records, generators, exceptions, recursion, pattern matching."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from tests.cases.case import case
from tests.cases.tensors import f, i64, normal

randn = normal(seed=7)


def stack_machine(program: Tensor, x: Tensor) -> Tensor:
    """Opcodes: 0 push x, 1 add, 2 multiply, 3 save the top to memory, 4 load from memory."""
    stack, memory = [x], [x]
    machine = [stack, memory]
    for op in program:
        if op == 0:
            machine[0].append(x)
        elif op == 1:
            machine[0].append(machine[0].pop() + machine[0].pop())
        elif op == 2:
            machine[0].append(machine[0].pop() * machine[0].pop())
        elif op == 3:
            machine[1][0] = machine[0][-1]
        else:
            machine[0].append(machine[1][0])
    return stack[-1]


case(stack_machine, [(i64(0, 1, 0, 2, 0), f(1, 2)), (i64(3, 4, 2, 3, 4), f(1, 3)), (i64(0, 0, 1, 1, 3), f(2, 2))])


def integrand(x: Tensor) -> Tensor:
    return torch.exp(-x * x) * torch.sin(3 * x)


def simpson(a: Tensor, b: Tensor) -> Tensor:
    return (b - a) / 6 * (integrand(a) + 4 * integrand((a + b) / 2) + integrand(b))


def adaptive_simpson(a: Tensor, b: Tensor, tol: float = 1e-3) -> Tensor:
    middle = (a + b) / 2
    whole, left, right = simpson(a, b), simpson(a, middle), simpson(middle, b)
    error = left + right - whole
    if error.abs() < 15 * tol:
        return left + right + error / 15
    return adaptive_simpson(a, middle, tol) + adaptive_simpson(middle, b, tol)


case(adaptive_simpson, [(f(0), f(1)), (f(-3), f(3)), (f(0), f(0.1))], export_refused="recursion")


class NotNormalised(ValueError):
    """The probabilities do not sum to one."""


def entropy(p: Tensor) -> Tensor:
    if (p.sum() - 1).abs() > 1e-3:
        raise NotNormalised("probabilities must sum to one")
    return -(p * p.clamp_min(1e-12).log()).sum()


def entropy_or_normalise(p: Tensor) -> tuple[Tensor, bool]:
    normalised = True
    try:
        value = entropy(p)
    except NotNormalised:
        value = entropy(p.softmax(dim=0))
        normalised = False
    return value, normalised


case(entropy_or_normalise, [(f(0.5, 0.25, 0.25),), (f(1, 2, 3),), (f(1, 0, 0),)])


def trimmed_mean(x: Tensor, limit: float = 2.0) -> Tensor:
    """The mean of what lies within `limit` of the median, gathered by a nested function."""
    total = torch.zeros(())
    count = 0

    def visit(value: Tensor) -> None:
        nonlocal total, count

        def accept() -> None:
            nonlocal total, count
            total = total + value
            count += 1

        if (value - center).abs() <= limit:
            accept()

    center = x.median()
    for value in x:
        visit(value)
    return total / count


case(trimmed_mean, [(f(1, 2, 3, 90, 2),), (f(1, 1, 1, 1, 1),), (f(-50, 0, 0.5, 1, 70),)])


def windows(x: Tensor, size: int) -> Iterator[Tensor]:
    for start in range(0, x.shape[0] - size + 1, size):
        yield x[start : start + size]


def loud(chunks: Iterable[Tensor], threshold: float) -> Iterator[Tensor]:
    for chunk in chunks:
        if chunk.abs().max() > threshold:
            yield chunk / chunk.abs().max()


def loudness(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for chunk in loud(windows(x, 3), threshold=1.0):
        total = total + chunk
    return total


case(loudness, [(f(0, 2, 1, 0.1, 0.2, 0.3, -4, 2, 1, 0),), (torch.zeros(10),), (5 * randn(10),)], grad=True)


def bouncing_ball(height: Tensor, dt: float = 0.05) -> dict[str, Tensor]:
    state = {"height": height, "speed": torch.zeros_like(height), "bounces": torch.zeros((), dtype=torch.long)}
    while state["bounces"] < 3:
        state["speed"] = state["speed"] - 9.8 * dt
        state["height"] = state["height"] + state["speed"] * dt
        if state["height"] < 0:
            state |= {"height": -state["height"], "speed": -0.5 * state["speed"], "bounces": state["bounces"] + 1}
    return state


case(bouncing_ball, [(f(1),), (f(5),), (f(0.01),)], grad=True)


def augment(x: Tensor, op: tuple) -> Tensor:
    match op:
        case ("scale", float(factor)) if factor != 0:
            return x * factor
        case ("shift", by, *rest):
            return x + by + len(rest)
        case ("clamp", {"min": low, "max": high}):
            return x.clamp(low, high) if x.max() > high else x
        case _:
            return x


case(
    augment,
    [
        (f(1, 2), ("scale", 2.0)),
        (f(1, 2), ("shift", 3, "x", "y")),
        (f(1, 9), ("clamp", {"min": 0, "max": 5})),
        (f(1, 2), ("clamp", {"min": 0, "max": 5})),
        (f(1, 2), ("scale", 0.0)),
    ],
)


def step_by_code(x: Tensor, codes: Tensor) -> Tensor:
    for code in codes:
        match int(code):
            case 0:
                x = x + 1
            case 1 | 2:
                x = x * int(code)
            case _:
                x = -x
    return x


case(step_by_code, [(f(1, 2), i64(0, 1, 2)), (f(1, 2), i64(2, 2, 7)), (f(1, 2), i64(3, 0, 0))])
