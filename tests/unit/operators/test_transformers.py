"""Transformers of torch's own without gradients: where eager takes its fast path, what it leaves at padded places."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.unit.trace.agreement import agree_fresh, refusal

X = torch.randn(2, 4, 8)
AT_THE_END = torch.tensor([[False, False, True, True], [False, False, False, True]])
IN_BETWEEN = torch.tensor([[False, True, False, True], [False, False, False, True]])
NOWHERE = torch.zeros(2, 4, dtype=torch.bool)


class _Encoder(nn.Module):
    def __init__(self, norm: bool = False, **options: Any) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8) if norm else None, **options)
        self.eval()

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        return self.encoder(x * 2, src_key_padding_mask=padding)


class _Both(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
        self.eval()

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        return self.both(x, x, src_key_padding_mask=padding)


MAKES = [
    _Encoder,
    lambda: _Encoder(norm=True),
    lambda: _Encoder(mask_check=False),
    lambda: _Encoder(enable_nested_tensor=False),
    lambda: _Encoder().train().requires_grad_(False).eval(),
    _Both,
]


@pytest.mark.parametrize("make", MAKES)
def test_padded(make: Any) -> None:
    with torch.no_grad():
        agree_fresh(make, (X, AT_THE_END), (X, NOWHERE), (X, IN_BETWEEN), (X, AT_THE_END))


def test_with_gradients() -> None:
    agree_fresh(_Encoder, (X, AT_THE_END), (X, IN_BETWEEN))


def test_the_fast_path_switched_off() -> None:
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.no_grad():
            switched = lambda _: torch.backends.mha.set_fastpath_enabled(True)  # noqa: E731
            agree_fresh(_Encoder, (X, AT_THE_END), switched, (X, AT_THE_END), programs=2)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_layers_that_are_changed_are_refused() -> None:
    encoder = _Encoder()
    encoder.encoder.layers[1].linear1.register_forward_hook(lambda *_: None)
    with torch.no_grad():
        assert "set_fastpath_enabled(False)" in str(refusal(encoder, X, AT_THE_END))
