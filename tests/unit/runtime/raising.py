"""Functions that raise errors when they run. (No test module: there, pytest rewrites assertions.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def as_it_stands(graph_module: Any, example_inputs: list[Any]) -> Callable[..., Any]:
    """A backend that compiles nothing."""
    return graph_module.forward  # type: ignore[no-any-return]


def picked(x: Tensor, i: Tensor) -> Tensor:
    total = x[0]
    for offset in range(3):
        if x.sum() > 0:
            total = total + x[i + offset]
    return total


def in_an_arm(x: Tensor, i: Tensor) -> Tensor:
    if x.sum() > 0:
        x = picked(x, i) * 2
    return x


def of_a_size_only_the_run_knows(x: Tensor, w: Tensor) -> Tensor:
    kept = x[x > 0]
    return torch.relu(kept) @ w


def counted_down(x: Tensor, i: Tensor) -> Tensor:
    while x.sum() > 0:
        x = x - torch.stack([x, x])[
            i
        ]
        i = i + 1
    return x


def compared(x: Tensor) -> Tensor:
    while x > 0:
        x = x - 1
    return x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 3)

    def looked_up(self, i: Tensor) -> Tensor:
        return self.table(i)

    def forward(self, x: Tensor, i: Tensor) -> Tensor:
        if x.sum() > 0:
            x = x + self.looked_up(i)
        return x


def halved(x: Tensor, depth: Tensor) -> Tensor:
    if depth > 0:
        return halved(x / 2, depth - 1)
    return x[depth]


class TooLarge(ValueError):
    def __init__(self, what: str, limit: float) -> None:
        super().__init__(f"{what} is over {limit}")
        self.what, self.limit = what, limit


def checked(x: Tensor) -> Tensor:
    if x.sum() > 3:
        raise TooLarge("the sum", 3)
    return x


def checking(x: Tensor) -> Tensor:
    for _ in range(2):
        x = checked(x) + 1
    return x


def with_a_value_of_the_run(x: Tensor) -> Tensor:
    if x.sum() > 3:
        raise TooLarge(f"{x.sum().item():.1f}", x.max().item())
    return x


def asserted(x: Tensor) -> Tensor:
    assert x.sum() > 0, f"of sum {x.sum().item()}"
    return x


def divided(x: Tensor) -> float:
    count = x.sum().item()
    share = 1 / count
    return share


def gathered(x: Tensor, i: Tensor) -> Tensor:
    found = []
    while x.sum() > 0:
        found.append(x)
        x = x - 1
    return found[int(i)]


def named(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return {"a": x}["b"]
    return x


def from_another(x: Tensor) -> Tensor:
    try:
        return checked(x)
    except ValueError as error:
        raise RuntimeError("not checked") from error


class Refusing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        if grad.sum() > 10:
            raise TooLarge("the gradient", 10)
        return grad * 2


def differentiated(x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    y = (Refusing.apply(x) * x.detach()).sum()
    y.backward()
    return x.grad


def hooked(x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    x.register_hook(refuse_large)
    (x * x.detach()).sum().backward()
    return x.grad


def refuse_large(grad: Tensor) -> None:
    if grad.max() > 10:
        raise TooLarge("the gradient", 10)


def table_twice(x: Tensor, table: Tensor, i: Tensor) -> Tensor:
    scaled = table * 2
    first = scaled.cos()
    if x.sum() > 0:
        x = x + first.sum()
        row = torch.embedding(first, i)
        x = x + row
    return x


def fails(graph_module: Any, example_inputs: list[Any]) -> Callable[..., Any]:
    """A backend whose code raises an error of its own."""

    def run(*inputs: Any) -> Any:
        outputs = graph_module.forward(*inputs)
        raise KeyError("a fault of the backend's", len(outputs))

    return run


def table_args(index: int) -> tuple[Tensor, Tensor, Tensor]:
    return torch.ones(3), torch.ones(4, 3), torch.tensor(index)


def written_before(x: Tensor, i: Tensor) -> Tensor:
    x.add_(1)
    y = x.cos()
    return torch.embedding(y, i)


def modes_left(x: Tensor, i: Tensor) -> Tensor:
    with torch.no_grad():
        y = x.cos().sin()
        z = torch.embedding(y, i)
    return z * x.sum()


def always_wrong(x: Tensor) -> Tensor:
    if x.sum() > 0:
        x = x + 1
    return x @ torch.ones(7)


def refused(x: Tensor) -> Tensor:
    if x.sum() > 0:
        x = x.apply_(lambda v: v)
    return x


def wrong_in_a_block(x: Tensor) -> Tensor:
    for _ in range(2):
        if x.shape[0] == 3:
            x = always_wrong(x)
    return x


def of_a_table(table: Tensor, i: Tensor) -> Tensor:
    return torch.embedding(table.cos(), i)


class Stepped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.optimizer = torch.optim.SGD([self.weight], lr=0.1)


def stepped(net: Stepped, x: Tensor) -> Tensor:
    loss = (net.weight * x).sum()
    loss.backward()
    net.optimizer.step()
    return loss.detach()


def refuse_large_steps(optimizer: Any, args: Any, kwargs: Any) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad.abs().max() > 10:
                raise TooLarge("a step", 10)
