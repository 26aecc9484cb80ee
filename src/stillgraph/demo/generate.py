"""Hugging Face's ``generate()``, untouched: prefill, loop, cache and stopping rules in a ``.pt2`` and an ``.onnx``."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import stillgraph as sg
from stillgraph.demo.outcome import Outcome, largest_difference, timed_capture, write_listing

_NEW = 8
_SHAPES = ((2, 5), (3, 9), (4, 3))  # batches and lengths of prompts


def run(out: Path) -> Outcome:
    """Save ``generate()`` of a small GPT-2, and compare the tokens for prompts of several batches and lengths."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=64,
        n_embd=32,
        n_layer=1,
        n_head=2,
        n_positions=64,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
        initializer_range=0.5,  # so that the tokens vary
    )
    model = GPT2LMHeadModel(config).eval()

    def generate(ids: Tensor) -> Tensor:
        tokens: Tensor = model.generate(ids, max_new_tokens=_NEW, do_sample=False)
        return tokens

    prompts = [torch.randint(2, config.vocab_size, shape) for shape in _SHAPES]
    sizes = [sg.InputSpec([None, None], torch.int64)]
    program, seconds = timed_capture(lambda: sg.export(generate, (prompts[0],), input_spec=sizes))
    files = out / "generate.pt2", out / "generate.onnx"
    for file in files:
        sg.save(program, file, args=(prompts[0],))
    expected = [generate(ids) for ids in prompts]
    found = [[loaded(ids) for ids in prompts] for loaded in map(sg.load, files)]
    shown = ", ".join(f"{batch}x{length}" for batch, length in _SHAPES)
    return Outcome(
        program=program,
        capture_seconds=seconds,
        difference=largest_difference([expected] * len(files), found),
        tolerance=0.0,
        files=(*files, write_listing(program, out / "generate.txt")),
        remarks=(f"prompts {shown}", f"{_NEW} new tokens each", "same tokens from both files"),
    )
