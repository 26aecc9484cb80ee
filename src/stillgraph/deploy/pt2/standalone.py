"""A program as a module of its own, without a file."""

from __future__ import annotations

from typing import Any

import torch

from stillgraph.deploy.exporting.loaded import LoadedProgram


class StandaloneModule(torch.nn.Module):
    """A program as a module: it is called like the original, and its parameters and buffers have the original's names.

    Attributes:
        notes: effects of the original that a call of this does not have.
    """

    def __init__(self, loaded: LoadedProgram) -> None:
        super().__init__()
        module: torch.nn.Module = loaded.module
        self.notes = loaded.notes
        self._loaded = loaded
        self._parameters, self._buffers = module._parameters, module._buffers
        self._non_persistent_buffers_set = module._non_persistent_buffers_set
        self._modules = {name: each for name, each in module._modules.items() if each is not None and _has_state(each)}
        self.training = False

    def forward(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the program; raises what `LoadedProgram` does."""
        return self._loaded(*args, **kwargs)

    def _get_name(self) -> str:
        return self._loaded.name


def _has_state(module: torch.nn.Module) -> bool:
    return next(module.parameters(), None) is not None or next(module.buffers(), None) is not None
