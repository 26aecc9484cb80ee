"""Check static functions on a CUDA device: ``python tools/check_cuda.py``. Exits 1 if one differs from eager PyTorch."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import stillgraph as sg


def halve(x: Tensor, limit: Tensor) -> tuple[Tensor, int]:
    steps = 0
    while x.norm() > limit:
        x = x / 2
        steps += 1
    return x, steps


def iterate(x: Tensor, weight: Tensor, count: Tensor) -> Tensor:
    for _ in range(count):
        x = torch.tanh(x @ weight) + 0.1 * x
    return x


def mixed(x: Tensor, weight: Tensor) -> Tensor:
    if x.abs().max() < 3:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = x @ weight
        y = y.float()
    else:
        y = x @ weight
    return y


class EarlyExit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        for depth, block in enumerate(self.blocks):
            x = torch.relu(block(x))
            if x.mean() < 0.05:
                return x, depth
        return x, len(self.blocks)


def make(device: str) -> dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]]:
    torch.manual_seed(0)
    x, weight = torch.randn(64, 64, device=device), torch.randn(64, 64, device=device) / 8
    return {
        "halve": (halve, [(x, torch.tensor(1.0, device=device)), (x / 1e3, torch.tensor(1.0, device=device))]),
        "iterate": (iterate, [(x, weight, torch.tensor(n)) for n in (200, 3, 0)]),
        "mixed precision": (mixed, [(x, weight), (0.1 * x, weight)]),
        "early exit": (EarlyExit().to(device), [(x,), (0.01 * x,)]),
    }


def main() -> int:
    device = "cuda"
    print(torch.__version__, torch.cuda.get_device_name())
    worst = 0.0
    for backend in ("eager", "inductor"):
        for name, (target, calls) in make(device).items():
            forward = target.forward if isinstance(target, nn.Module) else target
            static = sg.to_static(forward, backend=backend)
            with torch.no_grad():
                pairs = [(static(*args), forward(*args)) for args in calls]
                difference = max(
                    (a - b).abs().max().item() if isinstance(a, Tensor) else float(a != b)
                    for got, want in pairs
                    for a, b in zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want), strict=True)
                )
                times = [timed(f, calls[0]) for f in (static, forward)]
            programs = static.cache_info().programs
            print(f"{backend:9} {name:16} difference {difference:.1e}  programs {programs}  "
                  f"static {times[0] * 1e3:.3f} ms  eager {times[1] * 1e3:.3f} ms")
            worst = max(worst, difference)
    return int(worst > 2e-2)


def timed(function: Callable[..., Any], args: tuple[Any, ...], rounds: int = 20) -> float:
    """Median seconds of a call, the device waited for."""
    seconds = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function(*args)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return sorted(seconds)[len(seconds) // 2]


if __name__ == "__main__":
    sys.exit(main())
