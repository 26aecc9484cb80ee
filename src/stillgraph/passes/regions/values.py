"""What passes ask of a node's ``meta["val"]``: tensor or number, of which kind, sharing memory with what."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from stillgraph.program.facts import torch_symbols
from stillgraph.program.facts.info import info
from stillgraph.program.types import ListType

_KINDS = {bool: torch.bool, int: torch.int64, float: torch.float64}
_ORDER = (bool, int, float)


def kind_of(value: Any) -> type | None:
    """``bool``, ``int`` or ``float`` for a number, staged or not; None for anything else."""
    if isinstance(value, (bool, torch.SymBool)):
        return bool
    if isinstance(value, (int, torch.SymInt)):
        return int
    return float if isinstance(value, (float, torch.SymFloat)) else None


def dtype_of(kind: type) -> torch.dtype:
    """The dtype of the 0-d tensor that stands for a Python number."""
    return _KINDS[kind]


def wider(left: type, right: type) -> type:
    """The kind of the result of arithmetic on two kinds."""
    return max(left, right, key=_ORDER.index)


def is_number(value: Any) -> bool:
    """Whether a value is a Python number, staged or not."""
    return kind_of(value) is not None


def value_of(argument: Any) -> Any:
    """What stands for an argument of a node: a node's ``meta["val"]``, or the constant itself."""
    return argument.meta.get("val") if isinstance(argument, fx.Node) else argument


def storage_of(value: Any) -> int | None:
    """An identity of the memory behind a tensor, of which a sparse one has several; None for anything else."""
    if not isinstance(value, torch.Tensor):
        return None
    return value.untyped_storage()._cdata if value.layout is torch.strided else id(value)


def is_optional(value: Any) -> bool:
    """Whether a value that stands for a place says that the place may hold ``None`` or nothing."""
    return info(value).may_be_missing or (isinstance(value, ListType) and value.may_be_unbound)


class Fakes:
    """Makes stand-ins for the values that a pass adds to a program.

    Args:
        module: the program's root region, one of whose values tells the fake mode.
    """

    def __init__(self, module: fx.GraphModule) -> None:
        modes = (getattr(node.meta.get("val"), "fake_mode", None) for node in module.graph.nodes)
        known = next((mode for mode in modes if mode is not None), None)
        self.mode = known or FakeTensorMode(shape_env=torch_symbols.ShapeEnv())

    def tensor(self, shape: tuple[Any, ...], dtype: torch.dtype, device: Any = "cpu") -> torch.Tensor:
        """A tensor with memory of its own."""
        with self.mode:
            return torch.empty(shape, dtype=dtype, device=device)

    def scalar(self, kind: type) -> torch.Tensor:
        """The 0-d tensor that stands for a number."""
        return self.tensor((), dtype_of(kind))

    def number(self, kind: type) -> Any:
        """A number of which nothing is known."""
        environment = self.mode.shape_env
        assert environment is not None, "the mode of a capture has symbols"
        make = {
            int: environment.create_unbacked_symint,
            float: environment.create_unbacked_symfloat,
            bool: environment.create_unbacked_symbool,
        }
        return make[kind]()

    def like(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor with the metadata of another and memory of its own."""
        with self.mode:
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
