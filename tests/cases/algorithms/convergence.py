"""Iterations that stop when they have converged."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.cases.case import case
from tests.cases.tensors import f, i64, normal

randn = normal(seed=7)


def clusters(*centers: tuple[float, float]) -> Tensor:
    return torch.cat([f(c) + 0.3 * randn(4, 2) for c in centers])


WEIGHT = 0.3 * randn(4, 4)
SYMMETRIC = (lambda m: m + m.T)(randn(5, 5))


def fixed_point(x: Tensor, weight: Tensor, damping: float = 0.5, tol: float = 1e-4, max_steps: int = 200):
    """Solve z = tanh(weight z + x) by damped iteration."""
    z = torch.zeros_like(x)
    steps = 0
    while steps < max_steps:
        update = torch.tanh(weight @ z + x)
        z_next = (1 - damping) * z + damping * update
        steps += 1
        if (z_next - z).abs().max() < tol:
            return z_next, steps
        z = z_next
    return z, steps


case(
    fixed_point,
    [(randn(4), WEIGHT), (5 * randn(4), WEIGHT), (torch.zeros(4), WEIGHT), (f(0.1, 0.2, 0.3, 0.4), -8 * torch.eye(4))],
    grad=True,
)


def logistic_loss(weight: Tensor, features: Tensor, labels: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(features @ weight, labels)


def backtracking_descent(weight: Tensor, features: Tensor, labels: Tensor, max_steps: int = 20):
    """Gradient descent for logistic regression; each step size is found by backtracking."""
    loss = logistic_loss(weight, features, labels)
    for _ in range(max_steps):
        gradient = features.T @ (torch.sigmoid(features @ weight) - labels) / labels.numel()
        if gradient.norm() < 1e-2:
            break
        step = 8.0
        candidate = weight - step * gradient
        while logistic_loss(candidate, features, labels) > loss - 0.5 * step * gradient.square().sum():
            step = step / 2
            candidate = weight - step * gradient
        weight = candidate
        loss = logistic_loss(weight, features, labels)
    return weight, loss


case(
    backtracking_descent,
    [(torch.zeros(3), s * randn(10, 3), (randn(10) > 0).float()) for s in (1, 4, 0.2)]
    + [(torch.zeros(3), torch.zeros(10, 3), torch.ones(10))],
    grad=True,
)


def gcd(a: Tensor, b: Tensor) -> Tensor:
    while b != 0:
        a, b = b, a % b
    return a


case(gcd, [(i64(48), i64(18)), (i64(17), i64(5)), (i64(9), i64(0)), (i64(0), i64(4))])


def power_iteration(matrix: Tensor, vector: Tensor, max_steps: int = 100):
    """The dominant eigenvalue, its vector, and whether the iteration converged."""
    vector = vector / vector.norm()
    eigenvalue = vector @ matrix @ vector
    converged = False
    for _ in range(max_steps):
        vector = matrix @ vector
        vector = vector / vector.norm()
        previous, eigenvalue = eigenvalue, vector @ matrix @ vector
        if torch.abs(eigenvalue - previous) < 1e-5 * torch.abs(eigenvalue):
            converged = True
            break
    return eigenvalue, vector, converged


case(
    power_iteration,
    [(SYMMETRIC @ SYMMETRIC, randn(5)), (torch.eye(5), randn(5)), (torch.diag(f(1, -1, 0.5, 0.2, 0)), torch.ones(5))],
)


def kmeans(points: Tensor, centers: Tensor):
    """Lloyd's algorithm until no point changes its cluster; an empty cluster keeps its center."""
    labels = torch.full((points.shape[0],), -1)
    rounds = 0
    while True:
        new_labels = torch.cdist(points, centers).argmin(dim=1)
        if torch.equal(new_labels, labels):
            return centers, labels, rounds
        labels = new_labels
        moved = []
        for k in range(centers.shape[0]):
            members = labels == k
            if members.any():
                moved.append(points[members].mean(dim=0))
            else:
                moved.append(centers[k])
        centers = torch.stack(moved)
        rounds += 1


case(
    kmeans,
    [
        (clusters((0, 0), (5, 5), (0, 5)), randn(3, 2)),
        (clusters((0, 0), (1, 1), (2, 0)), randn(3, 2)),
        (clusters((0, 0), (5, 5), (0, 5)), f([[0, 0], [5, 5], [90, 90]])),
    ],
)


def relaxation(x: Tensor, boundary: Tensor) -> tuple[Tensor, Tensor]:
    """Relax the inner values towards their neighbours' mean until they hardly move."""
    relaxed = relax(x, boundary)
    while (change := (relaxed - x).abs().max()) > 1e-2:
        x, relaxed = relaxed, relax(relaxed, boundary)
    return relaxed, change


case(relaxation, [(10 * randn(6), f(0, 1)), (torch.zeros(6), f(0, 0)), (randn(6), f(3, -3))])


def relax(x: Tensor, boundary: Tensor) -> Tensor:
    padded = torch.cat([boundary[:1], x, boundary[1:]])
    return (padded[:-2] + padded[2:]) / 2


class Bracket(NamedTuple):
    low: Tensor
    high: Tensor
    steps: int


def golden_section(center: Tensor, width: Tensor) -> Bracket:
    """Minimise |t - center|^1.5 + cos(t) by shrinking a bracket."""

    def cost(t: Tensor) -> Tensor:
        return (t - center).abs() ** 1.5 + torch.cos(t)

    bracket = Bracket(center - width, center + width, 0)
    while bracket.high - bracket.low > 1e-2:
        a = bracket.high - 0.618 * (bracket.high - bracket.low)
        b = bracket.low + 0.618 * (bracket.high - bracket.low)
        if cost(a) < cost(b):
            bracket = bracket._replace(high=b, steps=bracket.steps + 1)
        else:
            bracket = bracket._replace(low=a, steps=bracket.steps + 1)
    return bracket


case(golden_section, [(f(0), f(1)), (f(2), f(3)), (f(1), f(0.001))])


@dataclass
class Momentum:
    position: Tensor
    velocity: Tensor
    restarts: int = 0


def restarted_momentum(x: Tensor, curvature: Tensor) -> Momentum:
    """Accelerated descent on a quadratic; velocity that points uphill is dropped."""
    state = Momentum(x, torch.zeros_like(x))
    gradient = curvature * state.position
    while gradient.norm() > 1e-2:
        velocity = 0.9 * state.velocity - 0.05 * gradient
        if (velocity * gradient).sum() > 0:
            state = replace(state, velocity=torch.zeros_like(x), restarts=state.restarts + 1)
        else:
            state.position = state.position + velocity
            state.velocity = velocity
        gradient = curvature * state.position
    return state


case(restarted_momentum, [(f(1, 2), f(1, 3)), (f(0, 0), f(1, 3)), (f(5, -4), f(4, 0.5))])
