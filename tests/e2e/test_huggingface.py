"""Hugging Face models are captured whole, one program each, and give eager's results and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same, tensors_in

pytest.importorskip("transformers")

from tests.e2e.huggingface_models import MODELS, Model

_SEEDS = (1, 2)


def _models(*, training: bool) -> list[Any]:
    def marks(model: Model) -> list[pytest.MarkDecorator]:
        slow = [] if model.quick and not training else [pytest.mark.slow]
        pending = model.pending or (model.pending_training if training else None)
        return slow if pending is None else [*slow, pytest.mark.xfail(reason=pending, strict=True)]

    return [pytest.param(model, id=name, marks=marks(model)) for name, model in MODELS.items()]


@pytest.mark.parametrize("model", _models(training=False))
@torch.no_grad()
def test_forward_is_one_program_with_eagers_results(model: Model) -> None:
    eager = model.build()
    static = sg.to_static(model.build(), backend="eager")
    for seed in _SEEDS:
        expected = eager(**model.make_inputs(seed))
        actual = static(**model.make_inputs(seed))
        assert_same(expected, actual)
        _assert_bitwise(tensors_in(expected), tensors_in(actual))
    assert static.forward.cache_info().programs == 1


@pytest.mark.parametrize("model", _models(training=True))
def test_a_training_step_is_one_program_with_eagers_gradients(model: Model) -> None:
    eager = model.build().train()
    static = sg.to_static(model.build().train(), backend="eager")
    for seed in _SEEDS:
        expected = _step(eager, model.make_inputs(seed), seed)
        actual = _step(static, model.make_inputs(seed), seed)
        assert_same(expected, actual)
        _assert_bitwise(tensors_in(expected), tensors_in(actual))
        assert_same(eager.state_dict(), static.state_dict(), "the state")
    assert static.forward.cache_info().programs == 1


def _step(module: nn.Module, inputs: dict[str, Tensor], seed: int) -> dict[str, Any]:
    """Results and gradients of a step on the mean square of all results; the seed is dropout's."""
    module.zero_grad(set_to_none=True)
    torch.manual_seed(seed)
    result = module(**inputs)
    torch.stack([t.square().mean() for t in tensors_in(result) if t.requires_grad]).sum().backward()
    return {"result": result, "gradients": {name: p.grad for name, p in module.named_parameters()}}


def _assert_bitwise(expected: list[Tensor], actual: list[Tensor]) -> None:
    differing = [place for place, (e, a) in enumerate(zip(expected, actual)) if not e.equal(a)]
    assert not differing, f"tensors {differing} are close to eager's but not bitwise equal"


def test_there_are_at_least_twenty_model_classes() -> None:
    assert len({model.cls for model in MODELS.values()}) >= 20
