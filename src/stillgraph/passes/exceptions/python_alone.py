"""What only Python can do has no form in a whole graph."""

from __future__ import annotations

import enum
import operator
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.passes.regions.values import value_of
from stillgraph.program import operations
from stillgraph.program.context import Context
from stillgraph.program.graphs import arguments, regions
from stillgraph.program.guards import ModeGuard
from stillgraph.program.program import Program

_HINTS: dict[Any, str] = {
    operations.recursion: "Write the recursion as a loop, or return the recursive call as it is: that becomes one.",
    torch.autograd.grad: "Take the derivative outside, or write it out; or save as .py, which differentiates.",
    torch.autograd.backward: "Call backward outside, or save as .py, which differentiates.",
    operations.to_numpy: "Return the tensor, and call numpy() on it outside.",
    torch.random.manual_seed: "Seed outside: a file draws from the generator of what runs it.",
    torch.lstm: "Give it the padded tensor and mask what lies behind each length, or save as .py.",
    operations.make_generator: "Draw with torch's own generator (torch.rand without generator=), or pass the numbers.",
}
_REASONS: dict[Any, str] = {
    operations.recursion: "the program has a recursion, which no graph format knows",
    torch.autograd.grad: "the program differentiates",
    torch.autograd.backward: "the program differentiates",
    operations.to_numpy: "the program makes a numpy array",
    torch.random.manual_seed: "the program seeds the random generator",
    operations.make_generator: "the program makes a random generator",
    operations.generator_state: "the program reads the state of a random generator",
    operations.set_generator_state: "the program sets the state of a random generator",
    operator.is_: "the program asks whether two tensors are one object",
}


def refuse_python_alone(program: Program) -> Program:
    """The program, if a whole graph can express it.

    ::

        a = x.numpy()     →     an error that says so

    Raises:
        ExportError: it recurs, compares identities, or changes the default dtype. (torch's other switches decide
            no values.)
    """
    dtypes = [guard.default_dtype for guard in program.guards if isinstance(guard, ModeGuard)]
    for region in regions(program.graph):
        _refuse_flags(region)
        for node in region.graph.nodes:
            if dtypes and _default_dtype(node) not in (None, *dtypes):
                raise refuse("SG402", "the program changes the default dtype", location=node.meta.get("location"))
            reason = _REASONS.get(node.target) if node.op == "call_function" else None
            target = node.target
            if node.op == "call_method" and target == "backward":
                reason, target = "the program differentiates", torch.autograd.backward
            if any(isinstance(value_of(given), torch.Generator) for given in node.all_input_nodes):
                reason = "the program draws from a random generator that is not torch's own"
                hint = _HINTS[operations.make_generator]
                raise refuse("SG402", reason, location=node.meta.get("location"), hint=hint)
            if _takes_packed(node):
                reason, target = "a recurrent layer takes a packed sequence, whose sizes the run decides", torch.lstm
            if reason is not None and not (node.target is operator.is_ and node.args[1] is None):
                raise refuse("SG402", reason, location=node.meta.get("location"), hint=_HINTS.get(target))
    return program


_RECURRENT = frozenset({torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu})


def _takes_packed(node: fx.Node) -> bool:
    """Whether a node is a recurrent layer on what `pack_padded_sequence` gives: its weights stand one place later."""
    return node.target in _RECURRENT and isinstance(arguments(node)[3], (list, tuple))


def _refuse_flags(region: fx.GraphModule) -> None:
    """Refuse what gives a member of a class of flags, made of a number of the run: a graph has plain numbers."""
    flags: set[Any] = set()
    for node in region.graph.nodes:
        given = arguments(node) if node.target in _OF_BITS else ()
        if any(each in flags if isinstance(each, fx.Node) else isinstance(each, enum.IntFlag) for each in given):
            flags.add(node)
    handed = next((node for node in arguments(region.graph.output_node())[0] if node in flags), None)
    if handed is not None:
        hint = "Take int(...) of it."
        raise refuse("SG402", "the program makes a flag of a number", location=handed.meta.get("location"), hint=hint)


_OF_BITS = frozenset({operator.and_, operator.or_, operator.xor, operator.invert})


def _default_dtype(node: fx.Node) -> torch.dtype | None:
    """What an operation takes for torch's default dtype."""
    context: Context | None = node.meta.get("context")
    return None if context is None else context.default_dtype
