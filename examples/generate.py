"""Hugging Face's `generate()`, untouched, as one program: prefill, the decoding loop, its cache and when it stops.

Run with ``python examples/generate.py`` (about two minutes); it writes ``generate.pt2`` and ``generate.onnx`` to the
working folder.
"""

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import stillgraph as sg

CONFIG = GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=64, n_positions=64, bos_token_id=0, eos_token_id=1)


def prompts(batch: int, length: int, seed: int) -> Tensor:
    """Random prompts without the two special tokens."""
    return torch.randint(2, 64, (batch, length), generator=torch.Generator().manual_seed(seed))


def main() -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(CONFIG).eval()
    model.generation_config.pad_token_id = 1

    def generate(ids: Tensor) -> Tensor:
        tokens: Tensor = model.generate(ids, max_new_tokens=8, do_sample=False)
        return tokens

    sizes = [sg.InputSpec([None, None], torch.int64)]  # every batch, every length
    static = sg.to_static(generate, input_spec=sizes, backend="eager")
    others = [prompts(batch, length, seed) for seed, (batch, length) in enumerate([(2, 5), (3, 9), (4, 3)])]
    for ids in others:
        assert torch.equal(static(ids), generate(ids))
    print(f"{len(static.programs)} program for {len(others)} shapes")

    program = sg.export(generate, (others[0],), input_spec=sizes)
    for file in ("generate.pt2", "generate.onnx"):
        sg.save(program, file, args=(others[0],))
        loaded = sg.load(file)
        for ids in others:
            assert torch.equal(loaded(ids), generate(ids))
        print(f"{file} gives the same tokens, in a process without transformers as well")


if __name__ == "__main__":
    main()
