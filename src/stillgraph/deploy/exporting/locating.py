"""From an exporter's error to the user's line: which operation of a module it is about."""

from __future__ import annotations

import contextlib
import linecache
import re
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from stillgraph.core.diagnostics import ExportError
from stillgraph.core.location import Location
from stillgraph.passes.regions.values import value_of
from stillgraph.program.graphs import regions
from stillgraph.program.program import Program


def line_of(module: fx.GraphModule, error: BaseException) -> Location | None:
    """The user's line behind an error of `torch.export` or `torch.onnx`, or None if nobody can say.

    Args:
        module: what was exported, its nodes with ``meta["location"]``.
        error: the exporter's. It went through the module's code, or it names an operation of ATen's.
    """
    named = [*_nodes_run(module, error), *_nodes_calling(module, operation_in(error))]
    return next((node.meta["location"] for node in named if node.meta.get("location") is not None), None)


@contextlib.contextmanager
def located(program: Program) -> Iterator[None]:
    """While a program is exported: an error that names no line of the user's is about the program's own."""
    try:
        yield
    except ExportError as error:
        raise error.located(program.location) from error.__cause__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# ---- by the code that ran
def _nodes_run(module: fx.GraphModule, error: BaseException) -> Iterator[fx.Node]:
    """The nodes whose lines of generated code an error went through, the innermost first."""
    lines = [line for each in _chain(error) for line in _generated_lines(each.__traceback__)]
    for line in reversed(lines):
        name = re.match(r"\s*(\w+)\s*=", line)
        for region in regions(module):
            if name is not None and line.strip() in region.code:
                yield from (node for node in region.graph.nodes if node.name == name[1])


def _generated_lines(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith("<eval_with_key>"):
            yield linecache.getline(file, trace.tb_lineno)
        trace = trace.tb_next


# ---- by the operation that an error names
def operation_in(error: BaseException) -> str | None:
    """The operation of ATen's that an error names, itself or as ours that stands for it: ``aten._linalg_eigh``."""
    for each in _chain(error):
        found = re.search(r"\b(?:torch\.ops\.)?((?:aten|stillgraph)\.\w+)|op='((?:aten|prims)\.\w+)'", str(each))
        if found is not None:
            return _of_torch(found[1] or found[2])
    return None


def _of_torch(name: str) -> str:
    """ATen's operation for one of ours, which has its name."""
    return name.replace("stillgraph.", "aten.")


def _nodes_calling(module: fx.GraphModule, name: str | None) -> Iterator[fx.Node]:
    """The nodes that call an operation of ATen's; each is run once more, on fake tensors."""
    if name is None:
        return
    for region in regions(module):
        for node in region.graph.nodes:
            if node.op in ("call_function", "call_method") and name in _operations_of(node):
                yield node


class _Names(TorchDispatchMode):
    """The operations that are called."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.found: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found.add(_of_torch(f"{func.namespace}.{func.overloadpacket.__name__}"))
        return func(*args, **(kwargs or {}))


def _operations_of(node: fx.Node) -> set[str]:
    args, kwargs = tree_map(value_of, (tuple(node.args), dict(node.kwargs)))
    target: Any = node.target if node.op == "call_function" else getattr(torch.Tensor, str(node.target), None)
    names = _Names()
    with names:
        try:
            target(*args, **kwargs)
        except Exception:  # a branch or loop, or what runs on no fake tensors: those are not asked
            return set()
    return names.found
