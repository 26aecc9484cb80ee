"""Fake counterparts of real tensors, one for each, and the way back to the real ones."""

from __future__ import annotations

from typing import Any

import torch

from stillgraph.trace.fakes.symbolic import Symbolic, is_fake
from stillgraph.trace.torch_rules import call_results
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.lists import StagedList, StagedSpread
from stillgraph.trace.values.numbers import StagedNumber, plain
from stillgraph.trace.values.several import in_graph


class FakeTensors:
    """The fake tensors of one capture.

    Args:
        symbolic: makes them.

    Attributes:
        by_real: by the id of a real tensor, the tensor and its fake.
        reals: the real tensor, by the id of a fake that the user's code does not see itself.
        apart: by their ids, other fakes of arguments that are passed twice, each with the real tensor.
    """

    def __init__(self, symbolic: Symbolic) -> None:
        self._symbolic = symbolic
        self.by_real: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.reals: dict[int, torch.Tensor] = {}
        self.apart: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def to_fake(self, value: Any) -> Any:
        """``value`` with every real tensor replaced by its fake and every staged number by torch's symbol."""
        value = in_graph(value)
        if isinstance(value, torch.Tensor):
            return value if is_fake(value) else self.of(value)
        if isinstance(value, StagedNumber):
            return plain(value)
        if isinstance(value, StagedComplex):
            return value.stillgraph_sample()
        if isinstance(value, (StagedList, StagedSpread)):
            return value.type if isinstance(value, StagedList) else value._refuse()
        if isinstance(value, (tuple, list)):
            return call_results.rebuild_sequence(value, [self.to_fake(v) for v in value])
        if isinstance(value, dict):
            return {k: self.to_fake(v) for k, v in value.items()}
        if isinstance(value, slice):
            return slice(self.to_fake(value.start), self.to_fake(value.stop), self.to_fake(value.step))
        return value

    def of(self, real: torch.Tensor) -> torch.Tensor:
        """The one fake counterpart of a real tensor."""
        entry = self.by_real.get(id(real))
        if entry is None:
            with torch._C.DisableTorchFunction():
                entry = (real, self._symbolic.fake(real))
            self.by_real[id(real)] = entry
            self.reals[id(entry[1])] = real
        return entry[1]

    def real_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The real tensor that one stands for; None for what the capture made."""
        if not is_fake(tensor):
            return tensor
        if id(tensor) in self.apart:
            return self.apart[id(tensor)][1]
        return next((real for real, fake in self.by_real.values() if fake is tensor), None)
