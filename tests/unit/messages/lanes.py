"""What no batched call does: effects, and results that cannot be stacked."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.unit.messages.case import refused_for_lanes

LANES = torch.tensor([[1.0, 2.0], [1.0, -2.0]])
seen: list[Tensor] = []


@refused_for_lanes("SG311", LANES)
def printed_for_each_lane(x: Tensor) -> Tensor:
    y = x * 2
    print("doubled")
    return y


@refused_for_lanes("SG311", LANES)
def kept_for_each_lane(x: Tensor) -> Tensor:
    seen.append(x * 2)
    return x


@refused_for_lanes("SG312", LANES)
def of_one_length_or_another(x: Tensor) -> Tensor:
    return x[x > 0]
