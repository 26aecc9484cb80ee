"""Programs written by hand, for tests of the runtime."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx, nn

from stillgraph.program.context import current_context
from stillgraph.program.effects import Effect
from stillgraph.program.guards import Guard, ModeGuard, TensorGuard
from stillgraph.program.outputs import Output, Template
from stillgraph.program.program import Input, Program
from stillgraph.program.sources import Argument, Source
from stillgraph.runtime.calls.static_function import StaticFunction

X = Argument(0)


def graph_of(function: Callable[..., Any], inputs: int) -> fx.GraphModule:
    """The graph of a function of ``inputs`` values."""
    graph = fx.Graph()
    placeholders = [graph.placeholder(f"x{i}") for i in range(inputs)]
    tracer = fx.proxy.GraphAppendingTracer(graph)
    proxies = [fx.Proxy(node, tracer) for node in placeholders]
    outputs = function(*proxies)
    graph.output(fx.node.map_aggregate(outputs, lambda value: value.node if isinstance(value, fx.Proxy) else value))
    return fx.GraphModule(nn.Module(), graph)


def mode_guard() -> ModeGuard:
    return ModeGuard(current_context(), torch.get_default_dtype(), torch.get_default_device())


def tensor_guard(source: Source, value: torch.Tensor, **changes: Any) -> TensorGuard:
    facts = {
        "type": type(value),
        "dtype": value.dtype,
        "device": value.device,
        "shape": tuple(value.shape),
        "strides": None,
        "requires_grad": value.requires_grad,
    }
    return TensorGuard(source, **(facts | changes))


def inputs_at(*sources: Source) -> tuple[Input, ...]:
    return tuple(Input(f"x{i}", "argument", source, None) for i, source in enumerate(sources))


def program_of(
    function: Callable[..., Any],
    sources: Sequence[Source] = (X,),
    guards: Sequence[Guard] = (),
    result: Template = Output(0),  # noqa: B008 - frozen
    effects: Sequence[Effect] = (),
) -> Program:
    graph = graph_of(function, len(sources))
    return Program("program", None, inputs_at(*sources), graph, result, tuple(effects), tuple(guards))


def run_eagerly(program: Program, backend: Any) -> Callable[..., Any]:
    return backend(program.graph, [item.value for item in program.inputs])


class Switches:
    """What the global switch and the capture would say."""

    def __init__(self) -> None:
        self.capturing = False
        self.enabled = True


def static(
    original: Any, capture: Callable[..., Program], switches: Switches | None = None, **options: Any
) -> StaticFunction[Any, Any]:
    switches = switches or Switches()
    return StaticFunction(
        original,
        capture,
        **{"compile_program": run_eagerly} | options,
        is_capturing=lambda: switches.capturing,
        is_enabled=lambda: switches.enabled,
    )
