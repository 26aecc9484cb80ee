"""Tracing: a function is run once, for real, and what it does to tensors is written down (seed 001's TracedLayer)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from stillgraph.core.location import Location
from stillgraph.program.guards import IdentityGuard
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument
from stillgraph.trace.capture.results import Results
from stillgraph.trace.graph.current import active
from stillgraph.trace.graph.fake_tensors import FakeTensors
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.guards.facts import mode_guard
from stillgraph.trace.guards.inputs import Inputs
from stillgraph.trace.sources.sources import Finder
from stillgraph.trace.torch_rules.call_results import has_staged


class _RealTensors(FakeTensors):
    """Nothing is faked."""

    def to_fake(self, value: Any) -> Any:
        """The value itself."""
        return value

    def real_of(self, tensor: torch.Tensor) -> None:
        """No tensor is told from those that are made on the way."""

    def of(self, real: torch.Tensor) -> torch.Tensor:
        """The tensor itself."""
        return real


class Tracer(Recorder):
    """A recorder that lets every call happen: Python sees real tensors, so each condition is decided by their data."""

    def __init__(self, lift: Callable[[torch.Tensor], fx.Node]) -> None:
        super().__init__(lift, lambda value, what: value)
        self.fakes = _RealTensors(self.symbolic)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "__get__":
            with torch._C.DisableTorchFunction():
                result = func(*args)
            name = func.__self__.__name__
            if not has_staged(result) or name in ("grad", "_base"):
                return result
            return self.bind(result, self.emit("call_function", getattr, (args[0], name), {}))
        return self.record(func, args, kwargs or {})

    def run(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Run a torch call as it is."""
        with torch._C.DisableTorchFunction():
            return func(*args, **kwargs)


def trace(function: Callable[..., Any], args: tuple[Any, ...], name: str) -> Program:
    """Run ``function(*args)`` and record its tensor operations.

    Args:
        function: any callable; a module's receiver is not among ``args``.
        args: real arguments.
        name: of the program.
    """
    finder = Finder(args, {})
    finder.add_root(function)
    finder.complete()
    inputs = Inputs(finder, lambda source, tensor: (False,) * tensor.dim())
    tracer = Tracer(inputs.lift)
    inputs.recorder = tracer
    with torch._C.DisableTorchFunction():
        arguments = tuple(inputs.argument(a, Argument(i)) for i, a in enumerate(args))
    with active(tracer):
        value = _call_traced(function, arguments)
        results = Results(tracer, finder)
        with torch._C.DisableTorchFunction():
            template = results.template(value)
            graph = tracer.root.close(results.outputs).module()
    for node in graph.graph.nodes:
        node.meta["val"] = torch.utils._pytree.tree_map_only(torch.Tensor, tracer.symbolic.fake, node.meta.get("val"))
    faked = tuple(
        type(i)(
            i.name, i.kind, i.source, tracer.symbolic.fake(i.value) if isinstance(i.value, torch.Tensor) else i.value
        )
        for i in inputs.inputs
    )
    objects = [IdentityGuard(source, value) for value, source in inputs.objects]
    return Program(name, _location(function), faked, graph, template, (), (mode_guard(), *inputs.guards, *objects))


def _call_traced(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Where what is traced begins, see `frames`."""
    return function(*args)


def _location(function: Any) -> Location:
    inner = getattr(function, "forward", function)
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    return Location("<unknown>", 1) if code is None else Location(
        code.co_filename, code.co_firstlineno, function=code.co_name
    )
