"""Hugging Face's `generate()`, untouched: one program, with a full graph and without, and eager's tokens."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stillgraph as sg

pytest.importorskip("transformers")

from bench.generate import PROGRAMS, generator, prompt, seeded

OPEN = [sg.InputSpec([None, None], torch.int64)]
FIXED = [*PROGRAMS]
SERVING_EVERY_SIZE = ["gpt2", "gpt2, sampled", "gpt2, 3 beams", "gpt2, penalties", "llama", "t5"]


def tokens_are_eagers(name: str, static: Any, given: list[torch.Tensor]) -> None:
    plain = generator(name)
    for each in given:
        assert torch.equal(seeded(static, each), seeded(plain, each))
    assert len(static.programs) == 1


@pytest.mark.slow
@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("name", FIXED)
def test_it_is_one_program(name: str, full_graph: bool) -> None:
    static = sg.to_static(generator(name), backend="eager", full_graph=full_graph)
    tokens_are_eagers(name, static, [prompt(name, seed) for seed in range(4)])


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVING_EVERY_SIZE)
def test_one_program_serves_every_batch_and_length(name: str) -> None:
    static = sg.to_static(generator(name), backend="eager", input_spec=OPEN)
    tokens_are_eagers(name, static, [prompt(name, seed, *size) for seed, size in enumerate([(2, 5), (3, 9), (4, 3)])])
