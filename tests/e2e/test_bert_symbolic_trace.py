"""Seed 004: pretraining Hugging Face's BERT through `symbolic_trace`, each forward one segment without a break."""

from __future__ import annotations

import contextvars
import copy
import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same, tensors_in
from tests.unit.leaks.objects import census, frames, resident

pytest.importorskip("transformers")

from transformers import BertConfig, BertForPreTraining, BertForSequenceClassification

from tests.e2e.huggingface_models import MODELS, Model

VOCABULARY = 40


def bert(dtype: torch.dtype = torch.float32, **options: Any) -> nn.Module:
    """A small random BERT in training mode, the same one each time."""
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 32,
    }
    torch.manual_seed(0)
    model = BertForPreTraining(BertConfig(**{**sizes, **options}))
    made: nn.Module = model.to(dtype).train()
    return made


def batch(number: int, size: int = 4, length: int = 12, padded: bool = False) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(number)
    tokens = torch.randint(5, VOCABULARY, (size, length), generator=generator)
    hidden = torch.rand(tokens.shape, generator=generator) < 0.3
    made = {
        "input_ids": tokens.masked_fill(hidden, 4),
        "token_type_ids": (torch.arange(length) >= length // 2).long().expand(size, -1),
        "labels": tokens.masked_fill(~hidden, -100),
        "next_sentence_label": torch.randint(0, 2, (size,), generator=generator),
    }
    if padded:
        lengths = torch.randint(length // 2, length + 1, (size, 1), generator=generator)
        made["attention_mask"] = (torch.arange(length) < lengths).long()
    return made


def traced(model: nn.Module) -> Any:
    return sg.symbolic_trace(model, strict=True)


def stepper(model: nn.Module, call: Callable[[nn.Module], Any] = traced) -> Callable[..., dict[str, Any]]:
    """What makes a training step, and gives its loss and gradients."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def step(number: int, **options: Any) -> dict[str, Any]:
        torch.manual_seed(number)  # of the dropout
        optimizer.zero_grad()
        loss = call(model)(**batch(number, **options)).loss
        loss.backward()
        gradients = {name: copy.copy(p.grad) for name, p in model.named_parameters()}
        optimizer.step()
        return {"loss": loss.detach(), "gradients": gradients}

    return step


def plain(model: nn.Module) -> nn.Module:
    return model


def assert_bitwise(expected: Any, found: Any) -> None:
    assert_same(expected, found)
    pairs = zip(tensors_in(expected), tensors_in(found), strict=True)
    assert [place for place, (one, other) in enumerate(pairs) if not one.equal(other)] == []


def assert_whole(model: Any, programs: int) -> None:
    """A call is one segment: there is nothing that Python carries out, and nothing that goes on behind it."""
    plan = model.forward.plan
    assert not any(plan.breaks.residual.values())
    assert len(plan.segments) == 1
    assert model.forward.cache_info().programs == programs


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_training_steps_are_eagers(dtype: torch.dtype) -> None:
    eager, model = bert(dtype), bert(dtype)
    expected, found = stepper(eager, plain), stepper(model)
    for number in range(5):
        assert_bitwise(expected(number), found(number))
    assert_bitwise(dict(eager.state_dict()), dict(model.state_dict()))
    assert_whole(model, 1)
    assert model.forward.cache_info().hits == 4


def test_each_call_of_symbolic_trace_gives_the_module_and_its_programs() -> None:
    model = bert()
    function = traced(model).forward.__func__
    for number in range(3):
        assert traced(model) is model
        assert traced(model).forward.__func__ is function
        traced(model)(**batch(number))
    assert_whole(model, 1)


def test_train_and_eval_are_a_program_each() -> None:
    eager, model = bert(), bert()
    expected, found = stepper(eager, plain), stepper(model)
    for number in range(4):
        for each in (eager, model):
            each.train(number % 2 == 0)
        assert_bitwise(expected(number), found(number))
    assert_whole(model, 2)


def test_another_shape_is_another_program() -> None:
    expected, model = stepper(bert(), plain), bert()
    found = stepper(model)
    for number, shape in enumerate(((4, 12), (3, 12), (4, 12), (3, 12))):
        options = dict(zip(("size", "length"), shape))
        assert_bitwise(expected(number, **options), found(number, **options))
    assert_whole(model, 2)


def test_padding_is_the_tensors_affair() -> None:
    expected, model = stepper(bert(), plain), bert()
    found = stepper(model)
    for number in range(4):
        assert_bitwise(expected(number, padded=True), found(number, padded=True))
    assert_whole(model, 1)


@pytest.mark.parametrize("kind", ["sdpa", "eager"])
def test_either_attention(kind: str) -> None:
    expected, model = stepper(bert(attn_implementation=kind), plain), bert(attn_implementation=kind)
    found = stepper(model)
    for number in range(3):
        assert_bitwise(expected(number, padded=True), found(number, padded=True))
    assert_whole(model, 1)


@pytest.mark.slow
def test_gradient_checkpointing() -> None:
    eager, model = bert(), bert()
    for each in (eager, model):
        each.gradient_checkpointing_enable()  # type: ignore[operator]  # of the library's class
    expected, found = stepper(eager, plain), stepper(model)
    for number in range(3):
        assert_bitwise(expected(number), found(number))
    assert_whole(model, 1)


# ---- other models
def _others(*, training: bool) -> list[Any]:
    def marks(name: str, model: Model) -> list[pytest.MarkDecorator]:
        return [] if name in ("bert", "gpt2") and not training else [pytest.mark.slow]

    whole = {name: model for name, model in MODELS.items() if not (model.pending or model.pending_training)}
    return [pytest.param(model, id=name, marks=marks(name, model)) for name, model in whole.items()]


@pytest.mark.parametrize("model", _others(training=False))
@torch.no_grad()
def test_a_model_is_one_segment(model: Model) -> None:
    eager, static = model.build(), model.build()
    for seed in (1, 2):
        assert_bitwise(eager(**model.make_inputs(seed)), traced(static)(**model.make_inputs(seed)))
    assert_whole(static, 1)


@pytest.mark.parametrize("model", _others(training=True))
def test_a_training_step_of_a_model_is_one_segment(model: Model) -> None:
    eager, static = model.build().train(), model.build().train()
    for seed in (1, 2):
        expected = _step(eager, eager, model.make_inputs(seed), seed)
        assert_bitwise(expected, _step(static, traced(static), model.make_inputs(seed), seed))
    assert_whole(static, 1)


def _step(module: nn.Module, call: Any, inputs: dict[str, Tensor], seed: int) -> dict[str, Any]:
    module.zero_grad(set_to_none=True)
    torch.manual_seed(seed)
    result = call(**inputs)
    torch.stack([t.square().mean() for t in tensors_in(result) if t.requires_grad]).sum().backward()
    return {"result": result, "gradients": {name: p.grad for name, p in module.named_parameters()}}


# ---- memory
@pytest.mark.slow
def test_five_hundred_steps_leave_nothing_behind() -> None:
    """The pioneers' frames grew by thousands with each step; here no object is left, nor memory."""
    model = bert(hidden_size=8, num_attention_heads=2, intermediate_size=8, num_hidden_layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(number: int) -> None:
        optimizer.zero_grad()
        traced(model)(**batch(number, size=2, length=8)).loss.backward()
        optimizer.step()

    for number in range(50):
        step(number)
    before, kept, memory = census(), frames(), resident()
    for number in range(500):
        step(number)
    assert model.forward.cache_info()[:3] == (549, 1, 1)
    assert frames() <= kept
    assert {name: count for name, count in (census() - before).items() if count > 2} == {}
    assert resident() - memory < 4096


def test_the_first_call_of_a_process() -> None:
    """No context variable holds anything, no source has been read, and the model's config is completed."""

    def calls() -> None:
        torch.manual_seed(0)
        sizes = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        eager = BertForSequenceClassification(BertConfig(**sizes, intermediate_size=48, num_labels=3))
        static = traced(copy.deepcopy(eager))
        linecache.clearcache()
        for number in range(3):
            given = {"input_ids": batch(number)["input_ids"], "labels": torch.tensor([0, 2, 1, 0])}
            results = []
            for model in (eager, static):
                torch.manual_seed(number)
                results.append(model(**given))
            assert_same(*results)
        assert not any(static.forward.plan.breaks.residual.values())

    contextvars.Context().run(calls)
