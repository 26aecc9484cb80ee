"""One training step of a small BERT: forward, both losses, and the gradient of every parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForPreTraining

import stillgraph as sg
from stillgraph.demo.outcome import Outcome, largest_difference, timed_capture, write_listing

_SEED = 7


def run(out: Path) -> Outcome:
    """Capture the model in train mode and compare a step, dropout included, with eager PyTorch."""
    config = BertConfig(
        vocab_size=128,
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=32,
    )
    torch.manual_seed(0)
    model = BertForPreTraining(config).train()
    batches = [_batch(config.vocab_size, seed) for seed in (1, 2)]
    expected = [_step(model, batch) for batch in batches]

    static = sg.to_static(model, backend="eager")
    program, seconds = timed_capture(lambda: static.forward.get_program(**batches[0]))
    found = [_step(static, batch) for batch in batches]
    programs = static.forward.cache_info().programs
    return Outcome(
        program=program,
        capture_seconds=seconds,
        difference=largest_difference(expected, found),
        tolerance=0.0,
        files=(write_listing(program, out / "bert.txt"),),
        remarks=(f"loss {found[0]['loss'].item():.4f}", f"{len(found[0]['gradients'])} gradients", "dropout on"),
        faults=() if programs == 1 else (f"{programs} programs where one serves",),
    )


def _batch(vocabulary: int, seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(5, vocabulary, (4, 16), generator=generator)
    lengths = torch.randint(8, 16, (4, 1), generator=generator)
    hidden = torch.rand(tokens.shape, generator=generator) < 0.15
    return {
        "input_ids": tokens.masked_fill(hidden, 4),
        "attention_mask": (torch.arange(16) < lengths).long(),
        "labels": tokens.masked_fill(~hidden, -100),
        "next_sentence_label": torch.randint(0, 2, (4,), generator=generator),
    }


def _step(model: nn.Module, batch: dict[str, Tensor]) -> dict[str, Any]:
    """The results of one step; the seed makes dropout draw the same numbers each time."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(_SEED)
    result = model(**batch)
    result.loss.backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {**result, "gradients": gradients}
