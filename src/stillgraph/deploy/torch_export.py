"""The adapter to `torch.export`: what may change between releases of torch is used here alone."""

from __future__ import annotations

import contextlib
import logging
import operator
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch.export import Dim, ExportedProgram

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.locating import line_of
from stillgraph.passes.values import value_of
from stillgraph.program.graphs import arguments, regions

_LOGGERS = (
    "torch.export",
    "torch._export",
    "torch.fx.experimental.symbolic_shapes",
    "torch.onnx",
    "onnxscript",
    "onnx_ir",
)


def export(module: fx.GraphModule, args: tuple[torch.Tensor, ...], dynamic: list[set[int]]) -> ExportedProgram:
    """Trace a module of tensors.

    Args:
        module: takes and gives tensors.
        args: examples; a dimension that is to stay open must not be 0 or 1.
        dynamic: for each example the dimensions that stay open.

    Raises:
        ExportError: torch refuses.
    """
    shapes = tuple(dict.fromkeys(dims, Dim.DYNAMIC) or None for dims in dynamic)
    try:
        with _quiet(), torch.no_grad():
            exported = torch.export.export(module, args, dynamic_shapes=shapes, strict=False)
    except Exception as error:
        raise refuse("SG402", f"torch.export: {summary(error)}", location=line_of(module, error)) from error
    _spell_sums(exported.graph_module)
    return exported


def _spell_sums(module: fx.GraphModule) -> None:
    """Put additions of two in the place of ``torch.sym_sum``, which torch makes of sizes, and cannot write."""
    for region in regions(module):
        for node in region.graph.find_nodes(op="call_function", target=torch.sym_sum):
            first, *rest = arguments(node)[0]
            for other in rest:
                with region.graph.inserting_before(node):
                    total = region.graph.call_function(operator.add, (first, other))
                total.meta.update(node.meta, val=value_of(first) + value_of(other))
                first = total
            node.replace_all_uses_with(first)
            region.graph.erase_node(node)
        region.recompile()


def summary(error: BaseException) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch's own remarks on the way to an export away from the user's terminal."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels):
                logger.setLevel(level)


quiet: Any = _quiet
