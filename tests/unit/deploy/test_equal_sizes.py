"""Files of functions whose `InputSpec`s give two dimensions one name: the program relies on their being equal."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import stillgraph as sg

BATCH = sg.Dim("batch")
FORMATS = [".pt2", ".onnx"]


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell, self.scores = nn.Embedding(8, 16), nn.GRUCell(16, 16), nn.Linear(16, 8)

    def forward(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        given = []
        for _ in range(4):
            state = self.cell(self.embedding(token), state)
            token = self.scores(state).argmax(-1)
            given.append(token)
            if (token == 3).all():
                break
        return torch.stack(given), state


def beams(kept: Tensor, chosen: Tensor) -> Tensor:
    while kept.sum() < 40:
        kept = torch.take_along_dim(kept, chosen.unsqueeze(-1), dim=1) + 1
    return kept.take_along_dim(chosen[..., None], 1)


def flat(kept: Tensor, chosen: Tensor) -> Tensor:
    return torch.take_along_dim(kept, chosen)


def given_to_decoder(batch: int) -> tuple[Tensor, Tensor]:
    return torch.randint(0, 8, (batch,)), torch.randn(batch, 16)


def given_to_beams(batch: int) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, 3, 4), torch.randint(0, 3, (batch, 3))


DECODER = [sg.InputSpec([BATCH], torch.int64), sg.InputSpec([BATCH, 16])]
BEAMS = [sg.InputSpec([BATCH, 3, 4]), sg.InputSpec([BATCH, 3], torch.int64)]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("function", "given", "spec"),
    [(Decoder().eval(), given_to_decoder, DECODER), (beams, given_to_beams, BEAMS), (flat, given_to_beams, BEAMS)],
    ids=["decoder", "beams", "flat"],
)
def test_every_batch(tmp_path: Path, function: Any, given: Any, spec: Any, suffix: str) -> None:
    sg.save(function, path := tmp_path / f"file{suffix}", args=given(3), input_spec=spec)
    loaded = sg.load(path)
    for batch in (3, 1, 5):
        torch.testing.assert_close(loaded(*(args := given(batch))), function(*args))
    with pytest.raises(ValueError, match="one size of 'batch'"):
        loaded(given(3)[0], given(2)[1])


def test_conditions_on_equal_sizes_are_settled() -> None:
    def same(token: Tensor, state: Tensor) -> Tensor:
        return state * 2 if len(token) == len(state) else state

    program = sg.export(same, given_to_decoder(3), input_spec=DECODER)
    assert [node.target for node in program.graph.graph.nodes if node.op.startswith("call")] == [operator.mul]
