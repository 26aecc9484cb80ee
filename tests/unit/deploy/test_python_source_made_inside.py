"""Python source of functions that make optimizers and step them, and of packed sequences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import stillgraph as sg
from tests.cases.compare import assert_same
from tests.unit.deploy.alone import alone
from tests.unit.deploy.saving import opened

X = torch.tensor([1.5, 2.0])
CALLS = (X, -X, X * 9, X - 1.5, torch.zeros(2))


def while_it_falls(x: Tensor) -> Any:
    w, steps = x.clone().requires_grad_(True), 0
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    while steps < 5 and w.sum() > 0:
        optimizer.zero_grad()
        (w**2).sum().backward()
        optimizer.step()
        steps += 1
    return w.detach(), steps


def by_adam(x: Tensor) -> Tensor:
    w = nn.Parameter(x.clone())
    optimizer = torch.optim.AdamW([w], lr=0.1)
    for step in range(3):
        optimizer.zero_grad(set_to_none=False)
        ((w - 1) ** 2).sum().backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.1 / (step + 1)
        optimizer.step()
    return w.detach()


def stepped_on_a_path(x: Tensor) -> Tensor:
    w = x.clone().requires_grad_(True)
    optimizer = torch.optim.RMSprop([w], lr=0.1)
    (w**2).sum().backward()
    if x.sum() > 0:
        optimizer.step()
    return w.detach()


@pytest.mark.parametrize("function", [while_it_falls, by_adam, stepped_on_a_path], ids=lambda each: each.__name__)
def test_optimizers_made_inside(function: Any, tmp_path: Path) -> None:
    sg.save(function, tmp_path / "program.py", args=(X,))
    with opened(tmp_path / "program.py", function) as loaded:
        for x in CALLS:
            assert_same(function(x), loaded(x))


class Packed(nn.Module):
    """A recurrent layer over sequences of several lengths."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layer = kind(2, 3, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        given, _ = self.layer(packed)
        padded, found = pad_packed_sequence(given, batch_first=True)
        return padded * 2 if padded.sum() > 0 else padded, found


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_packed_sequences(kind: type[nn.RNNBase], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = Packed(kind), torch.randn(3, 4, 2)
    sg.save(model, tmp_path / "program.py", args=(x, torch.tensor([4, 2, 3])))
    with opened(tmp_path / "program.py", model) as loaded:
        loaded.load_state_dict(model.state_dict())
        for lengths in ([4, 2, 3], [1, 4, 2], [3, 3, 1], [1, 1, 1]):
            for each in (x, -x):
                assert_same(model(each, torch.tensor(lengths)), loaded(each, torch.tensor(lengths)))


def test_a_graph_of_packed_sequences_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(sg.ExportError, match="a recurrent layer takes a packed sequence") as raised:
        sg.save(Packed(nn.GRU), tmp_path / "program.pt2", args=(torch.randn(3, 4, 2), torch.tensor([4, 2, 3])))
    assert raised.value.reason.code == "SG402"


def test_such_files_need_torch_alone(tmp_path: Path) -> None:
    sg.save(by_adam, tmp_path / "program.py", args=(X,))
    told = alone(f"""
        import runpy
        print(runpy.run_path({str(tmp_path / "program.py")!r})["by_adam"](torch.tensor([1.5, 2.0])).tolist())
    """)
    assert told == f"{by_adam(X).tolist()}\n"
