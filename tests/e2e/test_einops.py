"""Functions written with einops: what it does with tensors is recorded, what it knows of patterns is not."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor, nn

from tests.unit.trace.agreement import N, P, agree, agree_fresh

einops = pytest.importorskip("einops")
layers = pytest.importorskip("einops.layers.torch")


def test_functions() -> None:
    def rearranged(x: Tensor) -> Any:
        y = einops.rearrange(x, "(b c) -> b c", c=1)
        if x.sum() > 0:
            y = einops.repeat(y, "b c -> b (c k)", k=2)
        else:
            y = einops.rearrange([y, y + 1], "k b c -> b (k c)")
        packed, shapes = einops.pack([y, y[0]], "* c")
        product = einops.einsum(packed, packed, "b c, d c -> b d")
        return einops.reduce(product, "b d -> b", "sum"), *einops.unpack(packed, shapes, "* c")

    agree(rearranged, P, N)


def test_layers() -> None:
    def make() -> nn.Module:
        return nn.Sequential(layers.Rearrange("(b c) -> c b", c=1), nn.Linear(3, 2), layers.Reduce("c b -> b", "max"))

    agree_fresh(make, P, N)
