"""Greedy decoding with a small GPT-2, written as a plain loop and exported to ONNX with the loop inside."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

import stillgraph as sg
from stillgraph.demo.outcome import Outcome, largest_difference, timed_capture, write_listing

_MAX_LENGTH = 24
_PAD = 0


class GreedyDecoder(nn.Module):
    """Append the likeliest token until every sequence has ended or the text is long enough."""

    def __init__(self, model: nn.Module, eos: int, max_length: int) -> None:
        super().__init__()
        self.model = model
        self.eos = eos
        self.max_length = max_length

    def forward(self, ids: Tensor) -> Tensor:
        finished = torch.zeros(ids.shape[0], dtype=torch.bool)
        while not finished.all() and ids.shape[1] < self.max_length:
            logits = self.model(ids, attention_mask=torch.ones_like(ids)).logits
            token = logits[:, -1].argmax(dim=-1)
            token = token.masked_fill(finished, _PAD)
            ids = torch.cat([ids, token.unsqueeze(1)], dim=1)
            finished = finished | (token == self.eos)
        return ids


def run(out: Path) -> Outcome:
    """Export the decoder, run the file in onnxruntime, and compare the tokens for several prompts."""
    config = GPT2Config(
        vocab_size=100,
        n_embd=48,
        n_layer=2,
        n_head=4,
        n_positions=32,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.5,  # so that the tokens vary
        use_cache=False,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config).eval()
    prompts = [torch.randint(5, config.vocab_size, (2, 6)) for _ in range(6)]
    with torch.no_grad():
        decoder = GreedyDecoder(model, _choose_eos(model, prompts), _MAX_LENGTH)
        expected = [decoder(prompt) for prompt in prompts]
        program, seconds = timed_capture(lambda: sg.export(decoder, (prompts[0],)))
        file = out / "gpt2.onnx"
        sg.save(decoder, file, args=(prompts[0],))
        static = sg.to_static(decoder, backend="eager")
        found = [static(prompt) for prompt in prompts]

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors: its remarks on the graph are of no use here
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    (name,) = [value.name for value in session.get_inputs()]
    exported = [torch.from_numpy(session.run(None, {name: prompt.numpy()})[0]) for prompt in prompts]

    lengths = sorted({tokens.shape[1] for tokens in expected})
    return Outcome(
        program=program,
        capture_seconds=seconds,
        difference=max(largest_difference(expected, found), largest_difference(expected, exported)),
        tolerance=0.0,
        files=(file, write_listing(program, out / "gpt2.txt")),
        remarks=(f"{len(prompts)} prompts", f"lengths {', '.join(map(str, lengths))}", "same tokens in onnxruntime"),
        faults=() if len(lengths) > 1 else ("all prompts stop at the same length",),
    )


def _choose_eos(model: nn.Module, prompts: list[Tensor]) -> int:
    """A token at which some prompts stop early and others never: random weights have no end of text of their own."""
    endless = GreedyDecoder(model, eos=-1, max_length=_MAX_LENGTH)
    written = [endless(prompt)[:, prompt.shape[1] :] for prompt in prompts]

    def stops(token: int) -> int:
        return sum(bool((tokens == token).any(dim=1).all()) for tokens in written)

    candidates: set[int] = {token for tokens in written for token in tokens.flatten().tolist()} - {_PAD}
    return min(sorted(candidates), key=lambda token: abs(stops(token) - len(prompts) / 2))
