"""Hugging Face's `generate()`, untouched: one program, with a full graph and without, and eager's tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import stillgraph as sg

pytest.importorskip("transformers")

from bench.generate import PROGRAMS, generator, prompt, seeded
from tests.unit.deploy.alone import alone

OPEN = [sg.InputSpec([None, None], torch.int64)]
FIXED = [*PROGRAMS]
SIZES = [(2, 5), (3, 9), (4, 3)]  # batches and lengths of prompts
READERS = {
    ".pt2": """
        module = torch.export.load(path).module()
        run = lambda ids: module(ids)[0]
    """,
    ".onnx": """
        import onnxruntime
        session = onnxruntime.InferenceSession(path)
        run = lambda ids: torch.from_numpy(session.run(None, {session.get_inputs()[0].name: ids.numpy()})[0])
    """,
}
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
    tokens_are_eagers(name, static, [prompt(name, seed, *size) for seed, size in enumerate(SIZES)])


@pytest.mark.slow
@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("name", [name for name in FIXED if "sampled" not in name and name != "whisper"])
def test_a_file_gives_the_tokens_without_us(tmp_path: Path, name: str, suffix: str) -> None:
    plain = generator(name)
    given = [prompt(name, seed, *size) for seed, size in enumerate(SIZES)]
    sg.save(plain, path := tmp_path / f"generate{suffix}", args=(given[0],), input_spec=OPEN)
    torch.save((given, [plain(ids) for ids in given]), tmp_path / "expected")
    told = alone(f"""
        sys.modules["transformers"] = None
        path = {str(path)!r}
        {READERS[suffix].strip()}
        given, expected = torch.load({str(tmp_path / "expected")!r})
        print([torch.equal(run(ids), tokens) for ids, tokens in zip(given, expected)])
    """)
    assert told.splitlines() == ["[True, True, True]"]


@pytest.mark.slow
def test_whisper_of_any_batch_is_refused(tmp_path: Path) -> None:
    """It makes a tensor of a list that has a list for each sequence: without a sequence that has another rank."""
    spec = [sg.InputSpec([None, 8, 100])]
    with pytest.raises(sg.CaptureError, match="a tensor is made of a list whose elements are not numbers") as refused:
        sg.save(generator("whisper"), tmp_path / "generate.pt2", args=(prompt("whisper", 0, 2),), input_spec=spec)
    assert refused.value.reason.code == "SG210"
    assert not list(tmp_path.iterdir())
