"""Hugging Face's `generate()`: how long a first call and a warm call take, and how many programs they need.

``python -m bench.generate [NAME ...] [--rounds N] [--json FILE]``. Small random models, 8 new tokens. Every contender
has to give eager's tokens; in warm calls they take turns. Programs of `torch.compile` (backend ``eager``): its graphs.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch
import transformers
from rich.console import Console
from rich.table import Table
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.generate``

import stillgraph as sg
from bench._timing import interleave, median, median_ratio, write_json

NEW = 8
EAGER, FULL, PARTIAL, DYNAMO = "eager", "to_static", "full_graph=False", "torch.compile"
_SMALL = {"vocab_size": 64, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
_ROTARY = {
    **_SMALL,
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "max_position_embeddings": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}
_ENCODER_DECODER = {
    "d_model": 32,
    **{f"{part}_layers": 2 for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 2 for part in ("encoder", "decoder")},
    **{f"{part}_ffn_dim": 64 for part in ("encoder", "decoder")},
}


def gpt2() -> Any:
    """A GPT-2 of 2 layers."""
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, n_positions=64, **_SMALL)
    )


def llama() -> Any:
    """A Llama of 2 layers."""
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**_ROTARY))


def mistral() -> Any:
    """A Mistral of 2 layers."""
    return transformers.MistralForCausalLM(transformers.MistralConfig(**_ROTARY))


def t5() -> Any:
    """A T5 of 2 layers."""
    sizes = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    return transformers.T5ForConditionalGeneration(transformers.T5Config(decoder_start_token_id=0, **sizes))


def bart() -> Any:
    """A Bart of 2 layers."""
    ends = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = transformers.BartConfig(vocab_size=64, max_position_embeddings=64, **_ENCODER_DECODER, **ends)
    return transformers.BartForConditionalGeneration(config)


def whisper() -> Any:
    """A Whisper of 2 layers, for one language, without timestamps."""
    ends = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
    sizes = {"max_source_positions": 50, "max_target_positions": 64, "num_mel_bins": 8}
    none = {"suppress_tokens": None, "begin_suppress_tokens": None}
    config = transformers.WhisperConfig(vocab_size=64, **_ENCODER_DECODER, **ends, **sizes, **none)
    model = transformers.WhisperForConditionalGeneration(config)
    model.generation_config.no_timestamps_token_id = 60
    model.generation_config.is_multilingual = False
    return model


GREEDY = {"do_sample": False}
SAMPLED = {"do_sample": True, "top_k": 5, "temperature": 0.7}
PROGRAMS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "gpt2": (gpt2, GREEDY),
    "gpt2, sampled": (gpt2, SAMPLED),
    "gpt2, 3 beams": (gpt2, {"num_beams": 3, **GREEDY}),
    "gpt2, penalties": (gpt2, {"repetition_penalty": 1.3, "min_new_tokens": 4, **GREEDY}),
    "llama": (llama, GREEDY),
    "mistral": (mistral, GREEDY),
    "t5": (t5, GREEDY),
    "bart": (bart, GREEDY),
    "whisper": (whisper, GREEDY),
}
"""By name, what makes a model, and the options of `generate`."""


def generator(name: str) -> Callable[[Tensor], Tensor]:
    """A function that gives the tokens of a prompt, for a model of its own with the same weights each time."""
    make, options = PROGRAMS[name]
    torch.manual_seed(0)
    model = make().eval()

    def generate(ids: Tensor) -> Tensor:
        tokens: Tensor = model.generate(ids, max_new_tokens=NEW, **options)
        return tokens

    return generate


def prompt(name: str, seed: int, batch: int = 1, length: int = 5) -> Tensor:
    """A random prompt without special tokens, of shape ``[batch, length]``; for Whisper sounds ``[batch, 8, 100]``."""
    drawn = torch.Generator().manual_seed(seed)
    if name == "whisper":
        return torch.randn(batch, 8, 100, generator=drawn)
    return torch.randint(4, 60, (batch, length), generator=drawn)


def made(name: str, contender: str) -> tuple[Callable[[Tensor], Tensor], Callable[[], int]]:
    """A contender's function, and what counts its programs."""
    plain = generator(name)
    if contender == EAGER:
        return plain, lambda: 0
    if contender == DYNAMO:
        torch._dynamo.reset()
        graphs: list[Any] = []

        def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
            graphs.append(graph)
            return graph.forward

        return torch.compile(plain, backend=backend), lambda: len(graphs)
    static: Any = sg.to_static(plain, backend="eager", full_graph=contender == FULL)
    return static, lambda: len(static.programs)


def seeded(call: Callable[[Tensor], Tensor], ids: Tensor) -> Tensor:
    """A call that draws the same numbers as the others'."""
    torch.manual_seed(7)
    return call(ids)


def _same(call: Callable[[], object]) -> Callable[[], object]:
    return call


def measured(name: str, rounds: int) -> dict[str, dict[str, float]]:
    """Seconds of the first call, of a warm call, its ratio to eager's, and programs, by contender."""
    calls, found = {}, {}
    prompts = [prompt(name, seed) for seed in range(4)]
    wanted = [seeded(generator(name), ids) for ids in prompts]
    for contender in (EAGER, PARTIAL, FULL, DYNAMO):
        call, count = made(name, contender)
        start = time.perf_counter()
        first = seeded(call, prompts[0])
        seconds = time.perf_counter() - start
        for ids, tokens in zip(prompts, wanted):
            if not torch.equal(seeded(call, ids), tokens):
                raise AssertionError(f"{contender} gives other tokens than eager PyTorch for {name}")
        assert torch.equal(first, wanted[0])
        calls[contender] = call
        found[contender] = {"first": seconds, "programs": float(count())}
    warm = {each: functools.partial(seeded, call, prompts[1]) for each, call in calls.items()}
    timed = interleave({each: functools.partial(_same, call) for each, call in warm.items()}, rounds=rounds)
    for contender, seconds_of in timed.items():
        found[contender]["warm"] = median(seconds_of)
        found[contender]["ratio"] = median_ratio(seconds_of, timed[EAGER])
    return found


@click.command()
@click.argument("names", nargs=-1)
@click.option("--rounds", default=21, show_default=True, help="How many warm calls are kept.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the figures to this file, too.")
def main(names: tuple[str, ...], rounds: int, path: Path | None) -> None:
    """Print a row for each program and contender."""
    torch.set_num_threads(1)
    console, results = Console(), {}
    for name in names or PROGRAMS:
        results[name] = measured(name, rounds)
        table = Table("", "first call", "warm call", "of eager's", "programs", title=name)
        for contender, each in results[name].items():
            row = f"{each['first']:.2f} s", f"{each['warm'] * 1e3:.1f} ms", f"{each['ratio']:.2f}"
            table.add_row(contender, *row, f"{each['programs']:.0f}")
        console.print(table)
    write_json(path, results)


if __name__ == "__main__":
    main()
