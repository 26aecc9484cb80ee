"""`InputSpec`: what is known of an argument before the call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, init=False)
class InputSpec:
    """The shape and dtype of a tensor argument (seed 003's ``InputSpec``).

    Attributes:
        shape: sizes; ``None`` is a symbolic dimension: one program serves every size.
        dtype: a ``torch.dtype``.
        name: of the input in an export.
    """

    shape: tuple[int | None, ...]
    dtype: torch.dtype
    name: str | None

    def __init__(
        self, shape: Sequence[int | None], dtype: str | torch.dtype = "float32", name: str | None = None
    ) -> None:
        """Describe an argument.

        Raises:
            ValueError: a dimension is negative (other than -1, which is None as in Paddle), or the dtype is unknown.
            TypeError: a dimension is neither an ``int`` nor None.
        """
        dims = []
        for dim in shape:
            if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
                raise TypeError(f"InputSpec: a dimension is an int or None, not {dim!r}")
            if dim is not None and dim < -1:
                raise ValueError(f"InputSpec: {dim} is no size")
            dims.append(None if dim == -1 else dim)
        object.__setattr__(self, "shape", tuple(dims))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "name", name)

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor, name: str | None = None) -> InputSpec:
        """The spec of a tensor, with its exact shape."""
        return cls(tuple(int(d) for d in tensor.shape), tensor.dtype, name)

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"InputSpec({list(self.shape)}, {dtype!r}" + (f", {self.name!r})" if self.name else ")")


def as_dtype(dtype: str | torch.dtype) -> torch.dtype:
    """A torch dtype from its name.

    Raises:
        ValueError: torch has no dtype of that name.
    """
    found = dtype if isinstance(dtype, torch.dtype) else getattr(torch, str(dtype).removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"InputSpec: torch has no dtype {dtype!r}")
    return found
