"""`InputSpec`: what is known of an argument before the call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, init=False)
class Dim:
    """A dimension of any size in a range. Dimensions of one name have one size.

    Attributes:
        name: a Python name.
        min, max: the smallest and the largest size; None for any.
    """

    name: str
    min: int | None
    max: int | None

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        """Describe a dimension.

        Raises:
            TypeError: the name is no text, or a bound neither an ``int`` nor None.
            ValueError: the name is no Python name, or no two sizes are in the range.
        """
        if not isinstance(name, str) or any(type(bound) not in (int, type(None)) for bound in (min, max)):
            raise TypeError(f"Dim: a name and bounds that are int or None, not {name!r}, {min!r}, {max!r}")
        if not name.isidentifier():
            raise ValueError(f"Dim: {name!r} is no Python name")
        if (min or 0) < 0 or (max is not None and max <= (min or 0)) or (max is not None and max < 2):
            raise ValueError(f"Dim: from {min} to {max} there are no two sizes of which one is 2 or more")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "min", min)
        object.__setattr__(self, "max", max)

    def holds(self, size: int) -> bool:
        """Whether a size is in the range."""
        return (self.min is None or size >= self.min) and (self.max is None or size <= self.max)

    def __str__(self) -> str:
        if self.min is None and self.max is None:
            return self.name
        low, high = ("" if bound is None else str(bound) for bound in (self.min, self.max))
        return f"{self.name}: {low}..{high}"


@dataclass(frozen=True, init=False)
class InputSpec:
    """The shape and dtype of a tensor argument.

    Attributes:
        shape: sizes; ``None`` is a symbolic dimension: one program serves every size.
        dims: for each dimension its `Dim`, where it has one; it is symbolic then. A `torch.export.Dim` does as well.
        dtype: a ``torch.dtype``.
        name: for the reader; inputs of a file have the names of the arguments.
    """

    shape: tuple[int | None, ...]
    dtype: torch.dtype
    name: str | None
    dims: tuple[Dim | None, ...]

    def __init__(
        self, shape: Sequence[Any], dtype: str | torch.dtype = "float32", name: str | None = None
    ) -> None:
        """Describe an argument.

        Raises:
            ValueError: a dimension is negative (other than -1, which is None as in Paddle), or the dtype is unknown.
            TypeError: a dimension is neither an ``int`` nor None nor a `Dim`.
        """
        dims = []
        named = tuple(_as_dim(dim) for dim in shape)
        for dim in (None if ours is not None else given for given, ours in zip(shape, named)):
            if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
                raise TypeError(f"InputSpec: a dimension is an int, a Dim or None, not {dim!r}")
            if dim is not None and dim < -1:
                raise ValueError(f"InputSpec: {dim} is no size")
            dims.append(None if dim == -1 else dim)
        object.__setattr__(self, "shape", tuple(dims))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "dims", named)

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor, name: str | None = None) -> InputSpec:
        """The spec of a tensor, with its exact shape."""
        return cls(tuple(int(d) for d in tensor.shape), tensor.dtype, name)

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        shape = ", ".join(str(size) if dim is None else f"<{dim}>" for size, dim in zip(self.shape, self.dims))
        return f"InputSpec([{shape}], {dtype!r}" + (f", {self.name!r})" if self.name else ")")


def _as_dim(dim: Any) -> Dim | None:
    if not isinstance(dim, torch.export.Dim):
        return dim if isinstance(dim, Dim) else None
    low, high = (bound if type(bound) is int else None for bound in (dim.min, dim.max))  # else infinity
    return Dim(dim.__name__, min=low or None, max=high)


def as_dtype(dtype: str | torch.dtype) -> torch.dtype:
    """A torch dtype from its name.

    Raises:
        ValueError: torch has no dtype of that name.
    """
    found = dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(dtype).removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"InputSpec: torch has no dtype {dtype!r}")
    return found
