"""Functions with control flow, and what to call them with: later inputs take other branches and trip counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import stillgraph as sg
from stillgraph.program.program import Program
from stillgraph.runtime.native.function_writer import read_source
from stillgraph.runtime.native.native import lower


def branch(x: Tensor, limit: Tensor) -> Tensor:
    if x.sum() > limit:
        y = x * 2
    else:
        y = x - limit
    return y + 1


def loop(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    steps = 0
    while x.norm() > limit:
        x = x / 2
        steps += 1
    return x, steps


def branch_in_loop(x: Tensor, limit: Tensor) -> tuple[Tensor, int, float]:
    scale, steps = 1.0, 0
    while x.sum() < limit:
        if x.max() > 3:
            x = x + scale
            scale = scale * 1.5
        elif x.max() > 2:
            x = x * 2
        else:
            x = x + steps + 1
        steps += 1
    return x, steps, scale


def loop_in_branch(x: Tensor, limit: Tensor) -> Tensor:
    if x.sum() < limit:
        for i in range(int(limit)):
            x = x + i / 2
    return x


def broken_loop(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    found = -1
    for i in range(x.shape[0]):
        if x[i] > limit:
            found = i
            break
        if x[i] < 0:
            continue
        x = x * 1.5
    return x, found


def returned_from_loop(x: Tensor, limit: Tensor) -> Tensor:
    i = 0
    while i < 8:
        x = x + 1
        if x.sum() > limit:
            return x * 100
        i += 1
    return x


def numbers(x: Tensor, limit: Tensor) -> tuple[Tensor, int, float, bool]:
    n = int(x.sum())
    ratio = n / 3
    if n > 4:
        n = n // 2
        ratio = float(n % 3)
    whole = ratio == int(ratio)
    return x * ratio + n, n, round(ratio, 2), whole and n > 0


def optional(x: Tensor, limit: Tensor) -> Tensor:
    best = None
    for row in x:
        if row > limit:
            best = row * 2
    if best is None:
        return x.sum()
    return best + x.sum()


def mutated(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    total = torch.zeros(3)
    while total.sum() < limit:
        total.add_(x.abs() + 1)
        if total.max() > 2:
            total[0] = 5.0
    return total, total * 2


def aliased(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    y = x
    if x.sum() > limit:
        y = x.view(-1)
        z = y
    else:
        z = x
    return y, z


def listed(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor, int]:
    kept = [x]
    while x.norm() > limit:
        x = x / 2
        kept.append(x)
    if x.sum() > 1:
        kept.pop(0)
    last = kept[-1] if kept else x
    return torch.stack([*kept, x]), last, len(kept)


def indexed(x: Tensor, limit: Tensor) -> Tensor:
    table = [1.0, 10.0, 100.0]
    out = torch.zeros(2, 3)
    for i in range(int(limit) % 3 + 1):
        out[1, i] = x[i] * table[i] + x[-1]
    return out


class Stateful(nn.Module):
    """A buffer written in place, one replaced, and a Python counter."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("last", torch.zeros(3))
        self.calls = 0

    def forward(self, x: Tensor, limit: Tensor) -> dict[str, Any]:
        self.calls += 1
        y = self.linear(x)
        if y.sum() > limit:
            self.total += y
        self.last = y * self.calls
        return {"y": y + self.total, "calls": self.calls}


@dataclass(frozen=True)
class Sample:
    """A target and its calls."""

    name: str
    make: Callable[[], Any]
    calls: tuple[tuple[Tensor, ...], ...]

    def capture(self) -> tuple[Program, tuple[Any, ...]]:
        """The program, and the call it was captured from, its receiver first."""
        torch.manual_seed(0)
        target = self.make()
        receiver = (target,) if isinstance(target, nn.Module) else ()
        return sg.export(target, self.calls[0]), (*receiver, *self.calls[0])

    def fresh(self) -> Any:
        """The target with its parameters as at capture."""
        torch.manual_seed(0)
        return self.make()


def _calls(*pairs: tuple[list[float], float]) -> tuple[tuple[Tensor, ...], ...]:
    return tuple((torch.tensor(values), torch.tensor(limit)) for values, limit in pairs)


_ANY = _calls(([1.0, 2.0, 3.0], 4.0), ([0.5, 0.1, 0.2], 2.0), ([9.0, -1.0, 4.0], 0.5), ([-1.0, -2.0, 2.5], 7.0))
SAMPLES = {
    function.__name__: Sample(function.__name__, lambda function=function: function, _ANY)
    for function in (
        branch,
        loop,
        branch_in_loop,
        loop_in_branch,
        broken_loop,
        returned_from_loop,
        numbers,
        optional,
        mutated,
        aliased,
        indexed,
        listed,
    )
}
SAMPLES["Stateful"] = Sample("Stateful", Stateful, _ANY)


def run(program: Program, args: tuple[Any, ...]) -> list[Any]:
    """What a program's native lowering gives; inputs are copied, numbers that became tensors are read."""
    inputs = [
        value.detach().clone() if isinstance(value := read_source(given.source, args, {}), Tensor) else value
        for given in program.inputs
    ]
    places = program.graph.graph.find_nodes(op="placeholder")
    inputs = [
        torch.tensor(value, dtype=place.meta["val"].dtype)
        if not isinstance(value, Tensor) and isinstance(place.meta["val"], Tensor)
        else value
        for value, place in zip(inputs, places, strict=True)
    ]
    return [
        value.item() if isinstance(value, Tensor) and value.dim() == 0 else value
        for value in lower(program, None).run(*inputs)
    ]
