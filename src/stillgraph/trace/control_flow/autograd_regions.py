"""Staging what autograd calls: the backward pass of a function that is followed, and checkpoints."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.program.context import current_context
from stillgraph.program.facts.rerouting import function_named, rerouted
from stillgraph.program.operations import checkpointed
from stillgraph.program.so_far import SO_FAR
from stillgraph.program.types import TensorType, Type
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.arms import Arm, run_arm
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.region_interface import unify_captures
from stillgraph.trace.control_flow.staging import bind_outputs, close_arms, give_outputs
from stillgraph.trace.graph.node_arguments import as_argument
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.exits import Exit, Return
from stillgraph.trace.torch_rules import layouts


# ---- the backward pass of a function
@dataclass(frozen=True)
class Forward:
    """What the forward pass has done.

    Attributes:
        name: of the function.
        inputs: the tensors it was given.
        results: the tensors it has given.
        constant: which of them have no gradient.
        saved: the tensors it has saved.
        zeros: whether the backward pass gets zeros for a gradient that there is not.
    """

    name: str
    inputs: tuple[torch.Tensor, ...]
    results: tuple[torch.Tensor, ...]
    constant: tuple[int, ...]
    saved: tuple[torch.Tensor, ...]
    zeros: bool

    @property
    def own(self) -> list[int]:
        """Which of the saved tensors are results."""
        mine = set(map(id, self.results))
        return [place for place, each in enumerate(self.saved) if id(each) in mine]


Backward = Callable[[list[Any], list[Any]], Sequence[Any]]
"""Given the gradients of the results and the tensors that were saved, it gives the gradient of each input, or None."""


def stage_backward(recorder: Recorder, forward: Forward, backward: Backward) -> list[torch.Tensor]:
    """The results of a forward pass, with a backward pass of the program's behind them."""
    arm = Arm(Region(recorder.region))
    with recorder.resume(arm.region):
        grads = [_taken(recorder, arm.region, "grad", each, False) for each in forward.results]
        held: list[Any] = list(forward.saved)
        for place in forward.own:
            held[place] = _taken(recorder, arm.region, "saved", forward.saved[place], True)

    def block() -> Exit:
        return Return(tuple(backward(grads, held)))

    with _as_in_backward():
        run_arm(recorder, block, (), arm)
    for written, _ in arm.writes.values():
        message = f"the backward pass of {forward.name} changes {written}, which outlives it"
        raise refuse("SG305", message, location=here(), hint="Let backward compute gradients, and change nothing else.")
    given = arm.exit.value if arm.exit is not None and not arm.diverged else (None,) * len(forward.inputs)
    with recorder.resume(arm.region):
        arm.outputs = [None if each is None else as_argument(recorder, each) for each in given]
    _forget_progress(arm.region)
    operands = unify_captures(recorder, [arm.region])
    body = recorder.region.attribute("backward", arm.region.close(arm.outputs))
    options = {"name": forward.name, "own": forward.own, "constant": list(forward.constant), "zeros": forward.zeros}
    given_to = (None, forward.results, forward.saved, forward.inputs, options, ())
    node = recorder.emit("call_function", rerouted, given_to, {})
    node.args = (body, *node.args[1:5], tuple(operands))
    return list(_tracked(recorder, node, forward, options))


@contextlib.contextmanager
def _as_in_backward() -> Iterator[None]:
    """Torch's modes as `in_backward` has them."""
    with contextlib.ExitStack() as modes, torch.no_grad():
        for each in current_context().autocast:
            modes.enter_context(torch.autocast(each.device_type, enabled=False))
        yield


def _taken(recorder: Recorder, region: Region, name: str, like: torch.Tensor, tracked: bool) -> torch.Tensor:
    """What stands in the backward pass for a gradient of a tensor, or for the tensor."""
    fake = recorder.to_fake(like)
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        inside: torch.Tensor = torch.empty_like(fake)
        inside.requires_grad_(tracked and inside.is_floating_point())
    layouts.let_vary(inside)
    region.define(inside, region.placeholder(name, inside))
    return inside


def _tracked(
    recorder: Recorder, node: fx.Node, forward: Forward, options: dict[str, Any]
) -> Iterator[torch.Tensor]:
    """The results as autograd has them from here on."""
    fakes, inputs = (tuple(map(recorder.to_fake, each)) for each in (forward.results, forward.inputs))
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        found = function_named(forward.name).apply(None, fakes, (), options, *inputs)
    node.meta["val"] = tuple(found)
    for place, result in enumerate(found):
        part = recorder.region.graph.call_function(operator.getitem, (node, place))
        part.meta.update(node.meta, val=result, bookkeeping=True)
        recorder.region.define(result, part)
        yield result


def _forget_progress(region: Region) -> None:
    """Let no operation of a backward pass say what the call has done so far: the call is over by then."""
    for node in region.graph.nodes:
        node.meta.pop(SO_FAR, None)
    for inside in region.attributes.values():
        if isinstance(inside, Region):
            _forget_progress(inside)


# ---- checkpoints
def stage_checkpoint(
    recorder: Recorder, block: Callable[[list[Any]], Exit], inputs: list[Any], options: dict[str, Any]
) -> Any:
    """What a checkpointed block returns.

    Args:
        recorder: the capture.
        block: what is called, given what stands for the inputs.
        inputs: the tensors at which autograd's graph is cut, if the checkpoint is reentrant; none otherwise.
        options: of `torch.utils.checkpoint.checkpoint`.
    """
    mark = recorder.symbolic.mark
    body, never = Arm(Region(recorder.region)), Arm(Region(recorder.region), diverged=True)
    with recorder.resume(body.region):
        fresh = [_placeholder(recorder, body.region, value) for value in inputs]
    body = run_arm(recorder, lambda: block(fresh), (), body)
    cut = bool(inputs) and not any(recorder.to_fake(value).requires_grad for value in inputs)

    def emit(joiner: Joiner) -> list[Any]:
        give_outputs(recorder, body, never, joiner.pairs)
        operands = unify_captures(recorder, [body.region])
        region = recorder.region.attribute("checkpointed", body.region.close(body.outputs))
        node = recorder.emit("call_function", checkpointed, (None, tuple(inputs), (), options), {})
        node.args = (region, node.args[1], tuple(operands), node.args[3])
        types = [_without_gradient(pair.type) if cut else pair.type for pair in joiner.pairs]
        return bind_outputs(recorder, node, types, [pair.place for pair in joiner.pairs])

    exit = close_arms(recorder, emit, body, never, (), (), mark)
    assert exit is not None, "the block returns"
    return exit.value


def _placeholder(recorder: Recorder, region: Region, value: Any) -> Any:
    """What stands for an input inside."""
    fake = recorder.to_fake(value)
    with torch._C.DisableTorchFunction(), recorder.symbolic.fake_mode:
        inside = fake.detach().requires_grad_(fake.requires_grad)
    region.define(inside, region.placeholder("input", inside))
    return inside


def _without_gradient(type_: Type) -> Type:
    return replace(type_, requires_grad=False) if isinstance(type_, TensorType) else type_
