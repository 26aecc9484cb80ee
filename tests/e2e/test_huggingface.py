"""Hugging Face models are captured whole, one program each, and give eager's results."""
from __future__ import annotations

import pytest
import torch

import stillgraph as sg
from tests.cases.compare import assert_same, tensors_in

pytest.importorskip("transformers")

from tests.e2e.huggingface_models import MODELS, Model

_SEEDS = (1, 2)


def _parameters() -> list[object]:
    marks = {True: (), False: (pytest.mark.slow,)}
    return [pytest.param(model, id=name, marks=marks[model.quick]) for name, model in MODELS.items()]


@pytest.mark.parametrize("model", _parameters())
@torch.no_grad()
def test_forward_is_one_program_with_eagers_results(model: Model) -> None:
    eager = model.build()
    static = sg.to_static(model.build(), backend="eager")
    for seed in _SEEDS:
        expected = eager(**model.make_inputs(seed))
        actual = static(**model.make_inputs(seed))
        assert_same(expected, actual)
        if model.exact:
            differing = [a for a, e in zip(tensors_in(actual), tensors_in(expected), strict=True) if not a.equal(e)]
            assert not differing, f"{len(differing)} results are close to eager's but not bitwise equal"
    assert static.forward.cache_info().programs == 1


def test_there_are_at_least_twenty_model_classes() -> None:
    assert len({model.cls for model in MODELS.values()}) >= 20
