"""BERT pretraining: masked words and next sentences, AdamW, clipped gradients, a warm-up; loss by loss as in eager.

Run with ``python examples/bert_pretraining.py --steps 60``. The model is Hugging Face's, small and random; it becomes
static, the loop around it stays what it was. Everything is done in float64 and then in float32.
"""

import argparse

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForPreTraining, get_linear_schedule_with_warmup

import stillgraph as sg

CONFIG = BertConfig(
    vocab_size=40,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=32,
)
MASK, IGNORED = 4, -100


def batch(step: int, size: int = 16, length: int = 16) -> dict[str, Tensor]:
    """Sentences that count upwards; a second one follows the first, or does not. One word in seven is hidden."""
    generator = torch.Generator().manual_seed(step)
    start = torch.randint(5, CONFIG.vocab_size - length, (size, 1), generator=generator)
    follows = torch.randint(0, 2, (size,), generator=generator)
    second = torch.arange(length) >= length // 2
    tokens = start + torch.arange(length)
    tokens = torch.where(second & (follows == 0).unsqueeze(1), tokens.flip(1), tokens)
    hidden = torch.rand(tokens.shape, generator=generator) < 0.15
    return {
        "input_ids": tokens.masked_fill(hidden, MASK),
        "token_type_ids": second.long().expand(size, -1),
        "labels": tokens.masked_fill(~hidden, IGNORED),
        "next_sentence_label": 1 - follows,
    }


def train(model: nn.Module, steps: int) -> list[float]:
    """An ordinary training loop; the losses, step by step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=steps // 10 + 1, num_training_steps=steps)
    losses = []
    for step in range(steps):
        torch.manual_seed(step)  # of the dropout
        loss = model(**batch(step)).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def main(steps: int = 60) -> None:
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-5)):
        models = []
        for _ in range(2):
            torch.manual_seed(0)
            models.append(BertForPreTraining(CONFIG).to(dtype).train())
        eager, static = models
        expected = train(eager, steps)
        losses = train(sg.to_static(static, backend="eager"), steps)
        difference = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
        assert difference <= tolerance, difference
        print(f"{dtype}: loss {losses[0]:.3f} -> {losses[-1]:.3f}; every one within {difference:.0e} of eager's")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Pretrain a small BERT.")
    parser.add_argument("--steps", type=int, default=60)
    main(**vars(parser.parse_args()))
