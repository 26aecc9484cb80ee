"""A process of `bench.first`: ``python bench/_first_process.py CONTENDER [loaded]`` prints the seconds of each step."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

OF_TORCH = ("torch.fx.experimental.symbolic_shapes", "torch._dynamo.config", "torch.fx.experimental.validator")
"""What both contenders need of torch, beyond ``import torch``."""

Decorate = Callable[[Any], Any]


def solve(x: Tensor, limit: float) -> Tensor:
    while x.abs().sum() > limit:
        x = x * 0.5
    if x.sum() > 0:
        return x + 1
    return x - 1


def other(x: Tensor, limit: float) -> Tensor:
    if x.max() > limit:
        x = x - limit
    return x.tanh()


def _stillgraph() -> Decorate:
    decorate: Decorate = importlib.import_module("stillgraph").to_static(backend="eager")
    return decorate


def _compile() -> Decorate:
    return torch.compile(backend="eager")


CONTENDERS = {"stillgraph": _stillgraph, "torch.compile": _compile}


def main(contender: str, is_loaded: bool) -> dict[str, float]:
    """Seconds of the processor for each step."""
    torch.set_num_threads(1)
    x = torch.ones(4)
    for name in OF_TORCH if is_loaded else ():
        importlib.import_module(name)
    times = [time.process_time()]
    decorate = CONTENDERS[contender]()
    first, second = decorate(solve), decorate(other)
    times.append(time.process_time())
    first(x, 1.0)
    times.append(time.process_time())
    second(x, 1.0)
    times.append(time.process_time())
    steps = ("import and decorate", "first call", "second function")
    return {step: after - before for step, before, after in zip(steps, times, times[1:], strict=False)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], "loaded" in sys.argv[2:])))
