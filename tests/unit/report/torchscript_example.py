# ruff: noqa (as people write for TorchScript)
"""A module with every idiom of TorchScript, for the golden file of `stillgraph migrate`."""
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor, jit, nn


class State(NamedTuple):
    h: Tensor
    c: Optional[Tensor]


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Cell(nn.Module):
    __constants__ = ["size"]
    limit: torch.jit.Final[int]

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.limit = 4
        self.linear = nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        steps = 0
        while x.norm() > 1 and steps < self.limit:
            x = self.linear(x) / 2
            steps += 1
        return x


class Old(torch.jit.ScriptModule):
    @torch.jit.script_method
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


@jit.script
def clipped(x: Tensor, most: float) -> Tensor:
    if bool(x.norm() > most):
        x = x / x.norm() * most
    return x


@torch.jit.script_if_tracing
def halved(x: Tensor) -> Tensor:
    while bool(x.norm() > 1):
        x = x / 2
    return x


@torch.jit._overload
def times(x: Tensor, by: int) -> Tensor: ...


@torch.jit._overload
def times(x: Tensor, by: float) -> Tensor: ...


def times(x, by):
    return x * by


class Decoder(nn.Module):
    step: Step
    __exhaustive_ignore__ = ["nothing"]
    __jit_unused_properties__ = ["device"]
    __jit_ignored_attributes__ = ["logger"]

    def __init__(self, size: int, compiled: bool = False):
        super().__init__()
        self.step = Cell(size)
        self.scale = torch.jit.Attribute({"a": 2.0}, Dict[str, float])
        self.inner = torch.jit.script(Cell(size)) if compiled else Cell(size)
        self.old = Old() if compiled else nn.Identity()

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def forward(self, xs: List[Tensor], state: Optional[Tensor] = None) -> Tuple[Tensor, State]:
        outputs = torch.jit.annotate(List[Tensor], [])
        if state is None:
            state = torch.zeros_like(xs[0])
        assert state is not None
        futures: List[torch.jit.Future[Tensor]] = [torch.jit.fork(self.step, x) for x in xs]
        for future in futures:
            state = clipped(state + torch.jit.wait(future), 10.0)
            outputs.append(self.inner(state))
        if torch.jit.is_scripting() or torch.jit.is_tracing():
            return torch.stack(outputs), State(state, None)
        return self.told(torch.stack(outputs)), State(halved(state), state)

    @torch.jit.export
    def encode(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return times(x, 2)
        return self.left_out(x)

    @torch.jit.export
    def measure(self, x: Tensor) -> float:
        with torch.jit.strict_fusion():
            known = torch.jit._unwrap_optional(x)
        return float(open("scale.txt").read()) if known.sum() > 0 else 1.0

    @torch.jit.unused
    def told(self, x: Tensor) -> Tensor:
        return x.float()

    @torch.jit.ignore
    def left_out(self, x: Union[Tensor, List[Tensor]]) -> Tensor:
        if torch.jit.isinstance(x, List[Tensor]):
            return x[0]
        return x

    @torch.jit._overload_method
    def named(self, x: int) -> int: ...

    def named(self, x: Any) -> Any:
        return x

    def write(self, path: str, x: Tensor) -> None:
        frozen = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(self)))
        torch.jit.save(frozen, path)
        torch.jit.load(path)
        with torch.jit.optimized_execution(True), torch.jit.fuser("fuser1"):
            torch.jit.trace(self.encode, x)
            torch.jit.trace_module(self, {"encode": x})
