"""Straight-line regions as a backend compiles them; where one fails, the operation that it fails at is found."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import fx

from stillgraph.core.tracebacks import full_traceback
from stillgraph.program.context import Context, are_hooks_on, restore
from stillgraph.program.facts.schemas import draws, is_custom
from stillgraph.program.facts.writes import written_arguments

Compile = Callable[[fx.GraphModule, list[Any]], Callable[..., Any]]


class _Driver(Protocol):
    @property
    def run(self) -> Callable[..., tuple[Any, ...]]: ...


class LazyRegion:
    """A straight-line region, compiled by the backend when it is first run.

    What a backend raises tells of its own code. So where it fails, the operations are made one after the other in plain
    PyTorch, and the first that fails there raises what eager PyTorch would have raised, on the user's line.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        compile: Compile,
        in_eager: Callable[[], _Driver],
        ambient: Context | None,
    ) -> None:
        """Make a region that is not compiled yet.

        Args:
            module: the region's graph.
            compile: the backend.
            in_eager: makes a driver of the same operations, which takes and gives the same.
            ambient: torch's modes around the region; its graph may switch them on the way.
        """
        self._module = module
        self._compile = compile
        self._in_eager = in_eager
        self._ambient = ambient
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *inputs: Any) -> Any:
        try:
            if self._compiled is None:
                self._compiled = self._compile(self._module, list(inputs))
            return self._compiled(*inputs)
        except Exception as error:  # of any kind: a backend's
            if self._ambient is not None:
                restore(replace(self._ambient, switches=()))  # which no region turns
            if full_traceback() or not self._can_be_repeated(error, inputs):
                raise
            failure = self._failure(inputs)
            if failure is None:
                raise
            failure.__context__ = None  # the backend's error
        try:
            raise failure
        finally:
            del failure  # it holds this frame

    def _failure(self, inputs: Sequence[Any]) -> Exception | None:
        """What the operations raise one by one, run on copies of what they would write to."""
        nodes = self._module.graph.nodes
        random = any(map(draws, nodes))
        try:
            if any(map(written_arguments, nodes)):
                inputs = [_copy(value) if isinstance(value, torch.Tensor) else value for value in inputs]
            with torch.random.fork_rng() if random else contextlib.nullcontext():
                self._in_eager().run(*inputs)
        except Exception as error:  # of any kind: an operation's
            return error
        return None

    def _can_be_repeated(self, error: Exception, inputs: Sequence[Any]) -> bool:
        """Whether the operations can be made once more without anybody's noticing."""
        if isinstance(error, torch.OutOfMemoryError) or are_hooks_on():  # a checkpoint's end a recomputation by raising
            return False
        plain = (torch.Tensor, torch.nn.Parameter)  # what other kinds do is their own affair: they may communicate
        if any(isinstance(value, torch.Tensor) and type(value) not in plain for value in inputs):
            return False
        return all(_is_torchs_own(node) for node in self._module.graph.nodes)


def _is_torchs_own(node: fx.Node) -> bool:
    """Whether a node computes with torch alone: an operator of the user's may do anything, a collective has to wait."""
    if node.op != "call_function":
        return True
    if isinstance(node.target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return not is_custom(node.target)
    module = getattr(node.target, "__module__", None) or ""
    if module.startswith(("torch.distributed", "torch._library")):
        return False
    return module.partition(".")[0] in ("", "torch", "_operator", "math", "builtins")


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy that may be written to where the tensor may be."""
    if tensor.requires_grad and tensor.is_leaf:
        return tensor.detach().clone().requires_grad_()
    return tensor.clone()
