"""Tensors that turn up inside a call which runs as a whole, as ``forward`` of a ``torch.autograd.Function`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from stillgraph.trace.fakes.symbolic import is_fake

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder


class HiddenInputs(TorchDispatchMode):
    """Puts the fake counterpart in the place of every real tensor, and keeps the real ones.

    Attributes:
        found: the real tensors, by their ids.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self._recorder = recorder
        self.found: dict[int, torch.Tensor] = {}

    @classmethod
    def is_infra_mode(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, self._faked, (args, kwargs or {}))
        return func(*args, **kwargs)

    def _faked(self, tensor: torch.Tensor) -> torch.Tensor:
        if is_fake(tensor):
            return tensor
        self.found[id(tensor)] = tensor
        return self._recorder.fakes.of(tensor)

    def become_inputs(self) -> None:
        """Let what was found be inputs of the program, guarded and known to what looks for gradients; none is read."""
        root = self._recorder.root
        self._recorder.hidden_inputs.update(root.node_of(tensor) for tensor in self.found.values())
