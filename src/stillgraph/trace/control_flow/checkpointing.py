"""Staging a checkpoint: a region whose intermediate values the backward pass computes once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from stillgraph.program.operations import checkpointed
from stillgraph.program.types import TensorType, Type
from stillgraph.trace.control_flow.arms import Arm, run_arm
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.region_interface import unify_captures
from stillgraph.trace.control_flow.staging import bind_outputs, close_arms, give_outputs
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.exits import Exit


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
