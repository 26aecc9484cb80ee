"""Which tensors of a call a function may not write to in place where they are leaves that require gradients.

A file is captured, and runs, without gradients, where every tensor can be written to. Its callers may have grad mode
on, where eager PyTorch raises for a leaf, and a handler of the function's may take that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.regions import placeholders
from stillgraph.passes.state.memory import flow_of
from stillgraph.program.guards import ModeGuard
from stillgraph.program.program import Input, Program
from stillgraph.program.sources import Source
from stillgraph.runtime.native.function_writer import read_source

Writes = dict[Source, dict[Any, Any]]  # for each place: operations by their line


def not_for_leaves(
    program: Program, capture: Callable[[], Program], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Source, ...]:
    """The arguments that may be no leaves that require gradients in a call with grad mode on.

    The function is captured once more with such leaves: a write that this capture lacks, eager PyTorch refuses.

    Args:
        program: captured without gradients.
        capture: captures it again.
        args, kwargs: the call, a receiver first.

    Raises:
        ExportError: with grad mode on, a write to a parameter is one that PyTorch refuses.
    """
    known = _writes(program)
    if not known:
        return ()
    inputs = {each.source: each for each in program.inputs}
    tensors = {source: read_source(source, args, kwargs) for source in known if inputs[source].kind == "argument"}
    found: Writes = {}
    # Of any kind: where the second capture fails, nothing is known to be allowed, so that more is refused.
    with _leaves(tensors.values()), torch.enable_grad(), contextlib.suppress(Exception):
        found = _writes(capture())
    wrong = {source: lines for source, lines in known.items() if not lines.keys() <= found.get(source, {}).keys()}
    if torch.is_grad_enabled():
        for source, lines in wrong.items():
            if inputs[source].kind != "argument":
                _refuse(inputs[source], next(node for line, node in lines.items() if line not in found.get(source, {})))
    unclear = {source for source, tensor in tensors.items() if tensor.requires_grad and not tensor.is_leaf}
    return tuple(source for source in tensors if source in wrong or source in unclear)


def written_with_gradients(program: Program) -> tuple[Source, ...]:
    """The same of a program that was captured before: those that it writes to with grad mode on."""
    if not any(isinstance(guard, ModeGuard) and guard.context.grad for guard in program.guards):
        return ()
    arguments = {each.source for each in program.inputs if each.kind == "argument"}
    return tuple(
        source
        for source, lines in _writes(program).items()
        if source in arguments and any(_has_gradients(node) for node in lines.values())
    )


def _has_gradients(node: Any) -> bool:
    context = node.meta.get("context")
    return context is None or bool(context.grad)


def _writes(program: Program) -> Writes:
    """What a program writes to in place that may require a gradient, and where."""
    writers = flow_of(program.graph).writers
    found: Writes = {}
    for each, node in zip(program.inputs, placeholders(program.graph), strict=True):
        if node in writers and _may_require_gradient(each):
            found[each.source] = {writer.meta.get("location"): writer for writer in writers[node]}
    return found


def _may_require_gradient(each: Input) -> bool:
    if not isinstance(each.value, torch.Tensor):
        return False
    differentiable = each.value.is_floating_point() or each.value.is_complex()
    return differentiable and (each.kind == "argument" or each.value.requires_grad)


@contextlib.contextmanager
def _leaves(tensors: Any) -> Iterator[None]:
    """Let tensors require gradients for a while."""
    changed = [tensor for tensor in tensors if not tensor.requires_grad and not tensor.is_inference()]
    try:
        for tensor in changed:
            tensor.requires_grad_(True)
        yield
    finally:
        for tensor in changed:
            tensor.requires_grad_(False)


def _refuse(each: Input, writer: Any) -> None:
    message = f"{each.source} requires a gradient and is written to in place, which PyTorch refuses with grad mode on"
    hint = "Write to it under torch.no_grad(), or save under torch.no_grad() if the file is for that alone."
    raise refuse("SG402", message, location=writer.meta.get("location"), hint=hint)
